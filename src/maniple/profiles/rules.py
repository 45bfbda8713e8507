"""The rules of each profile: the defaults, and those of `compat: strict`, which decides as the original does.

A preset names only what differs from `framework/rules.py`. docs/rules.md has the whole table.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from maniple.framework.rules import (
    BudgetRules,
    DeviceRules,
    GangEvictionRules,
    GangRules,
    PlacingRules,
    QueueRules,
    Rules,
    StorageRules,
    TopologyRules,
    VictimRules,
    WordRules,
)

MANIPLE_RULES = Rules()

VOLCANO_RULES = Rules(
    gangs=GangRules(roles_are_pod_sets=False, wait_for_pods=False),
    queues=QueueRules(only_leaves_take_jobs=False),
    words=WordRules(plain=False),
)

VOLCANO_STRICT_RULES = Rules(
    gangs=GangRules(
        broken_first=False,
        gated_pods_count=True,
        needed_pods_first=False,
        backfilled_in_parts=True,
        policies_without_keys_match=False,
        roles_are_pod_sets=False,
        wait_for_pods=False,
        half_gangs_are_taken_back=False,
    ),
    placing=PlacingRules(
        cleared_room_is_kept=False,
        node_conditions_count=False,
        leaving_pods_hold_places=True,
        affinity_of_new_pods_counts=False,
        errors_outlive_placements=True,
        lent_resources_score=False,
        windows_cross_midnight=False,
        leaving_pods_satisfy_affinity=True,
        pods_without_requests_need_places=False,
    ),
    topology=TopologyRules(
        broken_domain_stops_all=True,
        unkept_constraints_are_dropped=True,
        remembered_domain_decides=True,
        domains_hold_all_waiting=True,
        roles_are_forgotten=True,
        finished_pods_hold_buckets=True,
    ),
    victims=VictimRules(
        tiers_are_alternatives=True,
        sought_pod_by_pod=True,
        served_jobs_stop=False,
        free_nodes_are_taken=True,
        never_preempting_pods_ask=True,
        neighbours_counted_before=True,
        trials_are_lenient=True,
        cost_is_of_last_victim=True,
        shuffle_spares_non_preemptable=False,
        unreadable_zones_are_cleared=True,
    ),
    gang_eviction=GangEvictionRules(
        asks_protectors=False,
        serves_minimum=False,
        free_room_first=False,
        takes_what_helps=False,
        approved_at_once=True,
        surplus_protects_gang=False,
        gangs_go_everywhere=False,
        waiting_pods_are_held=True,
        sub_groups_lost_with_one_pod=True,
        claimed_room_is_free=True,
        places_pod_by_pod=True,
        later_sub_groups_wait=True,
    ),
    budgets=BudgetRules(
        name_victims=True,
        count_evictions=False,
        spare_unlabelled_pods=True,
        unstated_spares_one_per_question=True,
        unreadable_is_zero=True,
        short_jobs_lose_one=True,
        unmeasured_nodes_are_idle=True,
        measured_only_in_ten_minutes=True,
        rescheduling_overdraws=True,
    ),
    queues=QueueRules(
        only_leaves_take_jobs=False,
        closed_take_jobs=True,
        preemptors_enter=False,
        rounding_errors_count=True,
        exhausted_scalars_are_unlimited=True,
        reclaim_keeps_guarantees=False,
        new_quotas_hold=False,
        bad_queue_stops_all=True,
        unnamed_limits_are_zero=True,
        deep_ties_are_equal=True,
        ancestors_follow=False,
        reclaim_within_deserved=False,
        pathless_stand_apart=False,
        gate_places_reach_ancestors=False,
        evicted_pods_keep_gate_places=True,
        gate_places_are_final=True,
        pods_elsewhere_count=True,
    ),
    devices=DeviceRules(
        unhealthy_cards_are_used=True,
        percentage_has_default_name=False,
        spread_scores=False,
        oversized_requests_pass=True,
        missing_devices_pass=True,
        undone_shares_stay_taken=True,
        claims_shared_at_once=False,
        zero_counts_limit=False,
        admitted_jobs_keep_devices=False,
        claims_count_per_pod=True,
        first_pod_stands_for_role=True,
    ),
    words=WordRules(plain=False, explained=False),
)

KAI_RULES = Rules(
    gangs=GangRules(half_gangs_are_taken_back=False),  # its action stalegangeviction does more
    placing=PlacingRules(idle_before_releasing=False, owed_gpus_count=True),
    victims=VictimRules(never_preempting_pods_ask=True),
    queues=QueueRules(ties_by_name=True),
    words=WordRules(lacking_is_grouped=True, plain=False),
)

KAI_STRICT_RULES = Rules(
    gangs=GangRules(
        malformed_groups_keep_minimum=False, trials_are_remembered=True, half_gangs_are_taken_back=False
    ),
    placing=PlacingRules(
        idle_before_releasing=False,
        cleared_room_is_kept=False,
        evicted_pods_keep_neighbours_away=True,
        leaving_pods_satisfy_affinity=True,
        pods_without_requests_need_places=False,
        owed_gpus_count=True,
    ),
    topology=TopologyRules(mixed_parts_are_refused=True, required_level_is_deepest=False),
    victims=VictimRules(
        never_preempting_pods_ask=True,
        trials_place_pod_by_pod=True,
        moved_pods_are_put_back=True,
        added_one_by_one=True,
        search_is_bounded=False,
        larger_requests_fail_too=False,
        new_pods_are_evicted=True,
    ),
    queues=QueueRules(
        ties_by_name=True,
        older_first=True,
        jobs_are_heaped=True,
        overdrawn_cluster_is_negative=True,
        leftovers_are_whole=True,
        gpu_memory_counts=False,
        slices_count_in_reclaim=False,
        requested_resources_decide=False,
    ),
    devices=DeviceRules(
        least_memory_is_measured=False,
        joining_takes_two_places=True,
        sharing_attracts_all=True,
        whole_multiples_are_parts=True,
        last_part_is_guessed=True,
        claims_made_one_by_one=True,
        reservations_have_places=False,
    ),
    storage=StorageRules(
        silent_drivers_are_asked=True,
        largest_volume_counts=False,
        several_capacities_cancel=True,
        unplaced_capacities_are_everywhere=True,
        claims_count_once=False,
        binding_pods_hold_room=False,
        moved_pods_take_room=False,
    ),
    words=WordRules(lacking_is_grouped=True, plain=False, explained=False, name_others=True),
)


def with_options(rules: Rules, options: Mapping[str, Any]) -> Rules:
    """The rules, with those that an option decides."""
    given = options.get("messagesNameOthers")
    return rules if given is None else replace(rules, words=replace(rules.words, name_others=given))


__all__ = [
    "KAI_RULES",
    "KAI_STRICT_RULES",
    "MANIPLE_RULES",
    "VOLCANO_RULES",
    "VOLCANO_STRICT_RULES",
    "with_options",
]
