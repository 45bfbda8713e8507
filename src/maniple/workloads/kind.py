"""What a kind of workload is to the rest: its name, the fields that are read, and the functions that read them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from maniple.workloads.building import independent
from maniple.workloads.model import Chain, Member, Owner, Raw

Children = Callable[[Raw], Iterator[dict[str, Any]]]
# The object that a reference names; None if there is none.
Find = Callable[[Owner], Raw | None]


def no_children(owner: Raw) -> Iterator[dict[str, Any]]:
    """What the controller creates depends on what is not in the object."""
    return iter(())


def any_owner(chain: Chain) -> Member:
    """The pods of an owner of which nothing else is known: one by one, unless a minimum is said."""
    return Member(independent(chain))


@dataclass(frozen=True, slots=True)
class Kind:
    """`versions` are read alike, the newest first. `reads`: the fields, for the table of kinds in the docs.

    `leaves_to_others`: the next owner below decides. `ends_chain`: it decides, whatever owners are above it.
    `children_with`: in place of `children`, for a controller that reads another object besides the owner.
    `reads_of_pod`: labels and annotations of a pod that `member` reads, besides those that count for every kind
    (`wishes`), and `reads_pod_name`: whether it reads the name. Pods with the same values, owners and priority class
    are in the same set of the same group, and only one of them is read.
    """

    api_group: str
    name: str
    plural: str
    versions: tuple[str, ...]
    reads: tuple[str, ...]
    member: Callable[[Chain], Member] = any_owner
    children: Children = no_children
    children_with: Callable[[Raw, Find], Iterator[dict[str, Any]]] | None = None
    leaves_to_others: bool = False
    ends_chain: bool = False
    reads_of_pod: tuple[str, ...] = ()
    reads_pod_name: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.api_group, self.name
