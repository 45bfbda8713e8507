"""What every Kubernetes object has: metadata, labels and the selectors over them, conditions.

All other modules of this package build on these classes. Structs are frozen and never tracked by the garbage
collector (no object can refer back to itself); to change one, use `msgspec.structs.replace`. Attribute names
are the snake_case form of the names in the API.
"""

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Quantity = str | int | float
ResourceList = dict[str, Quantity]
# A time without a zone cannot be compared with one that has it, so reject it on loading.
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Record(msgspec.Struct, rename="camel", gc=False, omit_defaults=True, frozen=True, kw_only=True):
    """Base of every struct here; it only carries the settings."""


class OwnerReference(Record, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Record, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    resource_version: str = ""
    generation: Int64 = 0


class Requirement(Record, frozen=True, kw_only=True):
    """One expression of a label selector or of a node selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Record, frozen=True, kw_only=True):
    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class Condition(Record, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class Object(Record, frozen=True, kw_only=True):
    """A whole object; `api_group`, `kind` and `namespaced` belong to the class, not to the object."""

    api_group: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    namespaced: ClassVar[bool] = True

    metadata: ObjectMeta

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped kinds; an empty namespace reads as `default`."""
        if self.namespaced:
            return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"
        return self.metadata.name
