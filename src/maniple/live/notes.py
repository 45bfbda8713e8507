"""Events on objects, each recorded once.

While nothing new happens the same event is only counted. An event with a changed message is written again
after a while, so that a gang that is pending all day has a few events and not thousands.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from maniple.live.effects import Effect, Effects, Lane, Urgency
from maniple.live.pace import NUMBERS_SECONDS, apart
from maniple.live.port import EventType, Port
from maniple.objects.meta import Object

NEW_WORDS_SECONDS = 60.0


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
        self._effects.submit(
            Effect(
                lane=Lane(f"note on {regarding.api_group}/{regarding.kind}", regarding.key),
                aspect=reason,
                urgency=Urgency.NOTE,
                call=lambda: self._port.record_event(
                    regarding, event_type, reason, note, annotations=annotations
                ),
                done=lambda error: None,
                attempts=3,
            )
        )

    def clear(self, regarding: Object, reason: str) -> None:
        """It no longer applies; if it does again, that is new."""
        self._recorded.get((type(regarding), regarding.key), {}).pop(reason, None)

    def count(self, regarding: Object, reason: str) -> int:
        """How often it was recorded or would have been."""
        recorded = self._recorded.get((type(regarding), regarding.key), {}).get(reason)
        return recorded.count if recorded is not None else 0

    def forget(self, regarding: Object) -> None:
        self._recorded.pop((type(regarding), regarding.key), None)
