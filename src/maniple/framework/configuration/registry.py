"""Which plugins and actions a profile knows, by the names that its configuration files use.

`Extensions` are third-party plugins and actions. They are found and loaded outside (`maniple.extensions`);
here they only join the profile's own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from maniple.framework.configuration.document import located, suggestion
from maniple.framework.configuration.loading import Configuration
from maniple.framework.session import PluginMaker, Session
from maniple.framework.too_large import too_large
from maniple.framework.triggers import Triggers

ActionMaker = Callable[[Mapping[str, Any]], Any]


def _unmeasured(plugin: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Extensions:
    """Plugins and actions by name, and in words what could not be loaded."""

    plugins: Mapping[str, PluginMaker] = field(default_factory=dict)
    actions: Mapping[str, ActionMaker] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    plugins: Mapping[str, PluginMaker]
    actions: Mapping[str, ActionMaker]
    # plugins that answer the same question in different ways: the first one configured is used
    rivals: tuple[frozenset[str], ...] = ()

    def open_plugins(
        self, session: Session, configuration: Configuration, opened: Callable[[str], None] = _unmeasured
    ) -> None:
        """Create every configured plugin; `opened` is called with the name of each.

        A plugin that is unknown, or has a rival that is configured already, is reported and left out.
        """
        tiers, names = [], set[str]()
        for tier in configuration.tiers:
            made = []
            for option in tier:
                rival = self._rival(option.name, names)
                if option.name not in self.plugins:
                    hint = suggestion(option.name, self.plugins)
                    unknown = f"plugin {option.name!r} is not known and was left out{hint}"
                    session.report(located("configuration", option.line, "", unknown))
                elif rival is not None:
                    session.report(
                        f"plugin {option.name!r} was left out: {rival!r} does the same in another way"
                    )
                else:
                    made.append((option, self.plugins[option.name](session, option.arguments)))
                    names.add(option.name)
                    opened(option.name)
            tiers.append(made)
        session.use(tiers, refuses=too_large)

    def triggers(self, configuration: Configuration) -> Triggers:
        """What makes it worth asking the configured plugins again."""
        names = [option.name for tier in configuration.tiers for option in tier]
        return Triggers.of(self.plugins[name] for name in sorted(names) if name in self.plugins)

    def extended(self, more: Extensions) -> tuple["Registry", list[str]]:
        """With more plugins and actions, and what is to be said about that. A name that is taken keeps its meaning."""
        remarks = list(more.problems)
        for word, known, added in (
            ("plugin", self.plugins, more.plugins),
            ("action", self.actions, more.actions),
        ):
            taken = sorted(known.keys() & added.keys())
            remarks += [f"{word} {name!r} was left out: there is one of that name already" for name in taken]
        both = {**more.plugins, **self.plugins}, {**more.actions, **self.actions}
        return replace(self, plugins=both[0], actions=both[1]), remarks

    def _rival(self, name: str, names: set[str]) -> str | None:
        found = (other for group in self.rivals if name in group for other in sorted(group & names - {name}))
        return next(found, None)
