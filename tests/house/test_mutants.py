"""Mutants: each wrong version of a rule must turn an enumerated guarantee red.

A copy of the package is changed in one place and the test named runs against it, in a fork of a process that has
nothing of ours loaded; it has to fail.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import surelist
from tests.helpers.forks import Forks

SOURCE = Path(surelist.__file__).parent
TESTS = Path(__file__).parents[1]

# (what is wrong, file, original, mutant, test)
MUTANTS = [
    ("alpha doubled in the exact rule", "bounds/counts.py", "tails.binomial_tail(n, p, c) <= tails.safe(alpha)", "tails.binomial_tail(n, p, c) <= tails.safe(2 * alpha)", "bounds/test_guarantees.py::test_expected_fails_at_most_alpha"),
    ("alpha doubled in the pool rule", "bounds/counts.py", "tails.pool_tail(n, k, pool_size, c) <= tails.safe(alpha)", "tails.pool_tail(n, k, pool_size, c) <= tails.safe(2 * alpha)", "bounds/test_guarantees.py::test_per_pool_over_every_merged_order"),
    ("alpha doubled when a count is verified", "bounds/counts.py", "<= alpha * (1 - tails.MARGIN / 2)", "<= 2 * alpha", "bounds/test_certifies.py"),
    ("the first term left out when a count is verified", "bounds/_tails.py", "np.arange(count, last + 1, dtype=np.float64)", "np.arange(count + 1, last + 2, dtype=np.float64)", "bounds/test_certifies.py"),
    ("beta tail without the +1", "bounds/_tails.py", "special.betainc(count, n - count + 1, rate)", "special.betainc(count, n - count, rate)", "bounds/test_guarantees.py::test_exact_count_is_the_smallest_valid_one"),
    ("n-1 for n in the exact rule", "bounds/counts.py", "return _exact_count(n, fraction, alpha)", "return _exact_count(n - 1, fraction, alpha) if n > 1 else 1", "bounds/test_guarantees.py::test_exact_count_is_the_smallest_valid_one"),
    ("one draw too many in the pool rule", "bounds/_tails.py", "drawn = count + k - 1", "drawn = count + k", "bounds/test_guarantees.py::test_per_pool_over_every_merged_order"),
    ("> for >= when selecting", "_check.py", "np.greater_equal(block, threshold", "np.greater(block, threshold", "bounds/test_guarantees.py::test_expected_fails_at_most_alpha"),
    ("the next larger order statistic", "promises/evidence.py", "len(self.scores) - count for", "min(len(self.scores) - 1, len(self.scores) - count + 1) for", "promises/test_calibration.py::test_threshold_is_the_cth_largest_qualified_score"),
    ("n without the unqualified rows", "promises/evidence.py", "rows = len(scores) if member is None", "rows = int(np.count_nonzero(qualified)) if member is None", "promises/test_calibration.py::test_threshold_is_the_cth_largest_qualified_score"),
    ("dkw without the band", "bounds/counts.py", "/ rate.denominator + slack", "/ rate.denominator", "bounds/test_guarantees.py::test_expected_fails_at_most_alpha"),
    ("dkw rounded down", "bounds/counts.py", "math.ceil(exact)", "math.floor(exact)", "promises/test_calibration.py::test_dkw_is_algorithm_1_bit_for_bit_on_10000_inputs"),
    ("simultaneous at double level", "bounds/simultaneous.py", "<= alpha - 1e-8", "<= 2 * alpha", "bounds/test_guarantees.py::test_simultaneous_family_holds_at_once"),
    ("simultaneous forgets the band's half", "bounds/simultaneous.py", "_thin_family(n, alpha / 2)", "_thin_family(n, alpha)", "bounds/test_many_rows.py::test_all_that_every_count_certifies_holds_at_once"),
    ("simultaneous at double level on the thin grid", "bounds/simultaneous.py", "crossed = crossing_probability(n, *trial)", "crossed = crossing_probability(n, *trial) / 2", "bounds/test_many_rows.py::test_all_that_every_count_certifies_holds_at_once"),
    ("a hair below the thin grid's rate", "bounds/simultaneous.py", "asked[-1]) * (1 + 1e-15)", "asked[-1]) * (1 - 1e-15)", "bounds/test_many_rows.py::test_never_looser_than_dkw_and_exact_at_round_rates"),
    ("the band at double level", "bounds/counts.py", "count / n - dkw_epsilon(n, alpha)", "count / n - dkw_epsilon(n, min(0.99, 4 * alpha))", "bounds/test_many_rows.py::test_all_that_every_count_certifies_holds_at_once"),
    ("minus before Bernstein's root", "bounds/counts.py", "4 * log / 3 + math.sqrt", "4 * log / 3 - math.sqrt", "bounds/test_guarantees.py::test_bernstein_inverse_and_sign"),
    ("pac at the wrong end", "bounds/counts.py", "check.as_alpha(alpha)))\n    return min(1.0, rate", "2 * check.as_alpha(alpha)))\n    return min(1.0, rate", "bounds/test_guarantees.py::test_bernstein_and_pac_rates_ensure_the_worst_case"),
    ("recall on all rows", "promises/targets.py", "bounds.critical_count(qualified, self.share, level.alpha)", "bounds.critical_count(rows, self.share, level.alpha) - (rows - qualified)", "bounds/test_guarantees.py::test_recall_fails_at_most_alpha"),
    ("every group at full alpha", "promises/groups.py", "return alpha / groups", "return alpha", "promises/test_simulations.py::test_disjoint_groups_hold_together"),
    ("a group forgotten when selecting", "filters.py", "for each in self.groups:\n            rows = np.flatnonzero", "for each in self.groups[:1]:\n            rows = np.flatnonzero", "promises/test_simulations.py::test_disjoint_groups_hold_together"),
    ("the same thinning for everyone", "promises/shift.py", "fresh_bits(SEED_BITS) if seed is None", "0 if seed is None", "promises/test_statements.py::test_a_promise_with_weights_is_false_at_most_as_often_as_alpha_says"),
    ("a count bound after looking", "promises/policy.py", 'fixed = cutoff.level.rule == "exact" and not', "fixed = not", "promises/test_statements.py::test_after_looking_only_the_papers_bound_on_the_excess_is_given"),
    ("a count bound with ties", "promises/policy.py", 'cutoff.level.rule == "exact" and not cutoff.steps[0].tied', 'cutoff.level.rule == "exact"', "promises/test_statements.py::test_no_count_bound_on_the_excess_where_scores_are_tied"),
    ("recall from one qualified row on", "promises/targets.py", "if qualified < fewest:", "if qualified < 1:", "promises/test_statements.py::test_a_refused_recall_says_how_many_qualified_rows_it_takes_and_nothing_that_recall_does_not_have"),
    ("a fingerprint without labels", "promises/evidence.py", "everyone.sums, qualified.sums)", "everyone.sums, everyone.sums)", "promises/test_statements.py::test_the_fingerprint_is_that_of_the_multiset_of_scores_and_labels"),
    ("targets estimated on the calibration rows", "promises/certification.py", "    _refuse_estimated(evidence, terms)\n", "", "promises/test_statements.py::test_targets_estimated_from_the_calibration_rows_are_refused"),
    ("sidak's parts without the other groups", "promises/groups.py", "-math.expm1(groups * math.log1p(-alpha))", "alpha", "promises/test_statements.py::test_sidak_with_two_levels_says_how_much_each_part_may_fail"),
    ("weights ignored", "promises/shift.py", "random(rows) < ratio", "random(rows) < 1.0", "promises/test_simulations.py::test_known_shift_is_undone_by_weights"),
    ("tie break of the next better candidate", "promises/certification.py", "numbers[each.count - above - 1]", "numbers[max(0, each.count - above - 2)]", "promises/test_calibration.py::test_tie_break_lets_exactly_the_critical_count_in"),
    ("missing labels dropped", "_check.py", "return qualified, count", "return qualified[~np.isnan(array)] if count else qualified, count", "promises/test_calibration.py::test_missing_labels_stay_in_as_not_qualified"),
    ("each size of a pac range on its own", "promises/targets.py", '"exact" if self.sizes[0] == self.sizes[1] else "simultaneous"', '"exact"', "promises/test_calibration.py::test_range_of_sizes_by_pac_holds_for_all_sizes_at_once"),
    ("groups or kept rows, not both", "promises/calibration.py", "    return a & b\n", "    return a\n", "promises/test_simulations.py::test_groups_and_weights_together"),
    ("alpha doubled in a campaign", "lifecycle/schedule.py", "[alpha * (1 - 0.5 ** (j + 1))", "[2 * alpha * (1 - 0.5 ** (j + 1))", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("earlier looks forgotten", "bounds/sequential.py", "- self.spent - lost", "- lost", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("walks that crossed walk on", "bounds/sequential.py", "self._alive = self._alive[:cut]", "pass", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("a count too small at a look", "bounds/sequential.py", "min(self._lowest + cut, rows + 1)", "min(self._lowest + cut - 1, rows + 1)", "bounds/test_sequential.py::test_level_is_kept_at_every_look_and_no_smaller_count_would_do"),
    ("rows of unreviewed pools left out", "lifecycle/campaign.py", "self.rows += size", "self.rows += len(scores)", "lifecycle/test_campaign.py::test_thresholds_are_those_of_the_definition"),
    ("late reviews below the threshold kept", "lifecycle/score_sketch.py", "side=\"right\") - 1", "side=\"right\").clip(max=len(self.scores) - 1)", "lifecycle/test_campaign.py::test_score_counts_round_down_only"),
    ("missing reviews are zeros for the monitor", "lifecycle/monitor.py", "counts.successes + counts.unreviewed)", "counts.successes)", "lifecycle/test_missing_reviews.py::test_the_alarm_takes_missing_reviews_as_qualified"),
    ("everyone listed is evidence beside an audit", "lifecycle/screened.py", "!= ord(LISTED)", "!= ord(UNKNOWN)", "lifecycle/test_audited_campaign.py::test_the_level_is_kept_where_everyone_listed_would_be_far_too_many"),
    ("rows not drawn counted beside an audit", "lifecycle/campaign.py", "self.rows += size if draws is None else drawn", "self.rows += size", "lifecycle/test_audited_campaign.py::test_thresholds_are_those_of_the_rows_drawn_and_may_fall"),
    ("an audit of those with good scores only", "lifecycle/campaign.py", "mask if drawn is None else mask | drawn", "mask", "lifecycle/test_audited_campaign.py::test_thresholds_are_those_of_the_rows_drawn_and_may_fall"),
    ("missing reviews of a closed pool forgotten", "lifecycle/campaign.py", "unreviewed=screened.unreviewed", "unreviewed=0", "lifecycle/test_campaign.py::test_the_monitor_takes_pools_in_order_and_waits"),
    ("missing reviews are qualified at both ends", "lifecycle/claims.py", "low, _ = betting.interval(self.rate, counts.trials, least, alpha)", "low, _ = betting.interval(self.rate, counts.trials, most, alpha)", "lifecycle/test_missing_reviews.py::test_the_interval_covers_the_rate_with_a_tenth_of_the_reviews_missing"),
    ("an audited failure at full weight", "bounds/betting.py", "shares * (p / (1 - p)) / audit_rate", "shares * (p / (1 - p)) / audit_rate**1.1", "lifecycle/test_recall_alarm.py::test_the_average_bet_on_recall_wins_nothing"),
    ("missing audits count as missed", "lifecycle/claims.py", "seen = review.qualified + review.unreviewed + review.missed", "seen = review.qualified + review.unreviewed + review.missed + review.unaudited", "lifecycle/test_recall_alarm.py::test_missing_reviews_never_raise_the_evidence"),
    ("missing listed ones left out of recall", "lifecycle/claims.py", "return Counts(seen, review.qualified, review.unreviewed, review.missed, review.unaudited)", "return Counts(seen - review.unreviewed, review.qualified, 0, review.missed, review.unaudited)", "lifecycle/test_recall_alarm.py::test_missing_reviews_never_raise_the_evidence"),
    ("a recall interval at double level", "bounds/betting.py", "math.log(2 / alpha) + math.log(len(SHARES))", "math.log(0.2 / alpha) + math.log(len(SHARES))", "lifecycle/test_recall_alarm.py::test_the_interval_covers_recall_at_every_pool_at_once"),
    ("alarm at half its level", "lifecycle/monitor.py", ">= -math.log(self.alpha)", ">= -math.log(2 * self.alpha)", "lifecycle/test_monitor.py::test_the_alarm_comes_with_the_first_pool_at_one_over_alpha"),
    ("bets that win on average", "bounds/betting.py", "np.log1p(DROPS * (p / (1 - p)))", "np.log1p(DROPS * (p / (1 - p)) * 1.01)", "lifecycle/test_monitor.py::test_the_average_bet_wins_nothing_at_the_boundary"),
    ("late bets on top of the first", "bounds/betting.py", "math.log(0.5)) if logs", "0.0) if logs", "lifecycle/test_monitor.py::test_e_value_is_the_average_wealth_of_all_bets"),
    ("a replay counts again", "lifecycle/monitor.py", "return known is not None", "return False", "lifecycle/test_monitor.py::test_replaying_reviews_changes_nothing"),
    ("state files without a lock", "_files.py", "if lock in held or fcntl is None:", "if True:", "lifecycle/test_lost_updates.py::test_no_increment_is_lost"),
    ("who writes last wins", "_files.py", "_digest(path.read_bytes()) == known:", "True:", "lifecycle/test_lost_updates.py::test_the_loser_of_two_writers_is_told_and_nothing_is_lost"),
    ("a forged threshold is vouched for", "workflows/recompute.py", '("thresholds", _each(before, "threshold")', '("thresholds", _each(now, "threshold")', "reports/test_past_rows.py::test_a_forged_threshold_is_refused"),
    ("unlabelled rows in the score bins", "reports/audit.py", "array, qualified = array[known], qualified[known]", "pass", "reports/test_past_rows.py::test_score_bins_are_those_of_labelled_rows_and_cover_with_a_third_of_labels_missing"),
    ("half the band per bin", "bounds/counts.py", "check.as_alpha(alpha), 2 * bins)", "check.as_alpha(alpha), bins)", "baselines/test_baselines.py::test_umb_counts_are_the_exact_ceilings"),
    ("> for >= in binning", "baselines/binning.py", "counts >= needed", "counts > needed", "baselines/test_baselines.py::test_umb_certifies_from_exactly_the_critical_count"),
    ("theta rounded down", "baselines/binning.py", "share * (1 + 1e-12)", "share * (1 - 1e-12)", "baselines/test_baselines.py::test_umb_share_spends_the_bound_exactly"),
    ("average calibration at double level", "baselines/regression.py", "bounds.dkw_epsilon(len(array), alpha)", "bounds.dkw_epsilon(len(array), 2 * alpha)", "baselines/test_baselines.py::test_average_calibration_band_holds_at_its_level_and_not_by_far"),
    ("one pool more may fail", "bounds/pools.py", "return math.floor(", "return math.ceil(", "bounds/test_pools.py::test_the_rank_is_the_largest_one_that_keeps_the_level"),
    ("the larger of both tails for pools", "bounds/pools.py", "critical_count(pools, kept, calibration_alpha) + 1", "critical_count(pools, kept, calibration_alpha) + 2", "bounds/test_pools.py::test_pac_rank_is_the_largest_valid_one"),
    ("a stake beyond 1/mean", "bounds/pools.py", "if not 0 <= self.stake * self.mean < 1:", "if self.stake * self.mean < 0:", "bounds/test_pools.py::test_a_stake_that_could_turn_wealth_negative_is_refused"),
    ("wealth compared without its alpha", "bounds/pools.py", "math.log(self.uniform) - math.log(self.alpha)", "math.log(self.uniform)", "bounds/test_pools.py::test_false_certificates_over_all_totals"),
    ("the uniform number redrawn", "promises/averages.py", "return EThreshold(mean, stake, draw.uniform, level.alpha), spread", "return EThreshold(mean, stake, min(draw.uniform, Draw.fresh().uniform, Draw.fresh().uniform), level.alpha), spread", "promises/test_whole_pools.py::test_the_secret_number_alone_certifies_as_often_as_alpha"),
    ("pools in the table's order", "promises/averages.py", "order = draw.order(rows.pools)\n    test, spread", "order = np.arange(rows.pools)\n    test, spread", "promises/test_whole_pools.py::test_pools_sorted_by_outcome_change_nothing"),
    ("gamma not paid", "bounds/sampled.py", "gamma = alpha / GAMMA", "gamma = alpha / 1e9", "bounds/test_sampled.py::test_the_p_value_is_at_most_alpha_where_certified"),
    ("the audit rate left out of the law", "bounds/sampled.py", "float(self.audit_rate) * d2", "d2", "bounds/test_sampled.py::test_the_level_holds_at_every_split_of_the_rate"),
    ("a threshold above the edge too soon", "bounds/sampled.py", "split.certified(above, 0, alpha), 1, rows, guess)", "split.certified(above, 0, alpha), 1, rows, guess) - 1", "bounds/test_sampled.py::test_above_the_edge_the_smallest_count_that_needs_no_audit_decides"),
    ("only labelled rows counted", "promises/sampled.py", "rows, available = len(scores), len(below)", "rows, available = int(np.count_nonzero(drawn)), len(below)", "promises/test_more_promises.py::test_audited_labels_are_false_at_most_alpha_at_every_split"),
    ("kept whatever the probability", "promises/sampled.py", "np.where(drawn, lowest / rates, 0.0)", "np.where(drawn & good, 1.0, lowest)", "promises/test_more_promises.py::test_thinned_labels_are_false_at_most_alpha"),
    ("the walk goes on after a failure", "bounds/precision.py", "int(np.argmin(passed))", "int(passed.sum())", "bounds/test_precision.py::test_the_walk_stops_at_the_first_failure"),
    ("the walk begins at the first list that passes", "bounds/precision.py", "return len(passed) if passed.all() else int(np.argmin(passed))", "return int(np.flatnonzero(passed)[-1]) + 1 if passed.any() else 0", "bounds/test_precision.py::test_the_walk_stops_at_the_first_failure"),
    ("every score at full alpha", "promises/terms.py", "alpha = self.alpha / self.scores", "alpha = self.alpha", "promises/test_more_promises.py::test_the_best_of_several_is_false_at_most_alpha_and_uncorrected_it_is_not"),
    ("both promises at full alpha", "promises/terms.py", "alpha /= 1 + len(self.also)", "alpha /= 1", "promises/test_more_promises.py::test_two_promises_share_alpha_and_one_list"),
    ("the tie is on the budget's list", "promises/reference.py", "threshold = math.nextafter(edge, math.inf)", "threshold = edge", "promises/test_more_promises.py::test_the_list_of_a_budget_ends_before_the_tie"),
    ("the false share without its +1", "bounds/precision.py", "Fraction((1 + int(false_above[r - 1])) * pool)", "Fraction(int(false_above[r - 1]) * pool)", "bounds/test_precision.py::test_average_false_share_over_every_order_and_labels"),
    ("the chain's level at one end of an interval", "bounds/rank_chain.py", "high[begin:end, None] / np.maximum", "0.8 * begun / np.maximum", "bounds/test_rank_chain.py::test_the_bound_holds_where_only_the_first_block_can_be_false"),
    ("the chain's level without rows that fit", "bounds/rank_chain.py", "most - b + 1, 1 - others)", "most - b + 1, 1 - others) * 0.5", "bounds/test_rank_chain.py::test_the_bound_holds_at_every_position_of_the_boundary"),
    ("wrong ratios change the odds by their factor only once", "promises/shift.py", "within**2 * (1 - share)", "within * (1 - share)", "promises/test_density_ratio.py::test_the_share_asked_for_is_the_one_that_the_worst_ratios_leave"),
    ("one qualified too many in the block", "bounds/collection.py", "marked = min(qualified - 1, block)", "marked = min(qualified - 2, block) if qualified > 1 else 0", "bounds/test_collection.py::test_block_count_is_the_definition_in_integers_ties_with_alpha_included"),
    ("a tie with alpha decided by floats", "bounds/collection.py", "first = min(first, i) if holds else max(first, i + 1)", "pass", "bounds/test_collection.py::test_block_count_is_the_definition_in_integers_ties_with_alpha_included"),
    ("the pool's k-th not counted", "bounds/collection.py", "np.clip(ranks, 1, size) + k - 1", "np.clip(ranks, 1, size) + k", "bounds/test_collection.py::test_sums_for_future_pools_against_rationals"),
    ("the c-th draw a rank too low", "bounds/collection.py", "* (count / ranks)", "* ((count - 1) / ranks)", "bounds/test_collection.py::test_figures_of_the_contract_and_large_collections"),
    ("u + d for u + 1 + d", "bounds/control.py", "relevant.astype(np.float64), missable + 1.0", "relevant.astype(np.float64), missable + 0.0", "bounds/test_control.py::test_level_over_every_number_of_relevant_items"),
    ("R on a coarse grid", "bounds/control.py", "alive, low, high, middle = everyone, 0,", "alive, low, high, middle = everyone[::7], 0,", "bounds/test_control.py::test_level_over_every_number_of_relevant_items"),
    ("looks that do not rise", "bounds/rest.py", "sizes.append(max([needed, *sizes[-1:]]))", "sizes.append(needed)", "bounds/test_rest.py::test_looks_rise_where_the_minimum_alone_would_not"),
    ("K(0) for K(h)", "bounds/rest.py", "math.floor((hits + (1 - recall) * found) / recall) + 1", "math.floor(((1 - recall) * found) / recall) + 1", "bounds/test_rest.py::test_too_many_left_is_the_first_number_that_breaks_the_recall"),
    ("every look at full alpha", "bounds/rest.py", "if rest_level(rest, worst, sizes) <= alpha * (1 - MARGIN):", "if eta <= alpha:", "bounds/test_rest.py::test_the_figures_of_the_contract"),
    ("both stages at full alpha", "lifecycle/block_test.py", "alpha, block = design.alpha * (1 - design.fallback), design.blocks[design.chosen]", "alpha, block = design.alpha, design.blocks[design.chosen]", "lifecycle/test_labelling_level.py::test_counts_use_the_size_of_their_own_part_and_their_own_share_of_alpha"),
    ("N of the wrong part", "lifecycle/block_test.py", "size = design.apart or design.size\n    drawn", "size = design.size\n    drawn", "lifecycle/test_labelling_level.py::test_counts_use_the_size_of_their_own_part_and_their_own_share_of_alpha"),
    ("known labels counted twice", "lifecycle/block_test.py", "count, known = int((fresh >= threshold).sum())", "count, known = int((fresh >= threshold).sum()) + int((pilot >= threshold).sum())", "lifecycle/test_labelling_level.py::test_prefixes_are_those_of_the_definition"),
    ("the pilot's ranks among all rows choose the block", "lifecycle/labelling_start.py", "if design.within is None else (design.within, design.apart)", "if True else (design.within, design.apart)", "lifecycle/test_labelling.py::test_the_block_for_future_pools_knows_nothing_of_where_the_other_rows_lie"),
    ("rows of the pilot drawn again", "lifecycle/block_draw.py", "RankDraw(_around(apart, table[:, 0])", "RankDraw(table[:, 0]", "lifecycle/test_labelling_level.py::test_every_blocks_sample_is_uniform"),
    ("the sample left off the list", "lifecycle/labelling.py", "mask[rows] = True", "pass", "lifecycle/test_labelling_level.py::test_recall_of_the_collection_and_why_the_sample_stays_on_the_list"),
    ("a missing label is found", "lifecycle/stopping.py", 'known = state.labels.count("1")', "known = self.hits", "lifecycle/test_stopping.py::test_a_missing_label_is_not_counted_as_found"),
    ("a hit taken back after its look is no hit", "lifecycle/stopping.py", 'kept[at] = "x" if mark == "0" and at < looked else mark', "kept[at] = mark", "lifecycle/test_stopping.py::test_a_hit_that_is_taken_back_after_its_look_stays_a_hit_and_is_not_found"),
    ("a missing label is no hit", "lifecycle/stopping.py", "return len(self._state.labels) - self._state.labels.count(\"0\")", "return self._state.labels.count(\"1\")", "lifecycle/test_labelling.py::test_a_missing_label_is_a_hit_and_hits_count"),
]  # fmt: skip


@pytest.fixture(scope="module")
def forks():
    running = Forks()
    yield running
    running.close()


@pytest.mark.parametrize(
    ("file", "original", "mutant", "tests"), [m[1:] for m in MUTANTS], ids=[m[0] for m in MUTANTS]
)
def test_mutant_is_caught(tmp_path, forks, file, original, mutant, tests):
    package = tmp_path / "surelist"
    shutil.copytree(SOURCE, package)  # with what is compiled: only the file that changes is compiled anew
    text = (package / file).read_text()
    assert text.count(original) == 1, f"{original!r} is not in {file} exactly once: update the mutant"
    (package / file).write_text(text.replace(original, mutant))
    helpers = ("helpers/simulated_pools.py", "helpers/randomness.py", "helpers/seeded/sitecustomize.py")
    for each in (tests.partition("::")[0], *helpers):
        copy = tmp_path / "tests" / each
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TESTS / each, copy)
    code, output = forks.run(tmp_path, f"tests/{tests}")
    assert code == 1, output[-4000:]
    assert "failed" in output
