"""For each rule the test that shows what it does, by its path below `tests`."""

WITNESSES = {
    "gangs.broken_first": "rules.test_scenes.test_a_gang_that_lost_pods_comes_first_except_in_volcano",
    "gangs.gated_pods_count": "rules.test_scenes.test_a_gated_pod_without_requests_counts_only_in_volcano",
    "gangs.needed_pods_first": (
        "actions.volcano.test_allocate_rules.test_tasks_that_roles_lack_come_before_those_that_the_gang_can_do_without"
    ),
    "gangs.backfilled_in_parts": (
        "actions.volcano.test_backfill_rules.test_a_gang_for_which_there_are_too_few_places_gets_none_except_in_the_original"
    ),
    "gangs.policies_without_keys_match": (
        "framework.test_group_shapes.test_a_policy_without_keys_takes_all_that_its_selector_means_as_one_and_nobody_in_the_original"
    ),
    "gangs.malformed_groups_keep_minimum": (
        "framework.test_groups.test_to_the_letter_a_parent_with_capitals_is_not_found_and_nothing_of_the_shape_is_left"
    ),
    "gangs.trials_are_remembered": (
        "framework.test_groups.test_to_the_letter_who_asks_first_decides_until_something_changes"
    ),
    "gangs.roles_are_pod_sets": "profiles.test_maniple_gangs.test_every_role_has_its_minimum",
    "gangs.wait_for_pods": (
        "cli.test_kai_reasons.test_a_job_without_enough_pods_is_reported_how_many_are_missing_and_has_no_condition"
    ),
    "gangs.half_gangs_are_taken_back": (
        "rules.test_scenes.test_half_a_gang_is_taken_back_after_a_time_except_in_volcano"
    ),
    "placing.idle_before_releasing": (
        "placement.test_mixed.test_by_points_a_task_may_wait_although_another_node_is_idle"
    ),
    "placing.cleared_room_is_kept": (
        "actions.volcano.test_allocate_topology.test_what_was_cleared_for_a_job_is_taken_as_it_stands"
    ),
    "placing.node_conditions_count": (
        "profiles.test_node_conditions.test_a_node_in_a_bad_condition_takes_no_pod"
    ),
    "placing.leaving_pods_hold_places": (
        "regressions.test_leaving_pods.test_a_place_that_a_pod_is_leaving_is_claimed"
    ),
    "placing.affinity_of_new_pods_counts": (
        "rules.test_scenes.test_a_recorded_cluster_is_decided_as_the_original_did"
    ),
    "placing.evicted_pods_keep_neighbours_away": (
        "plugins.kai.test_predicates.test_an_evicted_pod_keeps_its_port_strictly_only"
    ),
    "placing.errors_outlive_placements": (
        "actions.volcano.test_allocate_rules.test_to_the_letter_a_node_that_refused_a_role_is_not_asked_again_though_it_would_open"
    ),
    "placing.lent_resources_score": (
        "plugins.score.test_nodeorder_in_plans.test_what_a_node_lends_beyond_what_it_has_is_not_on_kube_schedulers_books"
    ),
    "placing.windows_cross_midnight": (
        "plugins.feasibility.test_tdm.test_a_window_over_midnight_is_open_after_midnight_but_not_in_volcano"
    ),
    "placing.leaving_pods_satisfy_affinity": (
        "plugins.feasibility.test_inter_pod.test_no_pod_relies_on_one_that_is_being_deleted"
    ),
    "placing.pods_without_requests_need_places": (
        "placement.test_mixed.test_a_task_that_hardly_asks_for_anything_waits_for_a_place_only"
    ),
    "placing.owed_gpus_count": "placement.test_lacking.test_a_node_that_owes_gpus_lacks_them_for_everybody",
    "topology.broken_domain_stops_all": (
        "actions.volcano.test_allocate_topology.test_in_strict_mode_it_stops_all_jobs_with_a_topology_and_no_other"
    ),
    "topology.unkept_constraints_are_dropped": (
        "actions.volcano.test_allocate_topology.test_a_hard_topology_that_nobody_keeps_makes_a_job_wait_unless_the_original_is_wanted"
    ),
    "topology.remembered_domain_decides": (
        "framework.test_group_shapes.test_tasks_outside_every_hyper_node_are_in_the_root_but_say_nothing_in_strict_mode"
    ),
    "topology.domains_hold_all_waiting": (
        "plugins.topology.test_network_topology_aware.test_a_sub_job_needs_room_for_its_waiting_tasks_or_else_for_those_it_lacks"
    ),
    "topology.roles_are_forgotten": (
        "plugins.topology.test_task_topology.test_those_placed_in_earlier_sessions_disturb_too_but_not_in_volcano"
    ),
    "topology.finished_pods_hold_buckets": (
        "plugins.topology.test_task_topology.test_pods_that_are_done_hold_no_bucket_but_do_in_volcano"
    ),
    "topology.mixed_parts_are_refused": (
        "plugins.kai.test_topology.test_different_parts_of_devices_are_refused_only_by_the_original"
    ),
    "topology.required_level_is_deepest": (
        "plugins.kai.test_topology.test_nodes_that_lack_a_label_are_outside"
    ),
    "victims.tiers_are_alternatives": (
        "actions.volcano.test_eviction.test_the_original_breaks_gangs_where_it_is_asked_to_be_strict"
    ),
    "victims.sought_pod_by_pod": (
        "actions.volcano.test_reclaim_rules.test_a_job_with_a_hard_topology_is_left_to_gangreclaim_but_not_in_the_original"
    ),
    "victims.served_jobs_stop": (
        "actions.volcano.test_preempt_rules.test_a_job_that_got_what_it_lacked_spares_its_own_tasks_except_to_the_letter"
    ),
    "victims.free_nodes_are_taken": (
        "actions.volcano.test_preempt_rules.test_to_the_letter_a_node_is_taken_where_the_task_fits_as_it_is"
    ),
    "victims.never_preempting_pods_ask": (
        "actions.volcano.test_gang_eviction.test_a_task_that_must_not_preempt_does_not_ask_except_in_the_original"
    ),
    "victims.neighbours_counted_before": (
        "actions.volcano.test_preempt_rules.test_victims_go_until_every_filter_lets_the_task_in_and_to_the_letter_pods_are_counted_before"
    ),
    "victims.trials_are_lenient": (
        "actions.volcano.test_topology_aware_preempt.test_the_limit_of_the_queue_is_looked_at_until_the_end_but_not_in_the_original"
    ),
    "victims.cost_is_of_last_victim": (
        "actions.volcano.test_topology_aware_preempt.test_in_the_original_the_last_to_leave_counts_as_the_most_important"
    ),
    "victims.shuffle_spares_non_preemptable": (
        "actions.volcano.test_shuffle.test_tasks_that_are_not_preemptable_are_left_alone_but_not_in_the_original"
    ),
    "victims.trials_place_pod_by_pod": (
        "actions.test_allocate_job.test_claims_of_a_dry_run_leave_idle_what_is_idle_to_the_letter"
    ),
    "victims.moved_pods_are_put_back": (
        "actions.test_allocate_job.test_to_the_letter_a_task_that_would_get_the_node_it_left_first_is_put_back_instead"
    ),
    "victims.unreadable_zones_are_cleared": (
        "plugins.feasibility.test_tdm.test_a_zone_whose_window_cannot_be_read_is_closed_but_cleared_only_by_volcano"
    ),
    "victims.added_one_by_one": (
        "actions.test_making_room.test_the_limit_counts_jobs_that_are_moved_and_not_those_that_are_looked_at"
    ),
    "victims.search_is_bounded": "actions.test_budget.test_zero_is_no_limit_and_the_original_has_none",
    "victims.larger_requests_fail_too": (
        "actions.test_signatures.test_more_is_passed_over_but_in_kai_another_number_of_pods_is_another_job"
    ),
    "victims.new_pods_are_evicted": "rules.test_scenes.test_a_pod_placed_in_the_same_cycle_is_placed_anew",
    "gang_eviction.asks_protectors": (
        "actions.volcano.test_gang_eviction.test_plugins_that_protect_tasks_from_preemption_are_asked_but_not_in_the_original"
    ),
    "gang_eviction.serves_minimum": (
        "actions.volcano.test_gang_eviction.test_a_job_whose_extras_do_not_fit_gets_its_minimum_but_nothing_in_the_original"
    ),
    "gang_eviction.free_room_first": (
        "rules.test_scenes.test_a_recorded_cluster_is_decided_as_the_original_did"
    ),
    "gang_eviction.takes_what_helps": (
        "actions.volcano.test_gang_eviction.test_plugins_that_protect_tasks_from_reclaim_are_asked_but_not_in_the_original"
    ),
    "gang_eviction.approved_at_once": (
        "actions.volcano.test_bundles.test_plugins_are_asked_about_more_and_more_but_about_all_at_once_in_the_original"
    ),
    "gang_eviction.surplus_protects_gang": (
        "actions.volcano.test_bundles.test_in_the_original_a_gang_breaks_although_what_it_can_spare_is_protected"
    ),
    "gang_eviction.gangs_go_everywhere": (
        "actions.volcano.test_bundles.test_in_the_original_a_whole_bundle_ends_with_its_domain"
    ),
    "gang_eviction.waiting_pods_are_held": (
        "actions.volcano.test_bundles.test_in_the_original_what_waits_counts_as_lost_with_a_whole_bundle"
    ),
    "gang_eviction.sub_groups_lost_with_one_pod": (
        "actions.volcano.test_bundles.test_a_sub_job_can_lose_what_it_has_beyond_its_minimum_but_not_in_the_original"
    ),
    "gang_eviction.claimed_room_is_free": (
        "rules.test_scenes.test_room_that_others_wait_for_is_free_for_a_gang_only_in_volcano"
    ),
    "gang_eviction.places_pod_by_pod": (
        "actions.volcano.test_gang_eviction.test_in_the_original_a_sub_job_that_does_not_become_whole_stops_its_job"
    ),
    "gang_eviction.later_sub_groups_wait": (
        "actions.volcano.test_gang_eviction.test_all_sub_jobs_are_placed_and_in_the_original_as_many_as_the_job_needs"
    ),
    "budgets.name_victims": "plugins.victims.test_pdb.test_volcano_names_every_unprotected_pod",
    "budgets.count_evictions": (
        "plugins.victims.test_in_plans.test_a_budget_holds_for_a_whole_session_but_in_volcano_only_for_a_question"
    ),
    "budgets.spare_unlabelled_pods": (
        "plugins.victims.test_pdb.test_pods_without_labels_are_victims_but_not_in_volcano"
    ),
    "budgets.unstated_spares_one_per_question": (
        "plugins.victims.test_job_budget.test_a_job_without_a_budget_loses_one_in_a_session_or_one_a_question"
    ),
    "budgets.unreadable_is_zero": (
        "plugins.victims.test_job_budget.test_a_budget_that_cannot_be_read_protects_and_counts_as_zero_in_volcano"
    ),
    "budgets.short_jobs_lose_one": (
        "plugins.victims.test_job_budget.test_a_job_below_its_least_loses_nothing_but_one_in_volcano"
    ),
    "budgets.unmeasured_nodes_are_idle": (
        "plugins.victims.test_rescheduling.test_nodes_that_were_not_measured_lately_take_no_part_but_count_as_idle_in_volcano"
    ),
    "budgets.measured_only_in_ten_minutes": (
        "plugins.victims.test_rescheduling.test_it_runs_once_per_interval_the_first_time_one_interval_after_the_start"
    ),
    "budgets.rescheduling_overdraws": (
        "plugins.victims.test_rescheduling.test_nothing_is_evicted_when_the_room_is_used_up_but_volcano_checks_only_for_zero"
    ),
    "queues.only_leaves_take_jobs": "rules.test_scenes.test_only_leaves_of_the_queue_tree_take_jobs",
    "queues.ties_by_name": (
        "framework.test_session_orders.test_the_older_job_comes_first_and_of_equally_old_ones_the_smaller_unique_id"
    ),
    "queues.closed_take_jobs": (
        "actions.volcano.test_enqueue_rules.test_nobody_enters_a_queue_that_is_not_open_but_in_the_original_a_job_without_a_minimum"
    ),
    "queues.preemptors_enter": "rules.test_scenes.test_a_recorded_cluster_is_decided_as_the_original_did",
    "queues.rounding_errors_count": (
        "plugins.fairness.test_overcommit.test_a_rounding_error_in_the_product_refuses_no_job_unless_strict"
    ),
    "queues.exhausted_scalars_are_unlimited": (
        "plugins.fairness.test_proportion.test_a_scalar_that_is_guaranteed_away_limits_others_unless_strict"
    ),
    "queues.reclaim_keeps_guarantees": (
        "plugins.fairness.test_proportion.test_reclaim_leaves_a_queue_its_guarantee_except_to_the_letter"
    ),
    "queues.new_quotas_hold": (
        "plugins.fairness.test_resourcequota.test_a_quota_without_a_status_holds_unless_strict"
    ),
    "queues.bad_queue_stops_all": (
        "plugins.fairness.test_capacity_bad_queues.test_strictly_a_bad_queue_stops_all_queues"
    ),
    "queues.unnamed_limits_are_zero": (
        "plugins.fairness.test_capacity_tree.test_what_a_root_with_limits_does_not_name_is_not_limited_unless_strict"
    ),
    "queues.deep_ties_are_equal": (
        "plugins.fairness.test_capacity_tree.test_branches_that_stand_equal_go_by_their_name_unless_strict"
    ),
    "queues.ancestors_follow": (
        "plugins.fairness.test_capacity_tree.test_ancestors_shares_follow_tasks_unless_strict"
    ),
    "queues.reclaim_within_deserved": (
        "plugins.fairness.test_capacity.test_a_queue_takes_nothing_that_it_then_has_too_much_of_except_in_the_original"
    ),
    "queues.pathless_stand_apart": (
        "plugins.fairness.test_hierarchy.test_a_queue_without_a_path_is_level_with_all_in_the_original_and_nothing_is_reclaimed"
    ),
    "queues.gate_places_reach_ancestors": (
        "plugins.fairness.test_capacity_gates.test_ancestors_keep_places_too"
    ),
    "queues.evicted_pods_keep_gate_places": (
        "plugins.fairness.test_capacity_gates.test_an_evicted_task_keeps_no_place_unless_strict"
    ),
    "queues.gate_places_are_final": (
        "plugins.fairness.test_capacity_gates.test_reservations_beyond_the_ceiling_delay_no_task_unless_strict"
    ),
    "queues.older_first": "plugins.kai.test_proportion_order.test_what_is_not_comparable_is_left_to_age",
    "queues.jobs_are_heaped": ("actions.test_order.test_the_original_drops_whoever_stands_last_in_the_heap"),
    "queues.overdrawn_cluster_is_negative": (
        "rules.test_scenes.test_pods_of_others_leave_nothing_to_divide_and_less_than_nothing_in_kai"
    ),
    "queues.leftovers_are_whole": "rules.test_scenes.test_a_leftover_gpu_is_given_whole_only_in_kai",
    "queues.pods_elsewhere_count": (
        "rules.test_scenes.test_pods_on_nodes_that_are_not_ours_fill_a_queue_only_in_volcano"
    ),
    "queues.gpu_memory_counts": (
        "plugins.kai.test_proportion_capacity.test_gpu_memory_counts_as_the_least_part_that_it_can_be_unless_strictly"
    ),
    "queues.slices_count_in_reclaim": (
        "plugins.kai.test_proportion_reclaim.test_strictly_slices_do_not_make_gpus_matter"
    ),
    "queues.requested_resources_decide": (
        "rules.test_scenes.test_a_queue_loses_nothing_for_an_unrequested_resource"
    ),
    "devices.unhealthy_cards_are_used": (
        "plugins.devices.test_virtual_gpu.test_an_unhealthy_card_is_not_given_except_in_the_original"
    ),
    "devices.percentage_has_default_name": (
        "plugins.devices.test_virtual_gpu.test_a_percentage_overrides_memory"
    ),
    "devices.spread_scores": (
        "plugins.devices.test_virtual_gpu.test_spread_scores_unused_cards_except_in_the_original"
    ),
    "devices.oversized_requests_pass": (
        "plugins.devices.test_ascend.test_more_than_a_card_has_is_refused_except_in_the_original"
    ),
    "devices.missing_devices_pass": (
        "plugins.devices.test_virtual_gpu.test_a_node_without_cards_refuses_except_in_the_original"
    ),
    "devices.undone_shares_stay_taken": (
        "plugins.devices.test_virtual_gpu.test_what_a_gang_took_in_vain_is_strictly_lost_for_the_cycle"
    ),
    "devices.claims_shared_at_once": (
        "plugins.feasibility.test_dynamic_resources.test_strictly_a_claim_is_the_first_pods_alone_until_it_is_written_down"
    ),
    "devices.zero_counts_limit": (
        "plugins.fairness.test_capacity_devices.test_a_count_of_zero_allows_none_unless_strict"
    ),
    "devices.admitted_jobs_keep_devices": (
        "plugins.fairness.test_capacity_devices.test_they_count_in_later_sessions_as_well_unless_strict"
    ),
    "devices.claims_count_per_pod": (
        "plugins.fairness.test_capacity_devices.test_a_shared_claim_is_wanted_once_unless_strict"
    ),
    "devices.first_pod_stands_for_role": (
        "plugins.fairness.test_capacity_devices.test_minimums_of_roles_say_how_many_tasks_count"
    ),
    "devices.least_memory_is_measured": (
        "framework.test_gpus.test_to_the_letter_the_smallest_device_has_100_mib"
    ),
    "devices.joining_takes_two_places": (
        "plugins.kai.test_predicates.test_strictly_joining_takes_two_places_unless_the_gpu_s_name_is_a_number"
    ),
    "devices.sharing_attracts_all": (
        "plugins.kai.test_scores.test_tasks_without_gpus_are_drawn_to_shared_ones_only_strictly"
    ),
    "devices.whole_multiples_are_parts": (
        "framework.test_gpus.test_more_memory_than_a_device_has_fits_nowhere_except_whole_multiples_to_the_letter"
    ),
    "devices.last_part_is_guessed": (
        "rules.test_scenes.test_a_recorded_cluster_is_decided_as_the_original_did"
    ),
    "devices.claims_made_one_by_one": (
        "rules.test_scenes.test_claims_on_a_gpu_that_two_share_are_miscounted_only_in_kai"
    ),
    "devices.reservations_have_places": "rules.test_scenes.test_the_pod_that_reserves_a_gpu_has_a_place",
    "storage.silent_drivers_are_asked": (
        "plugins.kai.test_storage_room.test_a_driver_that_reports_no_room_is_not_asked_for_any_unless_strict"
    ),
    "storage.largest_volume_counts": (
        "plugins.kai.test_storage_room.test_a_claim_cannot_be_larger_than_the_largest_volume_unless_strict"
    ),
    "storage.several_capacities_cancel": (
        "plugins.kai.test_storage_room.test_of_several_capacities_the_largest_counts_and_strictly_none_of_any_class"
    ),
    "storage.unplaced_capacities_are_everywhere": (
        "plugins.kai.test_storage_room.test_a_capacity_without_a_topology_applies_to_no_node_and_strictly_to_all"
    ),
    "storage.claims_count_once": (
        "plugins.kai.test_storage_room.test_a_claim_that_two_pods_mount_takes_its_room_once"
    ),
    "storage.binding_pods_hold_room": (
        "plugins.kai.test_storage_room.test_pods_that_are_about_to_be_bound_have_taken_their_room_except_strictly"
    ),
    "storage.moved_pods_take_room": (
        "plugins.kai.test_storage_room.test_a_pod_that_is_moved_takes_room_at_its_new_place_except_strictly"
    ),
    "words.lacking_is_grouped": "cli.test_kai_reasons.test_a_node_counts_once_with_all_that_it_lacks",
    "words.plain": "profiles.test_maniple_words.test_a_single_task_is_named",
    "words.explained": (
        "live.test_explanations.test_strict_compatibility_keeps_to_the_words_of_the_original"
    ),
    "words.name_others": "live.test_discretion.test_volcanos_own_words_name_nothing",
}
