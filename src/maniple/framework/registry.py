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
    # plugins that answer the same question in different ways: the first one configured is used
    rivals: tuple[frozenset[str], ...] = ()

    def open_plugins(self, session: Session, configuration: Configuration) -> None:
        """Make every configured plugin. One that nobody knows, or whose rival is there already, is reported and left out."""
        tiers, names = [], set[str]()
        for tier in configuration.tiers:
            made = []
            for option in tier:
                rival = self._rival(option.name, names)
                if option.name not in self.plugins:
                    session.report(f"plugin {option.name!r} is not known and was left out")
                elif rival is not None:
                    session.report(f"plugin {option.name!r} was left out: {rival!r} does the same in another way")
                else:
                    made.append((option, self.plugins[option.name](session, option.arguments)))
                    names.add(option.name)
            tiers.append(made)
        session.use(tiers)

    def _rival(self, name: str, names: set[str]) -> str | None:
        found = (other for group in self.rivals if name in group for other in sorted(group & names - {name}))
        return next(found, None)
