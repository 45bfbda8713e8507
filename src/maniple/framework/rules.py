"""Rules: the choices in which the systems differ, each one a named field with a sentence for what `True` means.

A profile chooses a value of `Rules` when a session opens (`profiles/rules.py`); below the profiles nothing
asks which system it is. The defaults here are what Maniple does of its own accord, so a preset lists only
where a system differs. The table of all of them is docs/rules.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")
_SENTENCE = "sentence"


def _rule(default: T, sentence: str) -> T:
    """A field with its sentence. Typed as its value, as `dataclasses.field` is."""
    made: Any = field(default=default, metadata={_SENTENCE: sentence})
    value: T = made
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class GangRules:
    """When a gang is complete, and which of its pods come next."""

    broken_first: bool = _rule(True, "A gang that has lost some of its pods is served before the others.")
    gated_pods_count: bool = _rule(
        False, "A pod that requests nothing counts as ready even while it waits behind a scheduling gate."
    )
    needed_pods_first: bool = _rule(
        True,
        "Within a gang, pods with a nominated node or of a role that lacks some are placed first.",
    )
    backfilled_in_parts: bool = _rule(
        False,
        "Backfill binds every pod that finds a node, without regard to the rest of its gang or its topology.",
    )
    policies_without_keys_match: bool = _rule(
        True, "A sub-group policy without matchLabelKeys gathers what its selector matches in one sub-group."
    )
    malformed_groups_keep_minimum: bool = _rule(
        True, "A gang whose sub-groups are malformed keeps its own minimum and topology constraint."
    )
    trials_are_remembered: bool = _rule(
        False, "What a gang asked for next in a trial stays its next request once those pods are evicted."
    )
    roles_are_pod_sets: bool = _rule(
        True, "The roles of a gang are pod sets, each placed by itself, not a condition on the whole gang."
    )
    wait_for_pods: bool = _rule(True, "A gang is tried only when each of its pod sets has enough pods.")
    half_gangs_are_taken_back: bool = _rule(
        True,
        "Bound pods of a gang below its minimum are evicted after the staleness grace period if none has started.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacingRules:
    """Which nodes a pod may take, and which one it takes."""

    idle_before_releasing: bool = _rule(
        True, "Idle resources come before resources that are being released, whatever the scores say."
    )
    cleared_room_is_kept: bool = _rule(
        True, "Room that was cleared for a job is nominated, remembered, and offered to it before all others."
    )
    node_conditions_count: bool = _rule(
        True, "A node takes no pod while its conditions report a problem, even before it is tainted."
    )
    leaving_pods_hold_places: bool = _rule(
        False, "A pod that was leaving when the cycle began still counts towards the node's limit of pods."
    )
    affinity_of_new_pods_counts: bool = _rule(
        True, "Affinity terms of pods placed in this cycle count on every node."
    )
    evicted_pods_keep_neighbours_away: bool = _rule(
        False, "Ports and affinity terms of a pod evicted in this cycle count until the pod is gone."
    )
    errors_outlive_placements: bool = _rule(
        False, "A node stays rejected for a role even if pods placed since have opened it."
    )
    lent_resources_score: bool = _rule(
        True, "Scores count what a node offers beyond its allocatable amounts (oversubscription)."
    )
    windows_cross_midnight: bool = _rule(
        True, "A time window that ends before it begins goes on until the next day."
    )
    leaving_pods_satisfy_affinity: bool = _rule(
        False, "Required pod affinity may rely on a pod that is leaving."
    )
    pods_without_requests_need_places: bool = _rule(
        True, "A pod that requests nothing waits for a place within the node's limit of pods."
    )
    owed_gpus_count: bool = _rule(
        False,
        "A node that owes GPUs takes no pod, and a pod that requests nothing avoids one that owes anything.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TopologyRules:
    """Which domains of the network a job may take."""

    broken_domain_stops_all: bool = _rule(
        False, "One malformed HyperNode stops every job that has a topology constraint."
    )
    unkept_constraints_are_dropped: bool = _rule(
        False, "A hard constraint that no plugin keeps, or that names an unknown tier, is dropped."
    )
    remembered_domain_decides: bool = _rule(
        False, "A job is where the last decision put it, even if its pods take up a wider domain."
    )
    domains_hold_all_waiting: bool = _rule(
        False, "A domain needs room for all waiting pods of a sub-group, not only for those that it lacks."
    )
    roles_are_forgotten: bool = _rule(
        False, "task-topology does not know which roles were on a node before the cycle."
    )
    finished_pods_hold_buckets: bool = _rule(
        False, "In task-topology, pods that have finished still tie their bucket to a node."
    )
    mixed_parts_are_refused: bool = _rule(
        False, "A constrained group whose pods request different parts of a GPU is rejected."
    )
    required_level_is_deepest: bool = _rule(
        True, "The common domain of a group's nodes is not looked for below the level that it requires."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class VictimRules:
    """Which pods may be evicted for others, and how victims are looked for."""

    tiers_are_alternatives: bool = _rule(
        False, "Pods that the plugins of one tier protect may be given up by the next tier."
    )
    sought_pod_by_pod: bool = _rule(
        False, "Victims are looked for pod by pod and node by node, not for all that a job lacks."
    )
    served_jobs_stop: bool = _rule(
        True, "Preemption within a job ends as soon as the job is no longer starving."
    )
    free_nodes_are_taken: bool = _rule(
        False, "Preemption of single pods also takes a node where the pod fits without a victim."
    )
    never_preempting_pods_ask: bool = _rule(
        False, "A pod with preemptionPolicy Never has its turn among the pods that ask for room."
    )
    neighbours_counted_before: bool = _rule(
        False, "Preemption counts the pods around a node once, before any victim leaves."
    )
    trials_are_lenient: bool = _rule(
        False,
        "Topology-aware preemption asks few filters and no final queue limit while victims leave on trial.",
    )
    cost_is_of_last_victim: bool = _rule(
        False, "Topology-aware preemption compares nodes by their last victim's priority, not the highest."
    )
    shuffle_spares_non_preemptable: bool = _rule(
        True, "Shuffle does not evict pods that are not preemptable."
    )
    trials_place_pod_by_pod: bool = _rule(
        False, "While victims leave on trial, pods are placed one at a time, as scores see earlier claims."
    )
    moved_pods_are_put_back: bool = _rule(
        False, "A moved pod that is evicted again and gets the node that it left is put back where it was."
    )
    unreadable_zones_are_cleared: bool = _rule(
        False, "tdm evicts from a revocable zone whose time window cannot be read."
    )
    added_one_by_one: bool = _rule(
        False,
        "Victims are added one by one in their order, and every step is tried, "
        "even if an earlier victim could be spared.",
    )
    search_is_bounded: bool = _rule(True, "The search for victims has a budget of trials in each cycle.")
    larger_requests_fail_too: bool = _rule(
        True, "A failed search rules out jobs that request at least as much, not only those that are alike."
    )
    new_pods_are_evicted: bool = _rule(
        False, "A pod that was placed in this cycle and has to give way is evicted, not placed anew."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class GangEvictionRules:
    """How gangpreempt and gangreclaim clear a domain."""

    asks_protectors: bool = _rule(
        True, "Plugins that protect pods from preempt or reclaim also protect them from gang eviction."
    )
    serves_minimum: bool = _rule(True, "A gang whose extra pods do not fit is served up to its minimum.")
    free_room_first: bool = _rule(True, "Free room is tried before any victim is taken.")
    takes_what_helps: bool = _rule(
        True,
        "Only victims on nodes that help are taken, surplus pods one by one, and needless ones are spared.",
    )
    approved_at_once: bool = _rule(
        False, "Plugins are asked about all victims at once, before any of them is taken."
    )
    surplus_protects_gang: bool = _rule(
        True, "A job that must not lose its surplus pods must not lose the others either."
    )
    gangs_go_everywhere: bool = _rule(
        True, "A gang that breaks is evicted everywhere, not only in the domain that is cleared."
    )
    waiting_pods_are_held: bool = _rule(
        False, "What the waiting pods of a victim's job request counts as held by the job."
    )
    sub_groups_lost_with_one_pod: bool = _rule(
        False, "A sub-group counts as lost with its first evicted pod, even one beyond its minimum."
    )
    claimed_room_is_free: bool = _rule(False, "Room in the domain that other pods wait for counts as free.")
    places_pod_by_pod: bool = _rule(
        False, "Pods are placed one by one on any node that only lacks room, not class by class."
    )
    later_sub_groups_wait: bool = _rule(
        False, "Sub-groups beyond those that make the job pipelined are left for a later cycle."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetRules:
    """Disruption budgets, and how load is evened out."""

    name_victims: bool = _rule(
        False, "PodDisruptionBudgets name victims for shuffle: every running pod that they do not protect."
    )
    count_evictions: bool = _rule(
        True, "What this cycle has evicted is taken off PodDisruptionBudgets for later questions."
    )
    spare_unlabelled_pods: bool = _rule(False, "The plugin pdb spares every pod without labels.")
    unstated_spares_one_per_question: bool = _rule(
        False, "A job that states no budget may lose one pod per question, not one per cycle."
    )
    unreadable_is_zero: bool = _rule(
        False, "A job's budget that cannot be read counts as 0 instead of protecting the job."
    )
    short_jobs_lose_one: bool = _rule(
        False, "A job that runs fewer pods than its budget demands may lose one more."
    )
    unmeasured_nodes_are_idle: bool = _rule(
        False, "Rescheduling takes a node without a fresh measurement for idle."
    )
    measured_only_in_ten_minutes: bool = _rule(
        False, "Rescheduling uses measurements only with metricsPeriod 10m."
    )
    rescheduling_overdraws: bool = _rule(
        False, "Rescheduling stops only where the room on idle nodes comes out at exactly 0."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueRules:
    """Which queue is next, what it may have, and which jobs it admits."""

    only_leaves_take_jobs: bool = _rule(
        True, "Queues form a tree of which only the leaves take jobs, and a queue counts the jobs below it."
    )
    ties_by_name: bool = _rule(
        False, "Jobs and queues that nothing else tells apart are ordered by name, not by UID."
    )
    closed_take_jobs: bool = _rule(
        False, "A queue that is not open still admits jobs without minResources and is backfilled."
    )
    preemptors_enter: bool = _rule(
        True, "A full queue admits a job that could preempt less important jobs of the queue."
    )
    rounding_errors_count: bool = _rule(
        False, "A computed share that falls short of a whole unit by a rounding error loses the unit."
    )
    exhausted_scalars_are_unlimited: bool = _rule(
        False, "proportion: an extended resource of which nothing is free limits no queue's share."
    )
    reclaim_keeps_guarantees: bool = _rule(
        True, "proportion: reclaim takes no pod that its queue needs for what it is guaranteed."
    )
    new_quotas_hold: bool = _rule(True, "A ResourceQuota holds before its controller has written a status.")
    # hierarchies of queues in Volcano's plugins
    bad_queue_stops_all: bool = _rule(
        False, "capacity: one malformed queue of the hierarchy stops the whole cluster."
    )
    unnamed_limits_are_zero: bool = _rule(
        False, "capacity: a root that limits anything has nothing of the resources that it does not name."
    )
    deep_ties_are_equal: bool = _rule(
        False, "Queues whose branches compare equal are equal, whatever is further down."
    )
    ancestors_follow: bool = _rule(True, "capacity: the shares of ancestors follow what the cycle places.")
    reclaim_within_deserved: bool = _rule(
        True, "capacity: a queue reclaims nothing of which it would then have more than it deserves."
    )
    pathless_stand_apart: bool = _rule(
        True, "drf: a queue without a path has a branch of its own below the root."
    )
    # scheduling gates of queue admission
    gate_places_reach_ancestors: bool = _rule(
        True, "The place of an admitted pod counts in its queue's ancestors, too."
    )
    evicted_pods_keep_gate_places: bool = _rule(
        False, "An admitted pod that is evicted keeps the place that it was admitted with."
    )
    gate_places_are_final: bool = _rule(
        False, "Admitted pods have their places if all places together are within the ceiling."
    )
    # KAI's proportion
    older_first: bool = _rule(
        False, "Of queues that stand alike the older has its turn, of equally old ones the one that has it."
    )
    jobs_are_heaped: bool = _rule(
        False,
        "Jobs of a queue form a heap that is not reordered when one loses pods, and whose last entry is dropped.",
    )
    overdrawn_cluster_is_negative: bool = _rule(
        False, "What the queues divide may be negative where pods of others hold more than the nodes have."
    )
    leftovers_are_whole: bool = _rule(
        False, "What is left after shares were rounded is handed out in whole units only."
    )
    pods_elsewhere_count: bool = _rule(
        False, "A queue is charged for pods on nodes that do not exist or that are another scheduler's."
    )
    gpu_memory_counts: bool = _rule(True, "Requests by GPU memory count against the limits of queues.")
    slices_count_in_reclaim: bool = _rule(
        True, "Slices of GPUs (MIG) make GPUs a resource that a reclaim is about."
    )
    requested_resources_decide: bool = _rule(
        True, "A queue loses pods only because of resources that the reclaiming job requests."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceRules:
    """GPUs, shared cards and resource claims."""

    # shared cards of Volcano's deviceshare
    unhealthy_cards_are_used: bool = _rule(False, "deviceshare gives out cards that are unhealthy.")
    percentage_has_default_name: bool = _rule(
        True, "Percentages of a virtual GPU's memory are understood without a configured resource name."
    )
    spread_scores: bool = _rule(True, "The policy spread of virtual GPUs scores an unused card.")
    oversized_requests_pass: bool = _rule(
        False, "A request for more memory than an NPU has counts as nothing instead of being rejected."
    )
    missing_devices_pass: bool = _rule(
        False, "A node without devices of the requested kind is left to the check of resources."
    )
    undone_shares_stay_taken: bool = _rule(
        False, "Virtual GPUs that a job gave back in this cycle stay taken until its end."
    )
    # resource claims
    claims_shared_at_once: bool = _rule(
        True, "A resource claim that got its devices in this cycle serves further pods of the cycle."
    )
    zero_counts_limit: bool = _rule(True, "A queue's device count of 0 admits none of these devices.")
    admitted_jobs_keep_devices: bool = _rule(
        True, "Devices are kept for jobs that an earlier cycle admitted to the queue."
    )
    claims_count_per_pod: bool = _rule(
        False, "A shared claim counts against the queue once for every pod that uses it."
    )
    first_pod_stands_for_role: bool = _rule(
        False, "All pods of a role are taken to claim the same as the role's first pod."
    )
    # KAI's shared GPUs
    least_memory_is_measured: bool = _rule(
        True, "The least memory of a GPU is that of the nodes, not 100 MiB."
    )
    joining_takes_two_places: bool = _rule(
        False, "A pod that joins a shared GPU needs a place for a reservation pod, too."
    )
    sharing_attracts_all: bool = _rule(False, "Pods that request no GPU are drawn to nodes with shared GPUs.")
    whole_multiples_are_parts: bool = _rule(
        False, "A request for the memory of several whole GPUs fits as if it were part of one."
    )
    last_part_is_guessed: bool = _rule(
        False, "Whether a shared GPU is idle again is derived from the node's sums, claims included."
    )
    claims_made_one_by_one: bool = _rule(
        False, "Allocations become claims one after the other, so that a GPU that two share is miscounted."
    )
    reservations_have_places: bool = _rule(
        True, "Pods leave room on a node for the pods that reserve GPUs opened in the same cycle."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageRules:
    """Room for CSI volumes (`scheduleCSIStorage`)."""

    silent_drivers_are_asked: bool = _rule(
        False, "Drivers that do not report their capacity are expected to have some."
    )
    largest_volume_counts: bool = _rule(True, "No volume exceeds the maximumVolumeSize of a capacity.")
    several_capacities_cancel: bool = _rule(
        False, "A node that sees several capacities of a storage class has none of them."
    )
    unplaced_capacities_are_everywhere: bool = _rule(
        False, "A capacity without a node topology counts on every node."
    )
    claims_count_once: bool = _rule(True, "A claim that several pods of a node mount takes its room once.")
    binding_pods_hold_room: bool = _rule(True, "Volumes of pods that are being bound take up room.")
    moved_pods_take_room: bool = _rule(True, "Volumes of a pod that is moved take up room at its new node.")


@dataclass(frozen=True, kw_only=True, slots=True)
class WordRules:
    """How decisions are reported."""

    lacking_is_grouped: bool = _rule(
        False, "All resources that a node lacks are reported together, GPUs of every name as GPUs."
    )
    plain: bool = _rule(
        True, "Why jobs wait and pods are evicted is said in plain words, not in those of the original."
    )
    name_others: bool = _rule(
        False,
        "Messages to one namespace name jobs, pods and queues of others (option `messagesNameOthers`).",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """All rules of a session, by subject."""

    gangs: GangRules = GangRules()
    placing: PlacingRules = PlacingRules()
    topology: TopologyRules = TopologyRules()
    victims: VictimRules = VictimRules()
    gang_eviction: GangEvictionRules = GangEvictionRules()
    budgets: BudgetRules = BudgetRules()
    queues: QueueRules = QueueRules()
    devices: DeviceRules = DeviceRules()
    storage: StorageRules = StorageRules()
    words: WordRules = WordRules()

    def items(self) -> Iterator[tuple[str, str, bool]]:
        """Every rule: its name with the subject, its sentence, its value."""
        for subject in fields(self):
            part = getattr(self, subject.name)
            for one in fields(part):
                yield f"{subject.name}.{one.name}", one.metadata[_SENTENCE], getattr(part, one.name)


__all__ = [
    "BudgetRules",
    "DeviceRules",
    "GangEvictionRules",
    "GangRules",
    "PlacingRules",
    "QueueRules",
    "Rules",
    "StorageRules",
    "TopologyRules",
    "VictimRules",
    "WordRules",
]
