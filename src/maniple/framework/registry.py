"""Which plugins and actions a profile knows, by the names that its configuration files use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.framework.configuration import Configuration
from maniple.framework.session import PluginMaker, Session


@dataclass(frozen=True, slots=True)
class Registry:
    plugins: Mapping[str, PluginMaker]
    actions: Mapping[str, Callable[[Mapping[str, Any]], Any]]

    def open_plugins(self, session: Session, configuration: Configuration) -> None:
        """Make every configured plugin; one that nobody knows is reported and left out."""
        tiers = []
        for tier in configuration.tiers:
            made = []
            for option in tier:
                maker = self.plugins.get(option.name)
                if maker is None:
                    session.report(f"plugin {option.name!r} is not known and was left out")
                else:
                    made.append((option, maker(session, option.arguments)))
            tiers.append(made)
        session.use(tiers)
