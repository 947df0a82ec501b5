"""Docs, code and tests held together: which section of docs/statistics.md is proved by which test.

Code cites a section as ``[theory: exact]``; the page names it ``{#exact}``; ``PROOFS`` lists its tests. A section that the
code does not carry out yet says "Not in this version." in its first line, and nothing may cite it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import surelist
from surelist.promises import kinds

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "statistics.md").read_text(encoding="utf-8")
SOURCE = Path(surelist.__file__).parent
ABSENT = "Not in this version."
ABOUT_THE_PAGE = {"testing", "slips"}  # these say how the others are tested, and what they correct

PROOFS = {
    "looking-back": [
        "bounds/test_looking_back.py::test_of_pools_at_the_boundary_at_most_one_in_twenty_speaks_against",
        "bounds/test_looking_back.py::test_how_many_pools_fall_short_is_counted_over_all_orders",
        "promises/test_judging.py::test_the_best_of_several_scores_over_whole_pools_is_accused_at_most_one_time_in_twenty",
        "promises/test_judging.py::test_a_promise_is_judged_by_what_it_is_about",
    ],
    "setting": [
        "promises/test_policy_file.py::test_conditions_name_what_the_promise_rests_on",
        "promises/test_calibration.py::test_missing_labels_stay_in_as_not_qualified",
    ],
    "boundary-lemma": [
        "bounds/test_guarantees.py::test_expected_fails_at_most_alpha",
        "promises/test_simulations.py::test_non_monotone_score_with_heavy_ties",
    ],
    "one-idea": [
        "promises/test_calibration.py::test_threshold_is_the_cth_largest_qualified_score",
        "promises/test_calibration.py::test_not_certifiable_carries_the_way_out",
    ],
    "dkw": [
        "bounds/test_guarantees.py::test_expected_fails_at_most_alpha",
        "promises/test_calibration.py::test_dkw_is_algorithm_1_bit_for_bit_on_10000_inputs",
        "bounds/test_guarantees.py::test_excess_bound_both_forms",
        "bounds/test_guarantees.py::test_excess_bound_is_the_beta_quantile",
        "bounds/test_guarantees.py::test_excess_bound_holds_with_probability_1_minus_alpha_whatever_the_ties",
    ],
    "exact": [
        "bounds/test_guarantees.py::test_expected_fails_at_most_alpha",
        "bounds/test_guarantees.py::test_exact_count_is_the_smallest_valid_one",
        "bounds/test_guarantees.py::test_exact_count_at_a_tie_of_tail_and_alpha_is_never_too_small",
        "promises/test_simulations.py::test_untied_scores_use_the_whole_budget",
        "promises/test_simulations.py::test_few_rows_and_rare_positives",
        "promises/test_simulations.py::test_non_monotone_score_with_heavy_ties",
        "promises/test_list_length.py::test_exact_rule_is_close_to_the_oracle",
    ],
    "this-list": [
        "promises/test_this_list.py::test_both_tables_hold_at_once_over_every_order",
        "promises/test_this_list.py::test_the_tables_use_most_of_alpha_where_n_is_much_larger_than_m",
        "promises/test_this_list.py::test_one_list_by_fisher_over_every_split_of_rows_and_candidates",
        "promises/test_this_list.py::test_a_share_is_said_and_false_at_most_alpha_of_the_time_whatever_the_share_of_the_population",
        "promises/test_this_list.py::test_the_worst_point_by_simulation",
        "promises/test_this_list.py::test_a_list_whose_end_is_tied_is_refused",
    ],
    "triage": [
        "promises/test_triage.py::test_over_every_sample_of_a_small_world_a_list_falls_short_at_most_alpha_of_the_time",
        "promises/test_triage.py::test_the_worst_point_of_the_theory_by_simulation",
        "promises/test_triage.py::test_a_missing_label_is_refused_since_among_the_rejected_it_would_count_as_right",
    ],
    "common-cutoff": [  # the proof is that of no-split
        "promises/test_common_cutoff.py::test_every_sample_with_overlapping_groups",
        "promises/test_common_cutoff.py::test_the_worst_point_of_the_theory_by_simulation",
        "promises/test_common_cutoff.py::test_whole_pools_count_where_they_keep_the_promise_to_every_group",
        "promises/test_common_cutoff.py::test_after_looking_has_no_proof_and_single_pools_keep_their_shares",
        "promises/test_common_cutoff.py::test_a_group_without_rows_or_with_too_few_refuses_all",
    ],
    "together": [
        "promises/test_combinations.py::test_maps_of_rows_and_splits_together_are_false_at_most_alpha",
        "promises/test_combinations.py::test_missing_labels_of_drawn_rows_count_as_not_qualified_and_keep_the_level",
        "promises/test_combinations.py::test_labels_known_above_a_score_go_with_that_one_score",
    ],
    "random-pool-size": ["promises/test_list_length.py::test_random_pool_sizes_with_known_mean"],
    "groups": [
        "promises/test_simulations.py::test_disjoint_groups_hold_together",
        "promises/test_simulations.py::test_overlapping_groups_hold_together",
        "promises/test_simulations.py::test_groups_of_unknown_size_use_all_rows",
        "promises/test_calibration.py::test_equal_opportunity_targets",
    ],
    "bins": [
        "paper/test_baselines.py::test_umb_is_algorithm_4",
        "paper/test_baselines.py::test_umb_counts_are_the_exact_ceilings",
        "paper/test_baselines.py::test_umb_share_spends_the_bound_exactly",
        "paper/test_baselines.py::test_deterministic_umb_never_beats_css",
    ],
    "baselines": [
        "paper/test_baselines.py::test_uncalibrated_and_omniscient_are_theorem_1",
        "paper/test_baselines.py::test_isotonic_is_an_order_statistic_that_fails_half_the_time",
        "paper/test_baselines.py::test_platt_is_the_maximum_of_the_likelihood",
        "paper/test_baselines.py::test_results_without_guarantee_say_so",
    ],
    "oracles": [
        "paper/test_baselines.py::test_omniscient_is_the_best_by_linear_programming",
        "paper/test_baselines.py::test_calibrated_oracle_is_the_best_by_linear_programming",
        "paper/test_baselines.py::test_a_finer_calibrated_score_is_never_longer",
        "paper/test_baselines.py::test_no_blind_policy_is_near_the_best_on_both_pools",
    ],
    "average-calibration": [
        "paper/test_baselines.py::test_average_calibration_is_the_cumulative_share",
        "paper/test_baselines.py::test_average_calibration_band_holds_at_its_level_and_not_by_far",
    ],
    "bernstein": [
        "bounds/test_guarantees.py::test_bernstein_inverse_and_sign",
        "bounds/test_guarantees.py::test_bernstein_and_pac_rates_ensure_the_worst_case",
        "bounds/test_guarantees.py::test_per_pool_with_ties_and_unqualified",
        "promises/test_simulations.py::test_two_level_rules_bound_the_long_run_of_this_sample",
    ],
    "simultaneous": [
        "bounds/test_guarantees.py::test_simultaneous_family_holds_at_once",
        "bounds/test_guarantees.py::test_simultaneous_recursion_against_plain_binomial_recursion",
        "bounds/test_guarantees.py::test_curve_is_a_step_function_of_the_family",
        "bounds/test_many_rows.py::test_all_that_every_count_certifies_holds_at_once",
        "bounds/test_many_rows.py::test_never_looser_than_dkw_and_exact_at_round_rates",
        "promises/test_calibration.py::test_dkw_covers_a_target_chosen_after_looking",
    ],
    "per-pool": [
        "bounds/test_guarantees.py::test_per_pool_over_every_merged_order",
        "bounds/test_guarantees.py::test_per_pool_with_ties_and_unqualified",
        "bounds/test_guarantees.py::test_tails_against_exact_integers_at_large_n",
        "promises/test_calibration.py::test_range_of_pool_sizes_is_the_single_size_at_every_size",
        "promises/test_simulations.py::test_per_pool_at_the_boundary_over_calibration_and_pool",
        "promises/test_simulations.py::test_two_level_rules_bound_the_long_run_of_this_sample",
    ],
    "recall": [
        "bounds/test_guarantees.py::test_recall_fails_at_most_alpha",
        "bounds/test_guarantees.py::test_recall_drops_as_many_as_the_definition_allows",
        "bounds/test_guarantees.py::test_recall_needs_45_qualified_rows",
    ],
    "ties": [
        "promises/test_simulations.py::test_randomised_ties_keep_the_level_and_split_the_atom",
        "promises/test_simulations.py::test_tie_numbers_are_uniform_and_select_follows_them",
        "promises/test_calibration.py::test_tie_break_lets_exactly_the_critical_count_in",
        "promises/test_calibration.py::test_a_calibration_row_in_the_pool_is_noticed_where_it_matters",
        "promises/test_policy_file.py::test_the_salt_lives_in_a_secret_file_of_its_own",
    ],
    "shift": [
        "promises/test_simulations.py::test_known_shift_is_undone_by_weights",
        "promises/test_statements.py::test_a_promise_with_weights_is_false_at_most_as_often_as_alpha_says",
        "promises/test_density_ratio.py::test_false_at_most_alpha_at_the_worst_ratios_and_more_without_the_margin",
    ],
    "reviews": [
        "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do",
        "bounds/test_sequential.py::test_a_boundary_rate_below_the_target_fails_no_more_often",
        "lifecycle/test_campaign.py::test_lists_fall_from_11_to_the_oracle_and_the_level_is_kept",
        "lifecycle/test_campaign.py::test_level_under_ties",
        "lifecycle/test_campaign.py::test_level_when_reviews_come_late_or_never_depending_on_the_outcome",
        "lifecycle/test_campaign.py::test_level_with_pools_of_random_size",
        "lifecycle/test_campaign.py::test_leaving_out_pools_whose_reviews_are_missing_would_break_the_promise",
        "lifecycle/test_campaign.py::test_thresholds_are_those_of_the_definition",
        "lifecycle/test_campaign.py::test_refuses_what_would_break_the_proof",
        "lifecycle/test_audited_campaign.py::test_all_thresholds_hold_together_over_every_outcome_and_every_draw",
        "lifecycle/test_audited_campaign.py::test_the_level_is_kept_where_everyone_listed_would_be_far_too_many",
    ],
    "usual": [
        "bounds/test_usual.py::test_each_side_is_left_at_most_so_often_at_a_fixed_threshold",
        "bounds/test_usual.py::test_and_where_the_threshold_is_the_last_qualified_row_of_a_flat_score",
        "promises/test_usual.py::test_most_lists_hold_what_is_usual",
    ],
    "watching": [
        "lifecycle/test_monitor.py::test_e_value_is_the_average_wealth_of_all_bets",
        "lifecycle/test_monitor.py::test_the_average_bet_wins_nothing_at_the_boundary",
        "lifecycle/test_monitor.py::test_false_alarms_are_bounded_over_all_sequences",
        "lifecycle/test_monitor.py::test_false_alarms_over_a_long_horizon_simulated_at_the_boundary",
        "lifecycle/test_monitor.py::test_confidence_sequence_covers_at_all_times_at_once",
        "lifecycle/test_monitor.py::test_plain_per_pool_and_recall_policies_are_refused_with_the_reason",
        "lifecycle/test_campaign.py::test_the_monitor_takes_pools_in_order_and_waits",
        "lifecycle/test_missing_reviews.py::test_the_interval_covers_the_rate_with_a_tenth_of_the_reviews_missing",
        "lifecycle/test_missing_reviews.py::test_each_end_takes_missing_reviews_its_own_way",
    ],
    "recall-alarm": [
        "lifecycle/test_recall_alarm.py::test_the_average_bet_on_recall_wins_nothing",
        "lifecycle/test_recall_alarm.py::test_missing_reviews_never_raise_the_evidence",
        "lifecycle/test_recall_alarm.py::test_false_alarms_at_recall_exactly_as_promised_are_as_rare_as_promised",
        "lifecycle/test_recall_alarm.py::test_a_recall_of_80_instead_of_90_percent_is_found_within_300_audited",
        "lifecycle/test_recall_alarm.py::test_the_interval_covers_recall_at_every_pool_at_once",
    ],
    "triage-alarm": [
        "lifecycle/test_triage_alarm.py::test_over_every_course_of_five_audits_a_false_alarm_is_at_most_alpha",
        "lifecycle/test_triage_alarm.py::test_over_long_audits_a_false_alarm_is_at_most_alpha",
        "lifecycle/test_triage_alarm.py::test_missing_reviews_speak_for_the_promises_in_the_alarm_and_both_ways_in_the_interval",
    ],
    "few-labels": [
        "bounds/test_collection.py::test_block_count_is_the_definition_in_integers_ties_with_alpha_included",
        "bounds/test_collection.py::test_the_collection_in_hand_over_every_label_pattern",
        "bounds/test_collection.py::test_sums_for_future_pools_against_rationals",
        "lifecycle/test_labelling_level.py::test_the_collection_in_hand_with_pilot_known_labels_fallback_and_an_adversary",
        "lifecycle/test_labelling_level.py::test_future_pools_with_fallback_over_every_outcome",
        "lifecycle/test_labelling_level.py::test_every_blocks_sample_is_uniform",
        "lifecycle/test_labelling_level.py::test_future_pools_at_the_boundary_through_the_public_api",
        "lifecycle/test_labelling.py::test_the_block_is_fixed_by_the_pilot_alone",
        "lifecycle/test_labelling.py::test_the_block_for_future_pools_knows_nothing_of_where_the_other_rows_lie",
        "bounds/test_collection.py::test_everyone_labelled_is_the_exact_rule",
        "bounds/test_collection.py::test_figures_of_the_contract_and_large_collections",
        "lifecycle/test_labelling_level.py::test_the_collection_itself_at_its_worst_through_the_public_api",
    ],
    "collection-precision": [
        "lifecycle/test_collection_precision.py::test_over_every_labelling_and_draw_the_list_is_false_at_most_alpha",
        "lifecycle/test_collection_precision.py::test_the_level_is_reached",
        "lifecycle/test_collection_precision.py::test_every_sequence_of_weights_keeps_the_level",
        "lifecycle/test_collection_precision.py::test_p_values_at_their_level_are_decided_in_whole_numbers",
        "lifecycle/test_collection_precision.py::test_what_is_left_of_a_draw_after_the_pilot_is_uniform",
        "lifecycle/test_pilot_to_list.py::test_it_is_false_at_most_alpha_of_the_time",
    ],
    "collection-triage": [
        "lifecycle/test_collection_triage.py::test_over_every_labelling_and_draw_each_promise_is_false_at_most_half_of_alpha",
        "lifecycle/test_pilot_to_list.py::test_it_is_false_at_most_alpha_of_the_time",
        "lifecycle/test_collection_triage.py::test_tiny_collections_tell_the_truth",
    ],
    "collection-recall-block": [
        "bounds/test_control_sample.py::test_of_the_samples_that_go_on_at_most_alpha_fail",
        "lifecycle/test_collection_recall.py::test_of_all_samples_that_go_on_the_list_is_false_at_most_alpha_of_the_time",
        "lifecycle/test_collection_recall.py::test_parts_and_two_draws_together_are_false_at_most_alpha_of_the_time",
        "lifecycle/test_collection_recall.py::test_over_every_labelling_and_both_draws_the_list_is_false_at_most_alpha",
        "lifecycle/test_collection_recall.py::test_the_lemma_over_every_set_of_marked_rows",
        "lifecycle/test_collection_recall.py::test_numbers_against_their_definitions",
        "lifecycle/test_pilot_to_list.py::test_it_is_false_at_most_alpha_of_the_time",
    ],
    "collection-recall": [
        "lifecycle/test_collection_recall.py::test_one_sample_of_everyone",
        "bounds/test_control_sample.py::test_level_over_every_number_of_relevant_items",
        "bounds/test_control_sample.py::test_through_every_relevant_set_and_every_sample",
        "bounds/test_control_sample.py::test_the_hole_of_the_plug_in_count",
        "lifecycle/test_labelling_level.py::test_recall_of_the_collection_and_why_the_sample_stays_on_the_list",
        "lifecycle/test_labelling.py::test_missing_labels_count_as_not_qualified_but_never_for_recall",
        "bounds/test_control_sample.py::test_the_figures_of_the_contract",
    ],
    "validation": [
        "lifecycle/test_validation.py::test_the_share_kept_is_less_than_said_at_most_alpha_of_the_time",
    ],
    "stop-test": [
        "bounds/test_stop_sample.py::test_level_over_every_number_of_relevant_items",
        "bounds/test_stop_sample.py::test_the_worst_number_is_among_those_tried",
        "bounds/test_stop_sample.py::test_looks_rise_where_the_minimum_alone_would_not",
        "lifecycle/test_labelling.py::test_a_missing_label_is_a_hit_and_hits_count",
        "lifecycle/test_stopping.py::test_the_recall_certified_now_is_false_at_most_alpha_of_the_time_whatever_labels_are_missing",
        "lifecycle/test_stopping.py::test_a_certificate_is_false_at_most_alpha_of_the_time_whatever_was_mistyped_and_corrected",
        "bounds/test_stop_sample.py::test_the_figures_of_the_contract",
    ],
    "planning": [
        "lifecycle/test_plan.py::test_table_agrees_with_calibrating_simulated_samples",
        "lifecycle/test_plan.py::test_smallest_n_is_the_smallest",
        "lifecycle/test_plan.py::test_pilot_intervals_are_honest",
    ],
    "rank-chain": [
        "bounds/test_rank_chain.py::test_the_bound_holds_at_every_position_of_the_boundary",
        "bounds/test_rank_chain.py::test_the_chain_keeps_its_level",
        "promises/test_more_promises.py::test_the_rank_chain_is_false_at_most_alpha_wherever_the_boundary_lies",
    ],
    "pools": [
        "bounds/test_pools.py::test_the_rank_is_the_largest_one_that_keeps_the_level",
        "bounds/test_pools.py::test_pac_rank_is_the_largest_valid_one",
        "bounds/test_pools.py::test_false_certificates_over_all_totals",
        "promises/test_whole_pools.py::test_the_next_pool_over_every_order_of_pools",
        "promises/test_whole_pools.py::test_the_average_is_false_at_most_alpha_at_the_boundary",
        "promises/test_whole_pools.py::test_pools_sorted_by_outcome_change_nothing",
    ],
    "precision": [
        "bounds/test_precision.py::test_a_false_answer_is_at_most_alpha_over_every_sample",
        "bounds/test_precision.py::test_average_false_share_over_every_order_and_labels",
        "promises/test_more_promises.py::test_precision_is_false_at_most_alpha_where_it_first_falls_short",
    ],
    "sampled-labels": [
        "bounds/test_sampled.py::test_the_level_holds_at_every_split_of_the_rate",
        "bounds/test_sampled.py::test_the_p_value_is_at_most_alpha_where_certified",
        "promises/test_more_promises.py::test_audited_labels_are_false_at_most_alpha_at_every_split",
        "promises/test_more_promises.py::test_thinned_labels_are_false_at_most_alpha",
    ],
    "noise": [
        "bounds/test_noise.py::test_the_edge_is_the_lowest_that_has_its_level",
        "promises/test_noisy_labels.py::test_a_count_is_false_at_most_alpha_of_the_time_with_labels_as_wrong_as_allowed",
        "promises/test_noisy_labels.py::test_a_share_is_false_at_most_alpha_of_the_time_with_labels_as_wrong_as_allowed",
    ],
    "best-of": [
        "promises/test_more_promises.py::test_the_best_of_several_is_false_at_most_alpha_and_uncorrected_it_is_not",
    ],
    "budget": [
        "promises/test_more_promises.py::test_a_budget_certifies_at_most_the_truth",
        "promises/test_more_promises.py::test_the_list_of_a_budget_ends_before_the_tie",
    ],
    "value": ["promises/test_whole_pools.py::test_values_of_rows_are_false_at_most_alpha_at_the_boundary"],
    "no-split": [
        "promises/test_no_split.py::test_over_every_sample_of_a_small_world_a_false_promise_is_made_at_most_alpha_of_the_time",
        "promises/test_no_split.py::test_over_every_sample_and_pool_both_hold_together_but_for_alpha",
        "promises/test_no_split.py::test_the_joint_count_is_the_smallest_whose_level_by_integration_is_at_most_alpha",
    ],
    "two-promises": ["promises/test_more_promises.py::test_two_promises_share_alpha_and_one_list"],
    "testing": ["project/test_mutants.py::test_mutant_is_caught"],
    "slips": [
        "bounds/test_guarantees.py::test_bernstein_inverse_and_sign",
        "paper/test_baselines.py::test_deterministic_umb_never_beats_css",
        "paper/test_baselines.py::test_average_calibration_is_the_cumulative_share",
    ],
}


def sections() -> dict[str, str]:
    """Every section of the page: its id and its text."""
    parts = re.split(r"^## .* \{#([a-z-]+)\}$", PAGE, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def carried_out() -> set[str]:
    return {name for name, text in sections().items() if not text.strip().startswith(ABSENT)}


def cited(*roots: Path) -> dict[str, set[str]]:
    """Every id that the files under these folders cite, with the files that do."""
    where: dict[str, set[str]] = {}
    for path in (path for root in roots for path in sorted(root.rglob("*.py"))):
        for ids in re.findall(r"\[theory: ([a-z, -]+)\]", path.read_text(encoding="utf-8")):
            for name in re.split(r",\s*", ids):
                where.setdefault(name, set()).add(path.name)
    return where


def test_code_cites_sections_that_the_page_says_it_carries_out() -> None:
    roots = SOURCE, TESTS, TESTS.parent / "paper", TESTS.parent / "benchmarks"
    unknown = {name: files for name, files in cited(*roots).items() if name not in carried_out()}
    assert not unknown, f"no such section, or one marked {ABSENT!r}: write it, or remove the mark"


def test_every_declared_set_of_conditions_names_its_section() -> None:
    declared = {each.section for promise in kinds.classes() for each in promise.proved_with}
    assert declared
    assert declared <= carried_out(), (
        "a kind's proved_with names a section that docs/statistics.md does not have"
    )
    assert declared <= PROOFS.keys(), "a section has no line in PROOFS, above: the tests that prove it"


def test_every_section_in_force_is_cited_and_proved() -> None:
    assert carried_out() - cited(SOURCE, TESTS.parent / "paper").keys() == ABOUT_THE_PAGE, (
        "no code cites a section by its id"
    )
    assert PROOFS.keys() == carried_out(), "a section has no line in PROOFS, above: the tests that prove it"


@pytest.mark.parametrize("section", PROOFS)
def test_every_section_has_the_tests_it_claims(section: str) -> None:
    assert PROOFS[section]
    for node in PROOFS[section]:
        file, _, name = node.partition("::")
        assert f"\ndef {name}(" in (TESTS / file).read_text(), node


def test_the_page_lists_its_sections_and_links_only_to_them() -> None:
    index = re.findall(r"^\|[^|]*\|((?: *`[a-z-]+`)+) *\|$", PAGE, flags=re.M)
    listed = sorted(re.findall(r"`([a-z-]+)`", " ".join(index)))
    assert listed == sorted(sections()), "the table of ids at the top of docs/statistics.md"
    assert set(re.findall(r"\]\(#([a-z-]+)\)", PAGE)) <= sections().keys()


def test_no_section_is_cited_by_number() -> None:
    old = re.compile(r"STATISTICS|\bsections? \d+(?!\d*\()")
    assert not [path for path in SOURCE.rglob("*.py") if old.search(path.read_text(encoding="utf-8"))]
