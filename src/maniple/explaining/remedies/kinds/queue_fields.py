"""Fields of queues that are raised: what `queues.py` and `weights.py` have in common."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from maniple.explaining.remedies.search import Levels
from maniple.explaining.remedies.subject import Subject, setting
from maniple.explaining.remedies.values import Change, Step
from maniple.objects.meta import Object

GPU = "nvidia.com/gpu"
KAI_NAMES = {"gpu": GPU, "cpu": "cpu", "memory": "memory"}
_GPU_PARTS = ("gpu-fraction", "gpu-memory")


class Field(Protocol):
    """A field of a queue that can be raised in steps."""

    @property
    def queue(self) -> Object: ...
    @property
    def path(self) -> tuple[Step, ...]: ...
    @property
    def stated(self) -> object: ...
    def value(self, level: int) -> object: ...


AnyField = TypeVar("AnyField", bound=Field)


def raised(fields: Sequence[AnyField], levels: Levels) -> list[tuple[AnyField, int]]:
    """The fields that are raised, and by how many steps."""
    return [(one, level) for one, level in zip(fields, levels, strict=True) if level]


def changes(fields: Sequence[Field], levels: Levels) -> tuple[Change, ...]:
    return tuple(
        setting(one.queue, one.path, one.stated, one.value(level)) for one, level in raised(fields, levels)
    )


def shares_gpus(subject: Subject) -> bool:
    """Whether a pod requests a part of a GPU, which is no resource of it."""
    return any(name in kind.sample.metadata.annotations for kind in subject.kinds for name in _GPU_PARTS)


__all__ = ["GPU", "KAI_NAMES", "changes", "raised", "shares_gpus"]
