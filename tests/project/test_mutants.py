"""Mutants: each wrong version of a rule must turn an enumerated guarantee red.

A copy of the package is changed in one function, found by its name and by the syntax of what changes, and the test named
runs against it, in a fork of a process that has nothing of ours loaded; it has to fail.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import surelist
from tests.helpers.forks import Forks
from tests.helpers.mutants import NoSuchPlace, homes, mutated

SOURCE = Path(surelist.__file__).parent
PAPER = Path(__file__).parents[2] / "paper"
TESTS = Path(__file__).parents[1]

# (what is wrong, module::function, expression or statement of it, what stands there instead, test)
MUTANTS = [
    ("n-1 for n in the exact rule", "bounds/counts.py::critical_count", "_exact_count(n, fraction, alpha)", "_exact_count(n - 1, fraction, alpha) if n > 1 else 1", "bounds/test_guarantees.py::test_exact_count_is_the_smallest_valid_one"),
    ("alpha doubled in the exact rule", "bounds/counts.py::_exact_count", "tails.safe(alpha)", "tails.safe(2 * alpha)", "bounds/test_guarantees.py::test_expected_fails_at_most_alpha"),
    ("alpha doubled in the pool rule", "bounds/counts.py::_pool_count", "tails.safe(alpha)", "tails.safe(2 * alpha)", "bounds/test_guarantees.py::test_per_pool_over_every_merged_order"),
    ("alpha doubled when a count is verified", "bounds/counts.py::certifies", "alpha * (1 - tails.MARGIN / 2)", "2 * alpha", "bounds/test_certifies.py"),
    ("the first term left out when a count is verified", "bounds/_tails.py::summed_tail", "np.arange(count, last + 1, dtype=np.float64)", "np.arange(count + 1, last + 2, dtype=np.float64)", "bounds/test_certifies.py"),
    ("beta tail without the +1", "bounds/_tails.py::binomial_tail", "n - count + 1", "n - count", "bounds/test_guarantees.py::test_exact_count_is_the_smallest_valid_one"),
    ("one draw too many in the pool rule", "bounds/_tails.py::pool_tail", "count + k - 1", "count + k", "bounds/test_guarantees.py::test_per_pool_over_every_merged_order"),
    ("> for >= when selecting", "_check.py::finite_at_least", "np.greater_equal", "np.greater", "bounds/test_guarantees.py::test_expected_fails_at_most_alpha"),
    ("the next larger order statistic", "promises/evidence.py::RowColumns.nth_largest", "len(self.hits) - count", "min(len(self.hits) - 1, len(self.hits) - count + 1)", "promises/test_calibration.py::test_threshold_is_the_cth_largest_qualified_score"),
    ("n without the unqualified rows", "promises/evidence.py::RowColumns.rows", "len(self.numbers) if self.among is None else self.among", "self.qualified if self.among is None else self.among", "promises/test_calibration.py::test_threshold_is_the_cth_largest_qualified_score"),
    ("dkw without the band", "bounds/counts.py::_dkw_count", "Decimal(n * rate.numerator) / rate.denominator + slack", "Decimal(n * rate.numerator) / rate.denominator", "bounds/test_guarantees.py::test_expected_fails_at_most_alpha"),
    ("dkw rounded down", "bounds/counts.py::_dkw_count", "math.ceil", "math.floor", "promises/test_calibration.py::test_dkw_is_algorithm_1_bit_for_bit_on_10000_inputs"),
    ("simultaneous at double level", "bounds/simultaneous.py::equal_local_levels", "alpha - 1e-8", "2 * alpha", "bounds/test_guarantees.py::test_simultaneous_family_holds_at_once"),
    ("simultaneous forgets the band's half", "bounds/simultaneous.py::equal_local_levels", "alpha / 2", "alpha", "bounds/test_many_rows.py::test_all_that_every_count_certifies_holds_at_once"),
    ("simultaneous at double level on the thin grid", "bounds/simultaneous.py::_thin_family", "crossing_probability(n, *trial)", "crossing_probability(n, *trial) / 2", "bounds/test_many_rows.py::test_all_that_every_count_certifies_holds_at_once"),
    ("a hair below the thin grid's rate", "bounds/simultaneous.py::_asked_rates", "1 + 1e-15", "1 - 1e-15", "bounds/test_many_rows.py::test_never_looser_than_dkw_and_exact_at_round_rates"),
    ("the band at double level", "bounds/counts.py::largest_rate", "dkw_epsilon(n, alpha)", "dkw_epsilon(n, min(0.99, 4 * alpha))", "bounds/test_many_rows.py::test_all_that_every_count_certifies_holds_at_once"),
    ("minus before Bernstein's root", "bounds/counts.py::bernstein_k", "k_worst + 4 * log / 3 + math.sqrt(16 * log * log / 9 + 2 * k_worst * log)", "k_worst + 4 * log / 3 - math.sqrt(16 * log * log / 9 + 2 * k_worst * log)", "bounds/test_guarantees.py::test_bernstein_inverse_and_sign"),
    ("pac at the wrong end", "bounds/counts.py::pac_rate", "check.as_alpha(alpha)", "2 * check.as_alpha(alpha)", "bounds/test_guarantees.py::test_bernstein_and_pac_rates_ensure_the_worst_case"),
    ("recall on all rows", "promises/kinds/recall.py::Recall.count_at", "bounds.critical_count(qualified, self.share, level.alpha)", "bounds.critical_count(rows, self.share, level.alpha) - (rows - qualified)", "bounds/test_guarantees.py::test_recall_fails_at_most_alpha"),
    ("sidak's parts without the other groups", "promises/conditions.py::joint_alpha", "-math.expm1(groups * math.log1p(-alpha))", "alpha", "promises/test_statements.py::test_sidak_with_two_levels_says_how_much_each_part_may_fail"),
    ("every group at full alpha", "promises/conditions.py::split_alpha", "alpha / groups", "alpha", "promises/test_simulations.py::test_disjoint_groups_hold_together"),
    ("alpha doubled under one cutoff", "promises/conditions.py::group_alpha", "return alpha", "return 2 * alpha", "promises/test_common_cutoff.py::test_every_sample_with_overlapping_groups"),
    ("the highest cutoff for everybody", "promises/cutoffs.py::common_cutoffs", "min(steps, key=lambda step: (step.threshold, step.tie_break or 0))", "max(steps, key=lambda step: (step.threshold, step.tie_break or 0))", "promises/test_common_cutoff.py::test_every_sample_with_overlapping_groups"),
    ("single pools at full alpha under one cutoff", "promises/conditions.py::group_alpha", "each.fixed_boundary or each.whole_pools", "True", "promises/test_common_cutoff.py::test_after_looking_has_no_proof_and_single_pools_keep_their_shares"),
    ("whole pools count for the first group alone", "promises/kinds/next_pool.py::NextPool._reached", "np.minimum.reduce(parts)", "parts[0]", "promises/test_common_cutoff.py::test_whole_pools_count_where_they_keep_the_promise_to_every_group"),
    ("promises beside a single pool's forgotten in its level", "bounds/counts.py::_pool_beside_count", "np.maximum(beside, special.betainc(count, n - count + 1, ends))", "special.betainc(count, n - count + 1, ends)", "promises/test_no_split.py::test_the_joint_count_is_the_smallest_whose_level_by_integration_is_at_most_alpha"),
    ("promises beside a single pool's at full alpha", "promises/terms.py::Terms.levels", "replace(level, alpha=together.beside)", "replace(level, alpha=part)", "promises/test_no_split.py::test_a_single_pool_and_a_count_are_certified_by_their_joint_level"),
    ("both walks of a triage at full alpha", "promises/kinds/triage.py::Triage.certify", "level.alpha / 2", "level.alpha", "promises/test_triage.py::test_over_every_sample_of_a_small_world_a_list_falls_short_at_most_alpha_of_the_time"),
    ("a level handed on by a list that failed", "bounds/precision.py::passing", "level *= bool(here.all())", "level *= 1", "promises/test_triage.py::test_the_worst_point_of_the_theory_by_simulation"),
    ("every list begins with the level of all", "bounds/precision.py::passing", "np.flatnonzero(~passed)[-1] + 1", "0", "promises/test_triage.py::test_over_every_sample_of_a_small_world_a_list_falls_short_at_most_alpha_of_the_time"),
    ("three first lists with the whole of a side's alpha each", "promises/kinds/precision.py::grid", "alpha * np.asarray(weights) / sum(weights)", "alpha * np.asarray(weights)", "promises/test_triage.py::test_the_worst_point_of_the_theory_by_simulation"),
    ("a missing label taken by a triage", "promises/kinds/triage.py::Triage", "every_label = True", "every_label = False", "promises/test_triage.py::test_a_missing_label_is_refused_since_among_the_rejected_it_would_count_as_right"),
    ("a triage rejects at its lower threshold", "filters.py::Filter.triage", "scores < low", "scores <= low", "promises/test_triage.py::test_everyone_is_on_one_of_three_lists_and_a_file_keeps_them"),
    ("alpha doubled in the tables of a list", "bounds/this_list.py::_solve", "1 - inside(trial) <= alpha - SLACK", "1 - inside(trial) <= 2 * alpha", "promises/test_this_list.py::test_the_tables_use_most_of_alpha_where_n_is_much_larger_than_m"),
    ("paths of a list not conditioned on their total", "bounds/this_list.py::_chance", "np.dot(p, last) / total", "p.sum()", "promises/test_this_list.py::test_the_tables_use_most_of_alpha_where_n_is_much_larger_than_m"),
    ("the table of a list one count early", "promises/kinds/this_list.py::_fewest", "upper_counts(len(rows), pool, alpha / 2)[beyond]", "upper_counts(len(rows), pool, alpha / 2)[np.maximum(beyond - 1, 0)]", "promises/test_this_list.py::test_the_curve_reads_the_tables_at_the_rows_as_high_as_the_list"),
    ("all of alpha at both ends of a list's curve", "promises/kinds/this_list.py::curve_of_best", "(1 - LEAST) * alpha", "alpha", "promises/test_this_list.py::test_at_least_and_at_most_share_alpha"),
    ("alpha doubled in Fisher's test of a list", "bounds/this_list.py::fixed_list", "tails.safe(alpha)", "tails.safe(2 * alpha)", "promises/test_this_list.py::test_one_list_by_fisher_over_every_split_of_rows_and_candidates"),
    ("alpha doubled for a share of a list", "bounds/this_list.py::most_wrong_rows", "tails.safe(alpha)", "tails.safe(2 * alpha)", "promises/test_this_list.py::test_a_share_is_said_and_false_at_most_alpha_of_the_time_whatever_the_share_of_the_population"),
    ("the L-th candidate instead of the next one", "promises/kinds/this_list.py::ThisList.certify", "ordered[self.size - 1] == edge", "False", "promises/test_this_list.py::test_a_list_whose_end_is_tied_is_refused"),
    ("a group forgotten when selecting", "filters.py::Filter._select_groups", "members[str(each.group)]", "members[str(self.groups[0].group)]", "promises/test_simulations.py::test_disjoint_groups_hold_together"),
    ("wrong ratios change the odds by their factor only once", "promises/phrases.py::at_least", "within**2", "within", "promises/test_density_ratio.py::test_the_share_asked_for_is_the_one_that_the_worst_ratios_leave"),
    ("the same thinning for everyone", "promises/shift.py::keep_rows", "fresh_bits(SEED_BITS)", "0", "promises/test_statements.py::test_a_promise_with_weights_is_false_at_most_as_often_as_alpha_says"),
    ("a count bound after looking", "promises/kinds/expected.py::Expected.excess", "cutoff.level.rule == 'exact'", "True", "promises/test_statements.py::test_after_looking_only_the_papers_bound_on_the_excess_is_given"),
    ("a count bound with ties", "promises/kinds/expected.py::Expected.excess", "step.tie_break is not None", "True", "promises/test_statements.py::test_where_scores_are_tied_the_bound_on_the_excess_counts_all_who_reach_the_threshold"),
    ("recall from one qualified row on", "promises/kinds/recall.py::Recall.count_at", "qualified < fewest", "qualified < 1", "promises/test_statements.py::test_a_refused_recall_says_how_many_qualified_rows_it_takes_and_nothing_that_recall_does_not_have"),
    ("a fingerprint without labels", "promises/array_summary.py::_Counted.bins", "Bins(low, several, rows, qualified.rows[full], self.highest, (self.sum, qualified.sum))", "Bins(low, several, rows, rows, self.highest, (self.sum, self.sum))", "promises/test_statements.py::test_the_fingerprint_is_that_of_the_multiset_of_scores_and_labels"),
    ("an estimate that comes out round is one that somebody chose", "promises/kinds/expected.py::equal_opportunity", "math.nextafter(share, math.inf)", "share", "promises/test_statements.py::test_an_estimate_that_comes_out_round_is_an_estimate"),
    ("twins apart without the chance of their number", "bounds/counts.py::twins_apart", "(total + 1) * tails.binomial_tail(pairs, 2 * rows * others / total**2, apart)", "tails.binomial_tail(pairs, 2 * rows * others / total**2, apart)", "promises/test_other_scores.py::test_the_chance_that_twins_lie_apart_is_never_understated"),
    ("of many scores those of either side by themselves", "promises/evidence.py::some_of", "each.view(np.uint64) * SCRAMBLED <= most", "np.arange(len(each)) % 7 == len(scores) % 7", "promises/test_other_scores.py::test_of_many_scores_the_same_are_looked_at_on_both_sides"),
    ("probes outside the bins that are looked at", "promises/array_summary.py::at_places", "wanted[space.numbers(probes, low, per_unit)] = True", "wanted[:1] = False", "promises/test_score_summary.py::test_scores_at_places_are_those_of_a_sort"),
    ("twins on one side taken for twins apart", "promises/evidence.py::hold_rows", "own == 1", "own > 0", "promises/test_other_scores.py::test_twins_on_one_side_are_no_sign"),
    ("targets estimated on the calibration rows", "promises/terms.py::Terms.refuse_estimated", "len(names) > 1", "len(names) > 99", "promises/test_statements.py::test_targets_estimated_from_the_calibration_rows_are_refused"),
    ("weights ignored", "promises/shift.py::keep_rows", "np.random.default_rng([seed, THINNING]).random(rows) < ratio", "np.random.default_rng([seed, THINNING]).random(rows) < 1.0", "promises/test_simulations.py::test_known_shift_is_undone_by_weights"),
    ("tie break of the next better candidate", "promises/evidence.py::Evidence.steps", "each.count - above - 1", "max(0, each.count - above - 2)", "promises/test_calibration.py::test_tie_break_lets_exactly_the_critical_count_in"),
    ("missing labels dropped", "_check.py::as_labels", "(qualified, count)", "(qualified[~np.isnan(array)] if count else qualified, count)", "promises/test_calibration.py::test_missing_labels_stay_in_as_not_qualified"),
    ("each size of a pac range on its own", "promises/kinds/per_pool.py::PerPool.count_at", "'exact' if self.sizes[0] == self.sizes[1] else 'simultaneous'", "'exact'", "promises/test_calibration.py::test_range_of_sizes_by_pac_holds_for_all_sizes_at_once"),
    ("groups or kept rows, not both", "promises/calibrate.py::_evidence", "mask & kept", "mask", "promises/test_simulations.py::test_groups_and_weights_together"),
    ("alpha doubled in a campaign", "lifecycle/campaign_state.py::spending", "alpha * (1 - 0.5**(j + 1))", "2 * alpha * (1 - 0.5**(j + 1))", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("earlier looks forgotten", "bounds/counts.py::FirstCrossing.next", "allowed * (1 - tails.MARGIN) - self.spent", "allowed * (1 - tails.MARGIN)", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("walks that crossed walk on", "bounds/counts.py::FirstCrossing.next", "self._alive = self._alive[:cut]", "pass", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("a count too small at a look", "bounds/counts.py::FirstCrossing.next", "self._lowest + cut", "self._lowest + cut - 1", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("rows of unreviewed pools left out", "lifecycle/campaign.py::Campaign._record", "size if draws is None else drawn", "len(scores) if draws is None else drawn", "lifecycle/test_campaign.py::test_thresholds_are_those_of_the_definition"),
    ("late reviews below the threshold kept", "lifecycle/state.py::ScoreCounts._settle", "np.searchsorted(self.scores, fresh, side='right') - 1", "np.searchsorted(self.scores, fresh, side='right').clip(max=len(self.scores) - 1)", "lifecycle/test_campaign.py::test_score_counts_round_down_only"),
    ("missing reviews are zeros for the monitor", "lifecycle/monitor.py::Monitor.observe", "counts.successes + counts.unreviewed", "counts.successes", "lifecycle/test_missing_reviews.py::test_the_alarm_takes_missing_reviews_as_qualified"),
    ("everyone listed is evidence beside an audit", "lifecycle/reviewed.py::Screened.evidence", "ord(LISTED)", "ord(UNKNOWN)", "lifecycle/test_audited_campaign.py::test_the_level_is_kept_where_everyone_listed_would_be_far_too_many"),
    ("rows not drawn counted beside an audit", "lifecycle/campaign.py::Campaign._record", "size if draws is None else drawn", "size", "lifecycle/test_audited_campaign.py::test_thresholds_are_those_of_the_rows_drawn_and_may_fall"),
    ("an audit of those with good scores only", "lifecycle/campaign.py::Campaign.screen", "mask if drawn is None else mask | drawn", "mask", "lifecycle/test_audited_campaign.py::test_thresholds_are_those_of_the_rows_drawn_and_may_fall"),
    ("missing reviews of a closed pool forgotten", "lifecycle/campaign.py::Campaign._watch", "screened.unreviewed", "0", "lifecycle/test_campaign.py::test_the_monitor_takes_pools_in_order_and_waits"),
    ("missing reviews are qualified at both ends", "lifecycle/claims.py::Claim.interval", "betting.interval(self.rate, counts.trials, least, alpha)", "betting.interval(self.rate, counts.trials, most, alpha)", "lifecycle/test_missing_reviews.py::test_the_interval_covers_the_rate_with_a_tenth_of_the_reviews_missing"),
    ("an audited failure at full weight", "bounds/betting.py::_stakes", "shares * (p / (1 - p)) / audit_rate", "shares * (p / (1 - p)) / audit_rate**1.1", "lifecycle/test_recall_alarm.py::test_the_average_bet_on_recall_wins_nothing"),
    ("missing audits count as missed", "lifecycle/claims.py::Claim.counts", "review.qualified + review.unreviewed + review.missed", "review.qualified + review.unreviewed + review.missed + review.unaudited", "lifecycle/test_recall_alarm.py::test_missing_reviews_never_raise_the_evidence"),
    ("missing listed ones left out of recall", "lifecycle/claims.py::Claim.counts", "Outcomes(seen, review.qualified, review.unreviewed, review.missed, review.unaudited)", "Outcomes(seen - review.unreviewed, review.qualified, 0, review.missed, review.unaudited)", "lifecycle/test_recall_alarm.py::test_missing_reviews_never_raise_the_evidence"),
    ("a recall interval at double level", "bounds/betting.py::recall_interval", "2 / alpha", "0.2 / alpha", "lifecycle/test_recall_alarm.py::test_the_interval_covers_recall_at_every_pool_at_once"),
    ("those drawn counted as if an audit of the unlisted", "lifecycle/claims.py::_claim", "1.0 if watched.audited else None", "rate if watched.audited else None", "lifecycle/test_triage_alarm.py::test_over_long_audits_a_false_alarm_is_at_most_alpha"),
    ("a missing review of a rejected one as qualified", "lifecycle/claims.py::_drawn", "PoolReview(held, sum(seen.values()), perhaps, good[last], unknown[last])", "PoolReview(held, sum(seen.values()), perhaps, good[last] + unknown[last], 0)", "lifecycle/test_triage_alarm.py::test_missing_reviews_speak_for_the_promises_in_the_alarm_and_both_ways_in_the_interval"),
    ("an audit of a triage without its accepted", "workflows/watching.py::write_audit", "draw_audit(len(lists), (), rate)", "draw_audit(len(lists), [row for row, name in enumerate(lists) if name == 'accept'], rate)", "lifecycle/test_triage_alarm.py::test_from_a_file_everyone_may_be_drawn_and_the_others_of_the_band_stand_apart"),
    ("scores shown to those who review an audit", "workflows/watching.py::write_audit", "name != hidden", "True", "lifecycle/test_triage_alarm.py::test_from_a_file_everyone_may_be_drawn_and_the_others_of_the_band_stand_apart"),
    ("an audit reviewed in the order of the file", "workflows/watching.py::write_audit", "np.argsort(coins(len(drawn)))", "range(len(drawn))", "lifecycle/test_triage_alarm.py::test_from_a_file_everyone_may_be_drawn_and_the_others_of_the_band_stand_apart"),
    ("all of the band fed to a triage's alarm", "workflows/watching.py::PoolNumbers.observed", "self.missed", "{**self.missed, 'look': self.qualified}", "lifecycle/test_triage_alarm.py::test_reviews_of_the_band_who_were_not_drawn_count_neither_way"),
    ("everyone counted as selected by a triage", "tables/profile.py::_counted", "f'input WHERE {quoted(TRIAGE)} = {literal(ACCEPT)}'", "'input'", "lifecycle/test_triage_alarm.py::test_selection_rates_of_a_triage_are_of_those_accepted"),
    ("the rejected tested as if they should be qualified", "lifecycle/claims.py::_drawn", "claim.unqualified", "not claim.unqualified", "lifecycle/test_triage_alarm.py::test_over_long_audits_a_false_alarm_is_at_most_alpha"),
    ("alarm at half its level", "lifecycle/monitor.py::Monitor.speaks_against", "self.alpha", "2 * self.alpha", "lifecycle/test_monitor.py::test_the_alarm_comes_with_the_first_pool_at_one_over_alpha"),
    ("bets that win on average", "bounds/betting.py::_stakes", "DROPS * (p / (1 - p))", "DROPS * (p / (1 - p)) * 1.01", "lifecycle/test_monitor.py::test_the_average_bet_wins_nothing_at_the_boundary"),
    ("late bets on top of the first", "bounds/betting.py::Bets.__init__", "math.log(0.5)", "0.0", "lifecycle/test_monitor.py::test_e_value_is_the_average_wealth_of_all_bets"),
    ("every group's interval at full alpha", "lifecycle/monitor.py::Monitor.each_alpha", "self.alpha / len(self.claims)", "self.alpha", "lifecycle/test_monitor.py::test_with_twenty_groups_what_holding_says_is_wrong_at_most_alpha_of_the_time"),
    ("bets on pools that win on average", "bounds/looking_back.py::Clusters.log_evidence", "p * self.of - won", "1.3 * p * self.of - won", "bounds/test_looking_back.py::test_of_pools_at_the_boundary_at_most_one_in_twenty_speaks_against"),
    ("one pool short fewer than were seen", "bounds/looking_back.py::short_pools", "special.bdtrc(missed - 1, pools, np.minimum(short, 1.0))", "special.bdtrc(missed, pools, np.minimum(short, 1.0))", "bounds/test_looking_back.py::test_how_many_pools_fall_short_is_counted_over_all_orders"),
    ("arrangements of flags that are not those at hand", "promises/pool_checks.py::chance_of_spread", "spread >= spread[0, 0] * (1 - 1e-9)", "spread > 1.05 * spread[0, 0]", "promises/test_pool_effects.py::test_every_arrangement_of_the_flags_has_its_share_of_the_p_values"),
    ("a replay counts again", "lifecycle/monitor.py::Monitor._counted_before", "known is not None", "False", "lifecycle/test_monitor.py::test_replaying_reviews_changes_nothing"),
    ("who writes last wins", "_files.py::Versions._compare", "_digest(path.read_bytes()) == known", "True", "lifecycle/test_lost_updates.py::test_the_loser_of_two_writers_is_told_and_nothing_is_lost"),
    ("state files without a lock", "_files.py::updating", "lock in held or fcntl is None", "True", "lifecycle/test_lost_updates.py::test_no_increment_is_lost"),
    ("a forged threshold is vouched for", "workflows/certify.py::_differences", "_each(before, 'threshold')", "_each(now, 'threshold')", "reports/test_past_rows.py::test_a_forged_threshold_is_refused"),
    ("unlabelled rows in the score bins", "reports/audit.py::score_bins", "array, qualified = (array[known], qualified[known])", "pass", "reports/test_past_rows.py::test_score_bins_are_those_of_labelled_rows_and_cover_with_a_third_of_labels_missing"),
    ("half the band per bin", "bounds/counts.py::bins_critical_count", "2 * bins", "bins", "paper/test_baselines.py::test_umb_counts_are_the_exact_ceilings"),
    ("> for >= in binning", "paper/baselines/methods.py::umb", "counts >= needed", "counts > needed", "paper/test_baselines.py::test_umb_certifies_from_exactly_the_critical_count"),
    ("theta rounded down", "paper/baselines/methods.py::_share", "1 + 1e-12", "1 - 1e-12", "paper/test_baselines.py::test_umb_share_spends_the_bound_exactly"),
    ("average calibration at double level", "paper/baselines/methods.py::average_calibration", "sl.bounds.dkw_epsilon(len(array), alpha)", "sl.bounds.dkw_epsilon(len(array), 2 * alpha)", "paper/test_baselines.py::test_average_calibration_band_holds_at_its_level_and_not_by_far"),
    ("one pool more may fail", "bounds/pools.py::pool_rank", "math.floor", "math.ceil", "bounds/test_pools.py::test_the_rank_is_the_largest_one_that_keeps_the_level"),
    ("the larger of both tails for pools", "bounds/pools.py::pac_pool_rank", "pools - critical_count(pools, kept, calibration_alpha) + 1", "pools - critical_count(pools, kept, calibration_alpha) + 2", "bounds/test_pools.py::test_pac_rank_is_the_largest_valid_one"),
    ("a stake beyond 1/mean", "bounds/pools.py::EThreshold.__post_init__", "not 0 <= self.stake * self.mean < 1", "self.stake * self.mean < 0", "bounds/test_pools.py::test_a_stake_that_could_turn_wealth_negative_is_refused"),
    ("wealth compared without its alpha", "bounds/pools.py::EThreshold.certified", "math.log(self.uniform) - math.log(self.alpha)", "math.log(self.uniform)", "bounds/test_pools.py::test_false_certificates_over_all_totals"),
    ("the uniform number redrawn", "promises/kinds/betting.py::_bets", "draw.uniform", "min(draw.uniform, Draw.fresh().uniform, Draw.fresh().uniform)", "promises/test_whole_pools.py::test_the_secret_number_alone_certifies_as_often_as_alpha"),
    ("pools in the table's order", "promises/kinds/betting.py::OnAverage.certify", "draw.order", "np.arange", "promises/test_whole_pools.py::test_pools_sorted_by_outcome_change_nothing"),
    ("gamma not paid", "bounds/sampled.py::Split.certified", "alpha / GAMMA", "alpha / 1e9", "bounds/test_sampled.py::test_the_p_value_is_at_most_alpha_where_certified"),
    ("the audit rate left out of the law", "bounds/sampled.py::Split._tail", "float(self.audit_rate) * d2", "d2", "bounds/test_sampled.py::test_the_level_holds_at_every_split_of_the_rate"),
    ("a threshold above the edge too soon", "bounds/sampled.py::edge_count", "smallest(lambda above: split.certified(above, 0, alpha), 1, rows, guess)", "smallest(lambda above: split.certified(above, 0, alpha), 1, rows, guess) - 1", "bounds/test_sampled.py::test_above_the_edge_the_smallest_count_that_needs_no_audit_decides"),
    ("only labelled rows counted", "promises/kinds/rate_proofs.py::certify_audited", "(len(scores), len(below))", "(int(np.count_nonzero(drawn)), len(below))", "promises/test_more_promises.py::test_audited_labels_are_false_at_most_alpha_at_every_split"),
    ("false positives not counted", "bounds/sampled.py::labelled_rate", "wrong * check.as_rate(longest, 'longest')", "0", "bounds/test_noise.py::test_the_rate_is_that_of_the_worst_list_of_the_longest_length"),
    ("gamma not paid for the edge", "promises/kinds/rate_proofs.py::certify_rate", "level.alpha - gamma", "level.alpha", "promises/test_noisy_labels.py::test_gamma_is_paid"),
    ("labels lost not counted", "bounds/sampled.py::labelled_share", "1 - check.as_fraction(false_negative, 'false_negative')", "1", "promises/test_noisy_labels.py::test_labels_lost_below_the_threshold_are_what_a_share_is_paid_for"),
    ("kept whatever the probability", "promises/sampled.py::thin", "np.where(drawn | lost, lowest / rates, 0.0)", "np.where((drawn | lost) & good, 1.0, lowest)", "promises/test_more_promises.py::test_thinned_labels_are_false_at_most_alpha"),
    ("the walk goes on after a failure", "bounds/precision.py::passing", "np.argmin(here)", "here.sum()", "bounds/test_precision.py::test_a_walk_stops_at_the_first_failure"),
    ("the walk begins at the first list that passes", "bounds/precision.py::passing", "begin + int(np.argmin(here))", "begin + int(np.flatnonzero(here)[-1]) + 1 if here.any() else begin", "bounds/test_precision.py::test_a_walk_stops_at_the_first_failure"),
    ("every score at full alpha", "promises/terms.py::Terms.level", "self.alpha / self.scores", "self.alpha", "promises/test_more_promises.py::test_the_best_of_several_is_false_at_most_alpha_and_uncorrected_it_is_not"),
    ("both promises at full alpha", "promises/terms.py::Terms.level", "promise_shares(self.all_targets)", "1", "promises/test_more_promises.py::test_two_promises_share_alpha_and_one_list"),
    ("the tie is on the budget's list", "promises/kinds/budget.py::Budget.certify", "math.nextafter(edge, math.inf)", "edge", "promises/test_more_promises.py::test_the_list_of_a_budget_ends_before_the_tie"),
    ("the false share without its +1", "bounds/precision.py::false_share_rank", "1 + int(false_above[r - 1])", "int(false_above[r - 1])", "bounds/test_precision.py::test_average_false_share_over_every_order_and_labels"),
    ("the chain's level at one end of an interval", "bounds/rank_chain.py::_BlockEnd.add", "high[begin:end, None]", "0.8 * begun", "bounds/test_rank_chain.py::test_the_bound_holds_where_only_the_first_block_can_be_false"),
    ("the chain's level without rows that fit", "bounds/rank_chain.py::_false_given_end", "first * from_there[0]", "0.5 * first * from_there[0]", "bounds/test_rank_chain.py::test_the_bound_holds_at_every_position_of_the_boundary"),
    ("the chain's level without what more qualified rows add", "bounds/rank_chain.py::_false_given_end", "hits + more", "hits", "bounds/test_rank_chain.py::test_the_chance_given_where_a_block_ends_is_the_double_sum"),
    ("one qualified too many in the block", "bounds/collection.py::block_count", "min(qualified - 1, block)", "min(qualified - 2, block) if qualified > 1 else 0", "bounds/test_collection.py::test_block_count_is_the_definition_in_integers_ties_with_alpha_included"),
    ("a tie with alpha decided by floats", "bounds/collection.py::block_count", "first = min(first, i) if holds else max(first, i + 1)", "pass", "bounds/test_collection.py::test_block_count_is_the_definition_in_integers_ties_with_alpha_included"),
    ("the pool's k-th not counted", "bounds/collection.py::block_pool_count.survival", "np.clip(ranks, 1, size) + k - 1", "np.clip(ranks, 1, size) + k", "bounds/test_collection.py::test_sums_for_future_pools_against_rationals"),
    ("the c-th draw a rank too low", "bounds/collection.py::_rank_pmf", "count / ranks", "(count - 1) / ranks", "bounds/test_collection.py::test_figures_of_the_contract_and_large_collections"),
    ("u + d for u + 1 + d", "bounds/control_sample.py::_Walk.__init__", "missable + 1.0", "missable + 0.0", "bounds/test_control_sample.py::test_level_over_every_number_of_relevant_items"),
    ("the last u of many", "bounds/control_sample.py::_cells", "last[begins] + known", "last[ends] + known", "bounds/test_control_sample.py::test_of_many_u_looked_at_together_the_first_goes_with_the_last_r"),
    ("R on a coarse grid", "bounds/control_sample.py::_Sample.cells", "_cells(self.size, self.recall, known)", "_cells(self.size, self.recall, known)[:, ::2]", "bounds/test_control_sample.py::test_level_over_every_number_of_relevant_items"),
    ("the first R of each u", "bounds/control_sample.py::_last_of_each", "np.flatnonzero(np.diff(missable))", "np.flatnonzero(np.diff(missable, prepend=-1))[:-1]", "bounds/test_control_sample.py::test_level_over_every_number_of_relevant_items"),
    ("a drop's chance without the one that was not drawn", "bounds/control_sample.py::_Sample._gains", "np.clip(left, 0, 1)", "np.clip(left, 0, 1) * 0.5", "bounds/test_control_sample.py::test_level_over_every_number_of_relevant_items"),
    ("more dropped than there are", "bounds/control_sample.py::_Sample.used_up", "max(drop, int(np.argmax(drops >= drop - 1)))", "int(np.argmax(drops >= drop - 1))", "bounds/test_control_sample.py::test_level_over_every_number_of_relevant_items"),
    ("one fewer to go on with in the table than in the draw", "lifecycle/labelling_recall.py::RecallDesign.passed", "self.stages[at].least", "self.stages[at].least - 1", "lifecycle/test_collection_recall.py::test_of_all_samples_that_go_on_the_list_is_false_at_most_alpha_of_the_time[a look]"),
    ("the drops of a sample that always goes on", "lifecycle/labelling_recall.py::RecallDesign._uniform", "control_rule(self.size, len(places), self.promise.kept_share, self.alpha, looks=self.passed)", "control_rule(self.size, len(places), self.promise.kept_share, self.alpha)", "lifecycle/test_collection_recall.py::test_of_all_samples_that_go_on_the_list_is_false_at_most_alpha_of_the_time[a look]"),
    ("hits of the first part counted twice", "lifecycle/labelling_recall.py::RecallDesign._uniform", "rule.drops[len(hits)]", "rule.drops[min(len(places), len(hits) + len(self.sample.marked(self.stages[0].asked)))]", "lifecycle/test_collection_recall.py::test_of_all_samples_that_go_on_the_list_is_false_at_most_alpha_of_the_time[a look]"),
    ("a sample that goes on with one too few", "lifecycle/labelling_recall.py::RecallDesign._goes_on", "self.stages[part].least", "self.stages[part].least - 1", "lifecycle/test_collection_recall.py::test_whether_a_sample_goes_on_depends_on_how_many_qualify_and_not_on_where"),
    ("all of alpha for a sample that may not go on", "bounds/control_sample.py::_Sample.cells", "self.level * chance", "self.level * chance ** 0", "bounds/test_control_sample.py::test_of_the_samples_that_go_on_at_most_alpha_fail"),
    ("drops used up with chances to go on that are not", "bounds/control_sample.py::_Sample._gains", "gains * self.going[count]", "gains", "bounds/test_control_sample.py::test_of_the_samples_that_go_on_at_most_alpha_fail"),
    ("a look failed with one fewer", "bounds/collection_lists.py::chances_to_go_on", "range(least)", "range(least - 1)", "bounds/test_control_sample.py::test_the_chance_to_go_on_over_every_way_to_divide_the_relevant_ones"),
    ("a second look that forgets the first", "bounds/collection_lists.py::chances_to_go_on", "ways[:least], before = (-np.inf, rows)", "before = rows", "bounds/test_control_sample.py::test_the_chance_to_go_on_over_every_way_to_divide_the_relevant_ones"),
    ("more kept above the second draw than counted", "lifecycle/labelling_recall.py::BothDraws.ended", "block_drop(free, len(stage.asked), self.share, level, kept, sure)", "block_drop(free, len(stage.asked), self.share, level, 9 * kept, sure)", "lifecycle/test_collection_recall.py::test_over_every_labelling_and_both_draws_the_list_is_false_at_most_alpha"),
    ("looks that do not rise", "bounds/stop_sample.py::_sizes", "max([needed, *sizes[-1:]])", "needed", "bounds/test_stop_sample.py::test_looks_rise_where_the_minimum_alone_would_not"),
    ("K(0) for K(h)", "bounds/stop_sample.py::too_many_left", "hits + (1 - recall) * found", "(1 - recall) * found", "bounds/test_stop_sample.py::test_too_many_left_is_the_first_number_that_breaks_the_recall"),
    ("every look at full alpha", "bounds/stop_sample.py::rest_looks", "rest_level(rest, worst, sizes) <= alpha * (1 - MARGIN)", "eta <= alpha", "bounds/test_stop_sample.py::test_the_figures_of_the_contract"),
    ("both stages at full alpha", "lifecycle/labelling_block.py::BlockDesign._run_block", "self.alpha * (1 - self.fallback)", "self.alpha", "lifecycle/test_labelling_level.py::test_counts_use_the_size_of_their_own_part_and_their_own_share_of_alpha"),
    ("N of the wrong part", "lifecycle/labelling_block.py::BlockDesign.run_fallback", "self.apart or self.size", "self.size", "lifecycle/test_labelling_level.py::test_counts_use_the_size_of_their_own_part_and_their_own_share_of_alpha"),
    ("known labels counted twice", "lifecycle/labelling_block.py::BlockDesign._run_prefixes", "(hits, known)", "(hits + known, known)", "lifecycle/test_labelling_level.py::test_prefixes_are_those_of_the_definition"),
    ("the pilot's ranks among all rows choose the block", "lifecycle/labelling_block.py::BlockDesign.next_stage", "self.within is None", "True", "lifecycle/test_labelling.py::test_the_block_for_future_pools_knows_nothing_of_where_the_other_rows_lie"),
    ("one pad too many", "bounds/collection_lists.py::most_pads", "math.floor((share * dropped + (1 - share) * found) / share)", "math.floor((share * dropped + (1 - share) * found) / share) + 1", "lifecycle/test_collection_precision.py::test_over_every_labelling_and_draw_the_list_is_false_at_most_alpha[rows labelled below]"),
    ("pilot positives counted again as found", "lifecycle/labelling_precision.py::PrecisionDesign.accepted", "self.sample.marked(later)", "good", "lifecycle/test_collection_precision.py::test_over_every_labelling_and_draw_the_list_is_false_at_most_alpha[known rows in and out of the block]"),
    ("a row kept whose pilot label is missing", "lifecycle/labelling_precision.py::PrecisionDesign.accepted", "self.sample.marked([*before], '-')", "[]", "lifecycle/test_collection_precision.py::test_over_every_labelling_and_draw_the_list_is_false_at_most_alpha[labels missing in the pilot]"),
    ("the level kept after a failure", "bounds/collection_lists.py::last_passing", "level = Fraction(0)", "pass", "lifecycle/test_collection_precision.py::test_a_level_is_lost_with_the_step_that_fails"),
    ("dropped rows credited inside the claim", "bounds/collection_lists.py::passes", "may_fail(share, prefix.free, known) + 1", "may_fail(share, prefix.free, known) + 1 + prefix.failed", "lifecycle/test_collection_precision.py::test_over_every_labelling_and_draw_the_list_is_false_at_most_alpha[a sequence]"),
    ("one failure more may be hidden", "bounds/collection_lists.py::passes", "may_fail(share, prefix.free, known) + 1", "may_fail(share, prefix.free, known) + 2", "lifecycle/test_collection_precision.py::test_over_every_labelling_and_draw_the_list_is_false_at_most_alpha[a sequence]"),
    ("a missing label of the block taken for qualified", "lifecycle/labelling_precision.py::PrecisionDesign._passed", "self.sample.labels[at] != '1'", "self.sample.labels[at] == '0'", "lifecycle/test_collection_precision.py::test_over_every_labelling_and_draw_the_list_is_false_at_most_alpha[a label missing in the block]"),
    ("prefixes that end inside tied scores", "lifecycle/labelling_precision.py::score_ends", "fetched.reaching.tolist()", "ends.tolist()", "lifecycle/test_collection_precision.py::test_prefixes_end_where_scores_change"),
    ("those accepted tested at full alpha", "lifecycle/labelling_triage.py::TriageDesign.level", "super().level / 2", "super().level", "lifecycle/test_collection_triage.py::test_over_every_labelling_and_draw_each_promise_is_false_at_most_half_of_alpha[one prefix]"),
    ("one more undecided than pads", "lifecycle/labelling_triage.py::Lists.fits", "len(self.undecided) <= self.accepted.pads", "len(self.undecided) <= self.accepted.pads + 1", "lifecycle/test_collection_triage.py::test_over_every_labelling_and_draw_each_promise_is_false_at_most_half_of_alpha[hits are missing]"),
    ("a row rejected whose label is missing", "lifecycle/labelling_triage.py::TriageDesign._lists", "mark == base.MISSING and (at >= made.end or at in off)", "False", "lifecycle/test_collection_triage.py::test_over_every_labelling_and_draw_each_promise_is_false_at_most_half_of_alpha[a label missing below]"),
    ("a missing label of the second draw is no hit", "lifecycle/labelling_recall.py::BothDraws.ended", "sample.labels[at] != '0'", "sample.labels[at] == '1'", "lifecycle/test_collection_triage.py::test_over_every_labelling_and_draw_each_promise_is_false_at_most_half_of_alpha[hits are missing]"),
    ("one more may be missed", "bounds/collection_lists.py::may_miss", "math.floor((1 - share) / share * kept)", "math.floor((1 - share) / share * kept) + 1", "lifecycle/test_collection_recall.py::test_numbers_against_their_definitions"),
    ("one hit more below the cut", "bounds/collection_lists.py::allowed_hits", "smallest(lambda d: chance_missed(d, free, missable, drawn) > limit, 0, drawn) - 1", "smallest(lambda d: chance_missed(d, free, missable, drawn) > limit, 0, drawn)", "lifecycle/test_collection_recall.py::test_numbers_against_their_definitions"),
    ("those tied at the threshold not counted as listed", "lifecycle/labelling_recall.py::RecallDesign._listing", "self.sample.reaching(threshold)", "cut", "lifecycle/test_labelling.py::test_how_many_are_listed_counts_those_tied_at_the_threshold"),
    ("labels that never came taken for undrawn ones", "promises/sampled.py::require_chance", "gap ** 2 > -2 * math.log(BY_CHANCE / 2) * (variance + gap / 3)", "False", "promises/test_combinations.py::test_labels_that_were_drawn_and_never_came_are_not_taken_for_undrawn_ones"),
    ("the length of the list without those who left or joined it", "lifecycle/labelling_recall.py::RecallDesign._listing", "end - self.inside({*off}, 0, end) + self.inside({*on}, end, self.size)", "end", "lifecycle/test_collection_recall.py::test_rare_ones_take_two_draws_and_plenty_take_one"),
    ("the lemma with one marked row fewer", "bounds/collection_lists.py::chance_missed", "missable + 1 + allowed", "missable + allowed", "lifecycle/test_collection_recall.py::test_the_lemma_over_every_set_of_marked_rows"),
    ("a list of a table with other scores", "workflows/label_tables.py::write_certified", "listed != work.listed", "False", "cli/test_labelling_cli.py::test_no_list_is_written_of_a_table_that_is_not_the_one_that_was_drawn_from"),
    ("a list of a table whose drawn rows are others", "workflows/label_tables.py::write_certified", "drawn_rows(table, work, work.drawn)", "None", "cli/test_labelling_cli.py::test_no_list_is_written_of_a_table_that_is_not_the_one_that_was_drawn_from"),
    ("rows of the pilot drawn again", "lifecycle/labelling_design.py::draw_blocks", "_around(apart, table[:, 0])", "table[:, 0]", "lifecycle/test_labelling_level.py::test_every_blocks_sample_is_uniform"),
    ("the sample left off the list", "lifecycle/labelling.py::Labelling.select", "mask[on], mask[off] = (True, False)", "mask[off] = False", "lifecycle/test_labelling_level.py::test_recall_of_the_collection_and_why_the_sample_stays_on_the_list"),
    ("the level of both sides", "bounds/collection_lists.py::kept_share", "levels(alpha, census=kept.drawn == kept.size)", "(alpha, alpha)", "lifecycle/test_validation.py::test_the_share_kept_is_less_than_said_at_most_alpha_of_the_time"),
    ("a missing label among those left out is not relevant", "lifecycle/validation.py::Validation.sampled", "len(left) - left.count('0')", "left.count('1')", "lifecycle/test_validation.py::test_a_missing_label_counts_against_the_decisions"),
    ("a label corrected after the result", "lifecycle/validation.py::Validation.tell", "self.done and kept[place[row]] != mark", "False", "lifecycle/test_validation.py::test_a_label_can_be_corrected_until_the_result_is_known"),
    ("a missing label is found", "lifecycle/stopping.py::StopTest.recall_now", "state.labels.count('1')", "self.hits", "lifecycle/test_stopping.py::test_a_missing_label_is_not_counted_as_found"),
    ("a hit taken back after its look is no hit", "lifecycle/stopping.py::StopTest.correct", "'x' if mark == '0' and at < looked else mark", "mark", "lifecycle/test_stopping.py::test_a_hit_that_is_taken_back_after_its_look_stays_a_hit_and_is_not_found"),
    ("a missing label is no hit", "lifecycle/stopping.py::StopTest.hits", "len(self._state.labels) - self._state.labels.count('0')", "self._state.labels.count('1')", "lifecycle/test_labelling.py::test_a_missing_label_is_a_hit_and_hits_count"),
    ("each of several scores at the whole alpha", "promises/terms.py::Terms.level", "self.alpha / self.scores", "self.alpha", "promises/test_levels.py::test_no_declared_pair_of_conditions_makes_false_promises_more_often_than_alpha[Value]"),
    ("ratios within a factor as if they were exact", "promises/shift.py::with_margin", "{name: each.widened(within) for name, each in terms.targets.items()}", "terms.targets", "promises/test_levels.py::test_no_declared_pair_of_conditions_makes_false_promises_more_often_than_alpha[Precision]"),
    ("drawn labels kept as they come", "promises/sampled.py::thin", "coins < chance", "drawn", "promises/test_levels.py::test_no_declared_pair_of_conditions_makes_false_promises_more_often_than_alpha[Value]"),
    ("a budget at double alpha", "promises/kinds/budget.py::Budget.largest", "level.alpha", "2 * level.alpha", "promises/test_levels.py::test_no_declared_pair_of_conditions_makes_false_promises_more_often_than_alpha[Budget]"),
    ("a set that nobody can ask for", "promises/conditions.py::Proved.covers", "asked.possible", "True", "promises/test_matrix.py::test_sidak_is_for_disjoint_groups_with_rows_of_their_own"),
    ("evidence of any sort", "promises/proved.py::proved_from", "evidence in each.values('evidence')", "True", "promises/test_matrix.py::test_a_labelling_and_a_campaign_take_what_is_declared_for_them"),
]  # fmt: skip


@pytest.fixture(scope="module")
def forks():
    running = Forks()
    yield running
    running.close()


def home(module: str) -> Path:
    """Where a module is: in the package, or in that of the paper beside it."""
    return PAPER.parent / module if module.startswith("paper/") else SOURCE / module


def changed(place: str, original: str, mutant: str) -> str:
    module, _, function = place.partition("::")
    try:
        if not home(module).exists():
            raise NoSuchPlace("there is no such module: update the mutant")
        return mutated(home(module).read_text(encoding="utf-8"), function, original, mutant)
    except NoSuchPlace as problem:
        raise NoSuchPlace(f"{module}: {problem}\n{function} is in {homes(SOURCE, function)}") from None


def cases():
    """The first mutant of a module belongs to `make test`, the others to `make exhaustive`."""
    seen: set[str] = set()
    for name, place, *rest in MUTANTS:
        module = place.partition("::")[0]
        yield pytest.param(place, *rest, id=name, marks=[pytest.mark.exhaustive] if module in seen else [])
        seen.add(module)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "original", "mutant", "tests"), list(cases()))
def test_mutant_is_caught(tmp_path, forks, place, original, mutant, tests):
    for package in (SOURCE, PAPER):  # with what is compiled: only the file that changes is compiled anew
        shutil.copytree(package, tmp_path / package.name)
    module = home(place.partition("::")[0])
    copy = tmp_path / module.relative_to(PAPER.parent if module.is_relative_to(PAPER) else SOURCE.parent)
    copy.write_text(changed(place, original, mutant), encoding="utf-8")
    helpers = ("helpers/simulated_pools.py", "helpers/randomness.py", "helpers/seeded/sitecustomize.py")
    levels = (str(each.relative_to(TESTS)) for each in (TESTS / "promises" / "levels").glob("*.py"))
    for each in (tests.partition("::")[0], *helpers, *levels):
        copy = tmp_path / "tests" / each
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TESTS / each, copy)
    code, output = forks.run(tmp_path, f"tests/{tests}")
    assert code == 1, output[-4000:]
    assert "failed" in output


@pytest.mark.parametrize(
    ("place", "original", "mutant"), [m[1:4] for m in MUTANTS], ids=[m[0] for m in MUTANTS]
)
def test_mutant_has_its_place(place, original, mutant):
    """Quick, so that whoever renames or rewrites a function is told at once."""
    assert changed(place, original, mutant)


CODE = """
class Rule:
    def count(self, n, alpha):
        limit = n * (alpha / 2)  # half for each end
        return limit

def count(n): return [n + 1,
    n + 1]
"""


def test_a_mutant_is_found_wherever_its_line_stands_and_however_it_is_laid_out():
    moved = "def first(): ...\n" + CODE.replace("(alpha / 2)", "(\n    alpha\n    / 2\n)")
    for source in (CODE, moved):
        assert "limit = n * alpha\n" in mutated(source, "Rule.count", "alpha / 2", "alpha")
        assert "limit" not in mutated(source, "Rule.count", "limit = n * (alpha/2)", "pass").replace(
            "return limit", ""
        )


def test_a_place_that_is_gone_or_not_one_is_said():
    with pytest.raises(NoSuchPlace, match=r"there is no function Rule\.counts"):
        mutated(CODE, "Rule.counts", "alpha / 2", "alpha")
    with pytest.raises(NoSuchPlace, match=r"`alpha / 3` stands 0 times in Rule\.count, not once"):
        mutated(CODE, "Rule.count", "alpha / 3", "alpha")
    with pytest.raises(NoSuchPlace, match=r"`n \+ 1` stands 2 times in count, not once"):
        mutated(CODE, "count", "n + 1", "n")
    for module in ("bounds/counting.py", "bounds/pools.py"):
        with pytest.raises(NoSuchPlace, match=r"critical_count is in \['bounds/counts.py'\]"):
            changed(f"{module}::critical_count", "alpha", "2 * alpha")
