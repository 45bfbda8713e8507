"""extender: delegates decisions to an HTTP service, as far as this profile has them.

See `plugins/extender/extender.py`. Victims, queues and gangs follow this profile's own rules, so that the
verbs about them are not used, with a warning.
"""

from collections.abc import Mapping
from typing import Any

from maniple.framework.session import Session
from maniple.plugins.extender import extender

_NOT_ASKED = ("preemptable", "reclaimable", "queueOverused", "jobReady")


class Extender(extender.Extender):
    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        super().__init__(session, arguments)
        for verb in _NOT_ASKED:
            if self.asks(verb):
                session.report(
                    f"{self.name}: argument extender.{verb}Verb: not used by the profile maniple; it has no effect"
                )


__all__ = ["Extender"]
