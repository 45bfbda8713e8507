"""A job's rules about its roles: which belong together on a node, which do not, and which come first.

Called by task-topology. Read from the pod group's annotations volcano.sh/task-topology-affinity and
-anti-affinity, groups of roles as "a,b;c", and volcano.sh/task-topology-task-order, "a,b,c". A group of one
role is about tasks of that role among themselves, a larger one about tasks of different roles in it. A role
that no task of the job has, or that appears twice in a group, makes all of it invalid.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
ORDER = "volcano.sh/task-topology-task-order"
ANNOTATIONS = (AFFINITY, ANTI_AFFINITY, ORDER)

Pair = tuple[str, str]
Groups = list[list[str]]

# Which kind of rule a role's tasks are placed for first.
_SELF_ANTI, _INTER, _SELF, _INTER_ANTI = 4, 3, 2, 1


class RolesError(ValueError):
    """The annotations cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class RoleRules:
    """Pairs are in both directions, a role with itself included.

    `ranks`: the higher first, for roles that any rule names.
    """

    together: frozenset[Pair]
    apart: frozenset[Pair]
    ranks: Mapping[str, tuple[int, int]]

    @classmethod
    def read(cls, annotations: Mapping[str, str], roles: Collection[str]) -> "RoleRules":
        """Raises RolesError."""
        together = _groups(annotations, AFFINITY, roles)
        apart = _groups(annotations, ANTI_AFFINITY, roles)
        order = annotations[ORDER].split(",") if ORDER in annotations else []
        _check(ORDER, order, roles)
        kinds: dict[str, int] = {}
        _rank(kinds, together, _SELF, _INTER)
        _rank(kinds, apart, _SELF_ANTI, _INTER_ANTI)
        wanted = {role: len(order) - place for place, role in enumerate(order)}
        ranks = {role: (wanted.get(role, 0), kind) for role, kind in kinds.items()}
        return cls(frozenset(_pairs(together)), frozenset(_pairs(apart)), ranks)

    def draw(self, role: str, others: Mapping[str, int]) -> int:
        """The affinity of these roles, by their number of tasks, to one of this role."""
        return self._count(self.together, role, others) + self.push(role, others)

    def push(self, role: str, others: Mapping[str, int]) -> int:
        """The anti-affinity part of it, as a number up to 0."""
        return -self._count(self.apart, role, others)

    @staticmethod
    def _count(pairs: frozenset[Pair], role: str, others: Mapping[str, int]) -> int:
        return sum(count for other, count in others.items() if (role, other) in pairs)


def _groups(annotations: Mapping[str, str], key: str, roles: Collection[str]) -> Groups:
    if key not in annotations:
        return []
    groups = [group.split(",") for group in annotations[key].split(";")]
    for group in groups:
        _check(key, group, roles)
    return groups


def _check(key: str, named: Iterable[str], roles: Collection[str]) -> None:
    seen: set[str] = set()
    for role in named:
        if not role:
            continue  # empty, as after a trailing comma
        if role not in roles:
            raise RolesError(f"{key}: no task has the role {role!r}")
        if role in seen:
            raise RolesError(f"{key}: the role {role!r} appears twice in a group")
        seen.add(role)


def _rank(kinds: dict[str, int], groups: Groups, alone: int, several: int) -> None:
    for group in groups:
        kind = alone if len(group) == 1 else several
        for role in group:
            kinds[role] = max(kinds.get(role, 0), kind)


def _pairs(groups: Groups) -> Iterable[Pair]:
    for group in groups:
        if len(group) == 1:
            yield group[0], group[0]
        for one, other in combinations(group, 2):
            yield one, other
            yield other, one
