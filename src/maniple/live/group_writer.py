"""Groups that were made in memory, written to the cluster, and the annotations of their pods.

The scheduler calls `carry_out` between cycles; nothing that it decides waits for it. What is to be in the cluster is
compared with what the watch showed, and only a difference is written: a group is created, then its pods are annotated
once the watch has shown it, and it is patched when its owner asks for something else. A group that is deleted is
written again. PodGroups that were not written here are never changed.

`effects.py` repeats what is refused for a moment. What is refused for good is said in the log and on the pods, and
tried again after a while; until then the group in memory counts.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from maniple.live.effects import Effect, Effects, Lane, Urgency
from maniple.live.notes import Notes
from maniple.live.owners import OWNER_SECONDS
from maniple.live.permissions import AGAIN_SECONDS, Permissions
from maniple.live.port import NOT_FOUND, Port, status_of
from maniple.live.refs import Ref, kind_of, ref_of
from maniple.live.writing import Later, lane, now
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.profiles.named_grouping import NamedGrouper
from maniple.profiles.written_groups import (
    is_ours,
    patch_of,
    pod_patch,
    to_create,
    unwritable,
    waits,
)

ASPECT = "group"
NOT_WRITTEN = "GroupNotWritten"  # the reason of the event on pods
CONFIRM_SECONDS = 10.0  # after a write: if the watch has not shown it by then, it is written again
_FINISHED = ("Succeeded", "Failed")
_NEVER = float("inf")


@dataclass(eq=False, slots=True)
class _Sent:
    """The last write about a group or a pod; the same is not sent again before `until`."""

    what: object
    until: float = _NEVER
    confirmed: bool = False  # or refused: the watch is not going to show it


@dataclass(frozen=True, slots=True)
class _Write:
    """`about`: what is written, by the name under which it is kept here; `real`: the object."""

    about: Ref
    real: Ref
    verb: str
    what: object
    call: Callable[[], Awaitable[object]]

    @property
    def namespace(self) -> str:
        return self.real[1].partition("/")[0]


class GroupWriter:
    """`seen`: an object as the watch showed it; `otherwise`: what becomes of pods whose group is not written."""

    def __init__(
        self,
        groups: NamedGrouper,
        seen: Callable[[Ref], Object | None],
        port: Port,
        effects: Effects,
        notes: Notes,
        permissions: Permissions,
        report: Callable[[str], None],
        later: Later,
        otherwise: str,
    ) -> None:
        self._groups = groups
        self._seen = seen
        self._port = port
        self._effects = effects
        self._notes = notes
        self._permissions = permissions
        self._report = report
        self._later = later
        self._otherwise = otherwise
        self._sent: dict[Ref, _Sent] = {}
        self._due: dict[Ref, float] = {}  # what is looked at again without a change
        self._late: dict[Ref, float] = {}  # groups with a pod whose owner has not come: until when they wait
        self._said: dict[Ref, str] = {}  # by group: why it is not written, for pods that come later
        self._denied: dict[tuple[str, type[Object], str], float] = {}  # verb, kind, namespace: until when

    def carry_out(self) -> None:
        """Write what differs from the cluster."""
        moment = now()
        for ref in [one for one, due in self._due.items() if due <= moment]:
            del self._due[ref]
            self._groups.stale[ref] = None
        for key in [one for one, until in self._denied.items() if until <= moment]:
            del self._denied[key]
        stale, self._groups.stale = self._groups.stale, {}
        for ref in stale:
            write = self._next_write(ref)
            if write is None:
                self._sent.pop(ref, None)
            else:
                self._submit(write)

    def next_due(self) -> float | None:
        """When to call `carry_out` again."""
        return now() if self._groups.stale else min(self._due.values(), default=None)

    @property
    def settled(self) -> bool:
        """Whether the watch has shown everything that was written."""
        return not self._groups.stale and all(one.confirmed for one in self._sent.values())

    # -- what to write -----------------------------------------------------------------------------------------------

    def _next_write(self, ref: Ref) -> _Write | None:
        if ref[0] is Pod:
            return self._of_pod(ref)
        return self._of_group(ref) if ":" in ref[1] else self._of_object(ref)

    def _of_group(self, title: Ref) -> _Write | None:
        wanted = self._groups.wanted(title)
        self._said.pop(title, None)
        if wanted is None:
            self._late.pop(title, None)
            self._due.pop(title, None)
            return None
        real = ref_of(wanted)
        there = self._groups.objects.get(real)
        if there is not None and not is_ours(there, wanted):
            self._say(title, wanted, _conflict(wanted))
            return None
        patch = patch_of(there, wanted) if there is not None else None
        if patch == {} or not self._may_write(title, wanted, is_new=there is None):
            return None
        if patch is None:
            raw = to_create(wanted)
            return _Write(title, real, "create", raw, lambda: self._port.create(raw))
        return _Write(title, real, "patch", patch, lambda: self._port.patch_status(*real, patch, False))

    def _may_write(self, title: Ref, wanted: Object, *, is_new: bool) -> bool:
        why = unwritable(wanted)
        if why:
            if not waits(wanted):
                self._say(title, wanted, f"{_title(wanted)} is not written: {why}")
            return False
        if self._groups.is_absent(title[0]):
            self._report(
                f"{kind_of(title[0])} cannot be listed on this cluster, so groups of that kind are not written:"
                f" {self._otherwise}; install it with `maniple crds`, or allow to list it"
            )
            return False
        members = self._groups.members(wanted)
        if is_new and all(pod.status.phase in _FINISHED for pod in members):
            return False
        return self._owners_are_there(title, members)

    def _owners_are_there(self, title: Ref, members: list[Pod]) -> bool:
        """Whether the owners of all pods have come, or had the time to."""
        if all(self._groups.missing(pod.key) is None for pod in members):
            self._late.pop(title, None)
            return True
        until = self._late.setdefault(title, now() + OWNER_SECONDS)
        if until <= now():
            return True
        self._due[title] = until
        return False

    def _of_pod(self, ref: Ref) -> _Write | None:
        """A pod is annotated once its group is in the cluster."""
        there, wanted = self._seen(ref), self._groups.pod(ref[1])
        title = self._groups.title_of(ref[1])
        group = self._groups.wanted(title) if title is not None else None
        if not isinstance(there, Pod) or wanted is None or title is None or group is None:
            self._due.pop(ref, None)
            return None
        if not self._groups.written(ref_of(group)):
            self._due.pop(ref, None)
            if title in self._said:
                self._note(there, self._said[title])
            return None
        patch = pod_patch(there, wanted)
        # By the status, which takes no permission to patch pods.
        return (
            _Write(ref, ref, "patch", patch, lambda: self._port.patch_status(*ref, patch)) if patch else None
        )

    def _of_object(self, real: Ref) -> _Write | None:
        """A group that was written here and that no pod is in: the garbage collector deletes it with its owner."""
        there = self._groups.objects.get(real)
        if there is None or not self._groups.is_obsolete(real):
            self._due.pop(real, None)
            return None
        return _Write(real, real, "delete", there.metadata.uid, lambda: self._port.delete(there))

    # -- writing -----------------------------------------------------------------------------------------------------

    def _submit(self, write: _Write) -> None:
        ref, moment = write.about, now()
        denied = self._denied.get((write.verb, write.real[0], write.namespace))
        if denied is not None:
            self._due[ref] = denied
            return
        sent = self._sent.get(ref)
        if sent is not None and sent.what == write.what and moment < sent.until:
            if sent.until < _NEVER:
                self._due[ref] = sent.until
            return
        self._sent[ref] = mine = _Sent(write.what)
        # Not in the lane of the pod: its bind does not wait for an annotation.
        where = Lane("group of Pod", ref[1]) if ref[0] is Pod else lane(write.real)
        self._effects.submit(
            Effect(
                where,
                ASPECT,
                Urgency.STATUS,
                write.call,
                lambda error: self._later(lambda: self._ended(write, mine, error)),
            ),
            replaces=(ASPECT,),
        )

    def _ended(self, write: _Write, sent: _Sent, error: BaseException | None) -> bool:
        """A write was carried out or refused; no decision depends on it."""
        if error is not None:
            self._refused(write, error)
        if self._sent.get(write.about) is sent:
            sent.confirmed = error is not None
            sent.until = now() + (CONFIRM_SECONDS if error is None else AGAIN_SECONDS)
            self._due[write.about] = sent.until
        return False

    def _refused(self, write: _Write, error: BaseException) -> None:
        if status_of(error) == NOT_FOUND and write.verb != "create":
            return  # it is gone
        kind, key = write.real
        if self._permissions.missing(error, write.namespace) is not None:
            self._denied[write.verb, kind, write.namespace] = now() + AGAIN_SECONDS
            return
        text = f"{kind.kind} {key}: cannot {write.verb} it: {error}"
        if kind is Pod:
            self._report(f"{text}; {self._otherwise}")
            return
        wanted = self._groups.wanted(write.about)
        if wanted is not None:
            self._say(write.about, wanted, text)

    def _say(self, title: Ref, wanted: Object, text: str) -> None:
        """In the log, and on the pods of a group that is not written as it should be."""
        self._said[title] = text = f"{text}; {self._otherwise}"
        self._report(text)
        for pod in self._groups.members(wanted):
            there = self._seen((Pod, pod.key))
            if isinstance(there, Pod):
                self._note(there, text)

    def _note(self, pod: Pod, text: str) -> None:
        if pod.status.phase not in _FINISHED:
            self._notes.record(pod, "Warning", NOT_WRITTEN, text, now())


def _title(wanted: Object) -> str:
    return f"PodGroup {wanted.key}"


def _conflict(wanted: Object) -> str:
    owner = next((f"{one.kind} {one.name}" for one in wanted.metadata.owner_references), "these pods")
    return (
        f"{_title(wanted)} exists and was not written by Maniple for {owner}, so it is left as it is: delete it to have"
        " it written, or name it in the annotation of the pods"
    )
