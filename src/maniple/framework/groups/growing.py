"""How a job becomes a tree: KAI's sub-groups, Volcano's policies and roles, or a single pod set.

Names of tiers and soft wishes are settled here: afterwards a limit is a tier, or there is none.
"""

import re
from typing import TYPE_CHECKING

import numpy as np

from maniple.cluster.domains import ROOT
from maniple.cluster.facts import GroupFacts, SubGroupRule, TopologyWish
from maniple.framework.groups.tree import DEFAULT, NO_TASKS, Group, Limit, PodSet, TaskRows
from maniple.objects.selectors import matches

if TYPE_CHECKING:
    from maniple.framework.session import Session

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def grown(session: "Session", job: int, *, undivided: bool) -> Group:
    """The tree of a job. `undivided`: it is known to be one pod set with all of its tasks."""
    facts, rows = session.job_facts(job), session.tasks_of(job)
    root = Group(job, wish=facts.level_wish, limit=_limit(session, facts.topology, None))
    if undivided:
        root.pod_sets.append(_whole(root, facts.minimum, rows))
    elif facts.groups and _is_tree(facts.groups):
        _hang(session, root, facts.groups, rows)
    elif facts.sub_groups:
        _by_policies(session, root, facts.sub_groups, rows)
    elif facts.role_minimums:
        _by_roles(session, root, rows)
    else:
        _as_one(session, root, rows)
    return root


def _whole(root: Group, minimum: int, rows: TaskRows) -> PodSet:
    return PodSet(0, root.job, DEFAULT, minimum, rows, root, limit=root.limit, whole=True, size=minimum)


def _as_one(session: "Session", root: Group, rows: TaskRows) -> None:
    facts = session.job_facts(root.job)
    roles = session.tasks.role[rows]
    ours = (roles < 0) | (roles == _role_of(session, DEFAULT)) | (not facts.closed)
    minimum = facts.minimum
    forgets = not session.rules.gangs.malformed_groups_keep_minimum
    if forgets and facts.groups and not _is_circle(facts.groups):
        minimum, root.wish = 1, None
    only = _whole(root, minimum, rows)
    if not ours.all():
        only.rows, only.whole = rows[ours], False
    root.pod_sets.append(only)
    if facts.groups:
        session.report(
            f"PodGroup {session.job_key(root.job)}: spec.subGroups: a parent is missing, a name is used"
            " twice, or the groups form a circle; they are ignored"
        )


# -- KAI's sub-groups --------------------------------------------------------------------------------------------------


def _hang(session: "Session", root: Group, groups: tuple[GroupFacts, ...], rows: TaskRows) -> None:
    """Put every group under its parent: groups where others follow, pod sets at the ends."""
    parents = {one.parent for one in groups}
    inner = {"": root} | {
        one.name: Group(root.job, one.name, one.wish) for one in groups if one.name in parents
    }
    number = 0
    for one in groups:
        above = inner[one.parent]
        if one.name in inner:
            inner[one.name].parent = above
            above.groups.append(inner[one.name])
        else:
            own = rows[session.tasks.role[rows] == _role_of(session, one.name)]
            above.pod_sets.append(PodSet(number, root.job, one.name, one.minimum, own, above, one.wish))
            number += 1


def _is_tree(groups: tuple[GroupFacts, ...]) -> bool:
    """Every parent is there, no name is used twice, and no group is inside itself."""
    above = {one.name: one.parent for one in groups}
    return len(above) == len(groups) and all(_reaches_the_top(above, name) for name in above)


def _is_circle(groups: tuple[GroupFacts, ...]) -> bool:
    """Every parent is there and no name is used twice."""
    names = {one.name for one in groups}
    return len(names) == len(groups) and all(not one.parent or one.parent in names for one in groups)


def _reaches_the_top(above: dict[str, str], name: str) -> bool:
    for _ in range(len(above)):
        if name not in above:
            return False
        name = above[name]
        if not name:
            return True
    return False


# -- Volcano's policies ------------------------------------------------------------------------------------------------


def _by_policies(session: "Session", root: Group, rules: tuple[SubGroupRule, ...], rows: TaskRows) -> None:
    """A pod set for the tasks of each policy with equal label values; the first policy that selects a task has it."""
    root.split = True
    root.least = {rule.name: rule.least for rule in rules}
    parts: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    pods = session.cluster.tasks.pods
    for row in rows.tolist():
        parts.setdefault(_part_of(session, rules, pods[row].metadata.labels), []).append(row)
    made = [
        _selected(session, root, rules, number, values, np.array(members, dtype=np.int64))
        for (number, values), members in parts.items()
    ]
    made.sort(key=lambda one: one.name if one.policy else "")
    root.pod_sets = made
    _set_minimums(session, root)


def _part_of(
    session: "Session", rules: tuple[SubGroupRule, ...], labels: dict[str, str]
) -> tuple[int, tuple[str, ...]]:
    for number, rule in enumerate(rules):
        if rule.selector is not None and not matches(rule.selector, labels):
            continue
        values = tuple(labels.get(key, "") for key in rule.keys)
        if all(values) and (values or session.rules.gangs.policies_without_keys_match):
            return number, values
    return -1, ()


def _selected(
    session: "Session",
    root: Group,
    rules: tuple[SubGroupRule, ...],
    number: int,
    values: tuple[str, ...],
    tasks: TaskRows,
) -> PodSet:
    """The pod set of tasks with these values. A number below 0: no policy selects them."""
    if number < 0:
        return PodSet(0, root.job, DEFAULT, 0, tasks, root, limit=root.limit, size=1)
    rule = rules[number]
    first = values[0] if values else ""
    return PodSet(
        number=0,
        job=root.job,
        name=f"{rule.name}-{'-'.join(values)}",
        minimum=0,
        rows=tasks,
        parent=root,
        limit=_limit(session, rule.topology, root.limit),
        policy=rule.name,
        size=rule.size,
        index=int(first) if _INTEGER.fullmatch(first) else 0,
    )


def _set_minimums(session: "Session", root: Group) -> None:
    """Pod sets that the job can do without have no minimum; those that it lacks wait for their pods."""
    needed, minimum = 0, session.job_facts(root.job).minimum
    taken: dict[str, int] = {}
    for number, one in enumerate(root.pod_sets):
        taken[one.policy] = taken.get(one.policy, 0) + 1
        wanted = taken[one.policy] <= root.least.get(one.policy, 0) or needed < minimum
        one.number, one.unit = number, min(one.size, len(one.rows))
        one.minimum = one.unit if wanted else 0
        needed += one.minimum
    for policy, least in root.least.items():
        if taken.get(policy, 0) < least:
            number = len(root.pod_sets)
            root.pod_sets.append(PodSet(number, root.job, policy, least, NO_TASKS, root, absent=True))
    _raise_minimums(root.pod_sets, minimum)


def _limit(session: "Session", wish: TopologyWish | None, around: Limit | None) -> Limit | None:
    """A wish as a tier. A soft one inside a bounded job goes as far as the job may."""
    if wish is None:
        return None
    domains = session.domains
    if wish.mode == "soft":
        bounded = around is not None and around.highest is not None
        return Limit(around.highest if bounded and around else int(domains.tier[ROOT]), wished=True)
    if wish.highest_tier is not None or not wish.highest_tier_name:
        return Limit(wish.highest_tier)
    tier = domains.tier_names.get(wish.highest_tier_name)
    return Limit(tier, unknown="" if tier is not None else wish.highest_tier_name)


# -- Volcano's roles ---------------------------------------------------------------------------------------------------


def _by_roles(session: "Session", root: Group, rows: TaskRows) -> None:
    """A pod set for every role with a minimum, and one for the rest.

    The rest is the first to give what the job needs beyond these minimums.
    """
    facts, roles = session.job_facts(root.job), session.tasks.role[rows]
    named = {name: _role_of(session, name) for name in sorted(facts.role_minimums)}
    parts = [(DEFAULT, rows[~np.isin(roles, list(named.values()))], 0)]
    parts += [(name, rows[roles == role], facts.role_minimums[name]) for name, role in named.items()]
    for name, own, minimum in parts:
        if len(own) or minimum:
            root.pod_sets.append(PodSet(len(root.pod_sets), root.job, name, minimum, own, root))
    _raise_minimums(root.pod_sets, facts.minimum)


def _role_of(session: "Session", name: str) -> int:
    # Names are compared as they are; a role that no task has is no role.
    known = session.cluster.tasks.known_role(name)
    return -2 if known is None else known


def _raise_minimums(pod_sets: list[PodSet], needed: int) -> None:
    """What a job needs beyond the minimums of its parts, they need together: each as much as it has, in order.

    What is then still missing has no pods yet. The first part needs it, so that the job waits for them.
    """
    lack = needed - sum(one.minimum for one in pod_sets)
    for one in pod_sets:
        more = min(max(lack, 0), max(len(one.rows) - one.minimum, 0))
        one.minimum += more
        lack -= more
    if lack > 0 and pod_sets:
        pod_sets[0].minimum += lack
