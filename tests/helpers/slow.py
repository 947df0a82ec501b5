"""Which tests are ``slow``, in one place: `make check` leaves them out, `make test` runs them.

Slow are all tests that start Spark, PostgreSQL or a browser, and those named here: whole files, or single tests
(``file::test``) that take more than a second or two on a quiet machine. A new test that simulates, kills processes or
starts commands by the dozen belongs here, or carries ``@pytest.mark.slow`` itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ENGINES = {"spark_session", "spark_cluster", "postgres", "browser", "page"}

SLOW = {
    "bounds/test_collection.py::test_sums_for_future_pools_against_rationals",
    "bounds/test_control.py",
    "bounds/test_guarantees.py::test_expected_fails_at_most_alpha",
    "bounds/test_guarantees.py::test_per_pool_with_ties_and_unqualified",
    "bounds/test_guarantees.py::test_simultaneous_recursion_against_plain_binomial_recursion",
    "bounds/test_many_rows.py",
    "bounds/test_rank_chain.py",
    "bounds/test_rest.py",
    "bounds/test_sampled.py",
    "cli/test_cli.py::test_an_interrupted_command_leaves_nothing",
    "cli/test_cli.py::test_colour_only_where_wanted",
    "cli/test_cli.py::test_curve_table_and_picture",
    "cli/test_cli.py::test_demo_needs_nothing_but_the_package",
    "cli/test_cli.py::test_pipes",
    "cli/test_cli.py::test_the_two_minute_story",
    "cli/test_cli_tables.py",
    "cli/test_interrupts.py",
    "cli/test_labelling_cli.py::test_from_a_table_without_labels_to_a_policy_and_a_list",
    "cli/test_lifecycle_cli.py::test_campaign_from_start_to_alarm",
    "cli/test_lifecycle_cli.py::test_exit_code_of_the_process",
    "cli/test_lifecycle_cli.py::test_plan",
    "cli/test_manners.py::test_the_curve_ends_with_a_command_that_runs",
    "cli/test_start_up.py",
    "estimator/test_outermost.py",
    "house/test_docs.py::test_examples_run_and_print_what_the_page_says",
    "house/test_ecosystem.py::test_figures_of_the_readme_are_those_of_the_commands_it_names",
    "house/test_site.py::test_the_site_builds_strictly_and_needs_no_network",
    "house/test_what_is_installed.py",
    "lifecycle/test_block_level.py",
    "lifecycle/test_campaign.py::test_level_under_ties",
    "lifecycle/test_campaign.py::test_level_when_reviews_come_late_or_never_depending_on_the_outcome",
    "lifecycle/test_campaign.py::test_level_with_pools_of_random_size",
    "lifecycle/test_campaign.py::test_lists_fall_from_11_to_the_oracle_and_the_level_is_kept",
    "lifecycle/test_labelling.py::test_a_plan_compares_random_labels_with_chosen_ones",
    "lifecycle/test_labelling_level.py",
    "lifecycle/test_lost_updates.py",
    "lifecycle/test_missing_reviews.py",
    "lifecycle/test_monitor.py::test_confidence_sequence_covers_at_all_times_at_once",
    "lifecycle/test_monitor.py::test_false_alarms_over_a_long_horizon_simulated_at_the_boundary",
    "lifecycle/test_plan.py::test_per_pool_and_recall_plans",
    "lifecycle/test_plan.py::test_pilot_intervals_are_honest",
    "lifecycle/test_plan.py::test_table_agrees_with_calibrating_simulated_samples",
    "lifecycle/test_recall_alarm.py",
    "paper/test_paper_experiments.py::test_a_run_is_determined_by_its_numbers",
    "paper/test_paper_run.py",
    "promises/test_calibration.py::test_dkw_is_algorithm_1_bit_for_bit_on_10000_inputs",
    "promises/test_calibration.py::test_wide_range_of_pool_sizes_is_compact_and_valid",
    "promises/test_evaluation.py",
    "promises/test_list_length.py::test_random_pool_sizes_with_known_mean",
    "promises/test_more_promises.py",
    "promises/test_policy_file.py::test_a_file_that_would_stall_the_loader_is_refused_before_any_work",
    "promises/test_simulations.py",
    "promises/test_whole_pools.py",
    "reports/test_past_rows.py",
    "reports/test_report.py::test_the_report_as_pdf",
    "reports/test_special_rows.py",
    "service/test_access.py",
    "service/test_any_file.py",
    "service/test_attacks.py",
    "service/test_audited_campaigns.py",
    "service/test_backup.py",
    "service/test_campaigns.py",
    "service/test_campaigns.py::test_a_campaign_by_page_is_the_campaign_of_the_library",
    "service/test_campaigns.py::test_an_alarm_withdraws_the_campaign",
    "service/test_chosen_settings.py::test_they_outlive_the_server_and_options_given_win",
    "service/test_desk.py",
    "service/test_every_page.py",
    "service/test_faults.py",
    "service/test_fuzz.py",
    "service/test_hostile_names.py",
    "service/test_labelling_pages.py",
    "service/test_life.py",
    "service/test_limits.py",
    "service/test_page.py",
    "service/test_page_words.py",
    "service/test_printing.py",
    "service/test_promises_api.py",
    "service/test_promises_page.py",
    "service/test_recall_watched.py",
    "service/test_recall_watched.py::test_missed_candidates_on_the_page_raise_the_alarm",
    "service/test_record_page.py",
    "service/test_review_page.py",
    "service/test_sandbox.py",
    "service/test_selecting.py::test_the_short_way_answers_as_the_long_one",
    "service/test_team.py",
    "service/test_tokens_and_routes.py",
    "service/test_uploads.py",
    "service/test_workers.py",
    "service/test_workspace.py",
    "tables/test_any_file.py::test_a_small_file_that_unfolds_to_a_large_one",
    "tables/test_calibrate_tables.py::test_any_finite_score",
    "tables/test_large_tables.py",
    "tables/test_messy_files.py::test_labels_count_as_they_are_said_to",
    "tables/test_one_reader.py::test_page_and_calibration_agree_word_for_word",
    "tables/test_order.py::test_every_order_statistic",
    "tables/test_promises_everywhere.py",
    "tables/test_ranks.py::test_ranks_are_those_of_a_sort_however_scores_are_spread",
    "tables/test_select_tables.py::test_every_engine_writes_files",
    "tables/test_select_tables.py::test_hashed_ties_in_many_pools",
    "tables/test_select_tables.py::test_many_pools",
    "tables/test_select_tables.py::test_no_engine_shortlists_a_candidate_without_a_score",
    "tables/test_spark_cluster.py",
    "tables/test_special_tables.py::test_the_command_line_makes_shows_and_applies_them",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        file = str(item.path.relative_to(Path(__file__).parents[1]))
        name = item.name.partition("[")[0]
        engines = ENGINES & set(getattr(item, "fixturenames", ()))
        spark = "spark" in item.name or "postgresql" in item.name
        if engines or spark or {file, f"{file}::{name}"} & SLOW:
            item.add_marker(pytest.mark.slow)
