"""Events on objects, each recorded once.

While nothing new happens the same event is only counted. An event with a changed message is written again
after a while, so that a gang that is pending all day has a few events and not thousands. If too many are waiting to be
written, further ones are gathered: one event for all of a reason on objects of a kind in a namespace, with their
number, once there is room. Nothing is lost without a word.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from maniple.live.effects import Effect, Effects, Lane, Urgency
from maniple.live.pace import NUMBERS_SECONDS, apart
from maniple.live.port import EventType, Port
from maniple.objects.meta import Object
from maniple.objects.printable import printable_lines

log = logging.getLogger(__name__)

NEW_WORDS_SECONDS = 60.0


@dataclass(slots=True)
class _Gathered:
    """Events of one reason on objects of one kind in a namespace; the first stands for all."""

    regarding: Object
    type: EventType
    reason: str
    note: str
    count: int = 0

    @property
    def text(self) -> str:
        if self.count == 1:
            return self.note
        of_namespace = f" in namespace {space}" if (space := self.regarding.metadata.namespace) else ""
        kind = self.regarding.kind
        return f"{self.note} (one of {self.count:,} events {self.reason} on {kind}s{of_namespace})"


@dataclass(slots=True)
class _Recorded:
    note: str
    at: float
    count: int = 1


class Notes:
    def __init__(self, port: Port, effects: Effects) -> None:
        self._port = port
        self._effects = effects
        self._recorded: dict[tuple[type[Object], str], dict[str, _Recorded]] = {}
        self._gathered: dict[tuple[type[Object], str, str, EventType], _Gathered] = {}
        self.gathered = 0  # events that were written together with others
        self.failed = 0  # events that the cluster refused

    def record(
        self,
        regarding: Object,
        event_type: EventType,
        reason: str,
        note: str,
        now: float,
        *,
        numbers: bool = True,
    ) -> None:
        """Record it unless it was recorded already; a changed message waits for its time.

        Without `numbers`, a message that differs in numbers only is not new.
        """
        recorded = self._recorded.setdefault((type(regarding), regarding.key), {})
        last = recorded.get(reason)
        if last is not None and (
            last.note == note
            or now - last.at < NEW_WORDS_SECONDS
            or not (numbers or apart(last.note, note) < NUMBERS_SECONDS)
        ):
            last.count += 1
            return
        recorded[reason] = _Recorded(note, now)
        self.write(regarding, event_type, reason, note)

    def write(
        self,
        regarding: Object,
        event_type: EventType,
        reason: str,
        note: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record it regardless of earlier records."""
        note = printable_lines(note)
        effect = Effect(
            lane=Lane(f"note on {regarding.api_group}/{regarding.kind}", regarding.key),
            aspect=reason,
            urgency=Urgency.NOTE,
            call=lambda: self._port.record_event(
                regarding, event_type, reason, note, annotations=annotations
            ),
            done=self._done,
            attempts=3,
        )
        if not self._effects.submit(effect):
            self._gather(regarding, event_type, reason, note)

    def _gather(self, regarding: Object, event_type: EventType, reason: str, note: str) -> None:
        key = type(regarding), regarding.metadata.namespace, reason, event_type
        one = self._gathered.setdefault(key, _Gathered(regarding, event_type, reason, note))
        one.count += 1
        self.gathered += 1
        if self.gathered & (self.gathered - 1) == 0:
            log.warning(
                "too many events are waiting to be written: one for each reason stands for several (%d so far)",
                self.gathered,
            )

    def _done(self, error: BaseException | None) -> None:
        """An event was written or refused; there may be room for those that were gathered."""
        if error is not None:
            self.failed += 1
            if self.failed & (self.failed - 1) == 0:
                log.warning("an event was not written (%d so far): %s", self.failed, error)
        if self._gathered and self._effects.takes_notes:
            gathered, self._gathered = self._gathered, {}
            for one in gathered.values():
                self.write(one.regarding, one.type, one.reason, one.text)

    def clear(self, regarding: Object, reason: str) -> None:
        """It no longer applies; if it does again, that is new."""
        self._recorded.get((type(regarding), regarding.key), {}).pop(reason, None)

    def count(self, regarding: Object, reason: str) -> int:
        """How often it was recorded or would have been."""
        recorded = self._recorded.get((type(regarding), regarding.key), {}).get(reason)
        return recorded.count if recorded is not None else 0

    def forget(self, regarding: Object) -> None:
        self._recorded.pop((type(regarding), regarding.key), None)
