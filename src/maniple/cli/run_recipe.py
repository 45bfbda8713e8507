"""What the planner of `maniple run` is made of, so that it can be made again when the configuration changes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.cli import InputError, with_transport
from maniple.cli.reporting import configuration_message, with_file_name
from maniple.cli.run_stage import Settings

if TYPE_CHECKING:
    from maniple.live.port import Clock, EventType
    from maniple.live.reload import Reload
    from maniple.live.scheduler import Scheduler
    from maniple.live.usage_feed import Feeds
    from maniple.planner import Planner
    from maniple.profiles.shards import ShardSettings

KAI_CONFIG = "kai-config"  # KAI reads only this one


@dataclass(frozen=True, slots=True)
class Recipe:
    """`text` and `shard` are the configuration at the start."""

    conf: str | None
    profile: str
    options: Mapping[str, Any] | None
    settings: Settings
    text: str | None
    shard: "ShardSettings | None"

    def first_planner(self) -> "Planner":
        """The planner at the start; a wrong configuration ends the command."""
        from maniple.framework.configuration.loading import ConfigurationError

        try:
            return self._planner(self.text, self.shard)
        except ConfigurationError as error:
            raise InputError(configuration_message(self.conf, error)) from None
        except ValueError as error:
            raise InputError(f"{self.conf}: {error}" if self.conf else str(error)) from None

    def reload(self, scheduler: "Scheduler", clock: "Clock", feeds: "Feeds | None") -> "Reload[Any] | None":
        """Watches the file or, without one, the shard; None if there is neither."""
        from maniple.live.reload import OBJECT_SECONDS, FileText, Reload

        if self.conf is not None:
            return Reload(
                scheduler,
                clock,
                FileText(Path(self.conf)).read,
                lambda text: self._tried(text, self.shard, feeds),
                name=self.conf,
                current=self.text or "",
                tell=self._teller(scheduler),
                adopted=feeds.use if feeds is not None else None,
            )
        if self.shard is None:
            return None
        return Reload(
            scheduler,
            clock,
            lambda: _read_shard(scheduler, self.settings.shard),
            lambda shard: self._tried(None, shard, feeds),
            name=f"SchedulingShard {self.settings.shard}",
            current=self.shard,
            period=OBJECT_SECONDS,
            tell=self._teller(scheduler),
            adopted=feeds.use if feeds is not None else None,
        )

    def _teller(self, scheduler: "Scheduler") -> Any:
        from maniple.live.reload import event_regarding

        election = self.settings.election
        lease = (election.namespace, election.name) if election is not None else None
        regarding = event_regarding(os.environ, lease)

        def tell(event_type: "EventType", reason: str, note: str) -> None:
            scheduler.notes.write(regarding, event_type, reason, note)

        return tell

    def _tried(self, text: str | None, shard: "ShardSettings | None", feeds: "Feeds | None") -> "Planner":
        """A planner that has planned an empty cluster: plugins read their arguments when they open."""
        from maniple.framework.configuration.loading import ConfigurationError

        try:
            planner = self._planner(text, shard)
        except ConfigurationError as error:
            raise ValueError(configuration_message(self.conf, error)) from None
        planner.cycle(planner.build(()))
        if feeds is not None:
            feeds.check(planner)
        return planner

    def _planner(self, text: str | None, shard: "ShardSettings | None") -> "Planner":
        from maniple.live.dialects import dialect_of
        from maniple.planner import Planner

        options = {**shard.options, **(self.options or {})} if shard is not None else self.options
        planner = Planner(
            conf=shard.conf if text is None and shard is not None else text,
            profile=self.profile,
            options=with_transport(options, text),
        )
        dialect_of(self.profile, planner.options, (), self.settings.bind)
        named = tuple(with_file_name(self.conf, text, one) for one in planner.configuration.warnings)
        planner.configuration = replace(planner.configuration, warnings=named)
        return planner


async def _read_shard(scheduler: "Scheduler", name: str) -> "ShardSettings":
    from maniple.objects.kai import KaiConfig, SchedulingShard
    from maniple.profiles.shards import settings_of

    shard = await scheduler.port.read(SchedulingShard, name)
    config = await scheduler.port.read(KaiConfig, KAI_CONFIG)
    if not isinstance(shard, SchedulingShard):
        raise FileNotFoundError(0, "no such object")
    return settings_of(shard, config if isinstance(config, KaiConfig) else None)
