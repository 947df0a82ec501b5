"""The paper's algorithms and baselines against brute force, linear programs and exact counts."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize, stats

import surelist as sl
from paper import baselines
from surelist import bounds

TARGET = sl.Expected(5, 100)


def sample(n, seed, levels=None):
    rng = np.random.default_rng(seed)
    scores = rng.random(n) ** 2
    if levels:
        scores = np.round(scores * levels) / levels
    return scores, rng.random(n) < scores


def slow_epsilon(n, alpha):
    """sqrt(ln(2/alpha)/(2n)) to 40 digits, as a fraction."""
    with localcontext() as context:
        context.prec = 40
        return Fraction(((Decimal(2) / Decimal(alpha)).ln() / (2 * n)).sqrt())


# --- CSS and its variants, by the definitions of Algorithms 1 to 3 ------------------------------


def css_by_definition(scores, labels, rate, alpha):
    """sup{t : delta-hat(t) >= k/m + epsilon}, tried at every score from the top."""
    n = len(scores)
    for t in sorted(set(scores), reverse=True):
        count = sum(1 for s, y in zip(scores, labels, strict=True) if y and s >= t)
        if Fraction(count, n) >= rate + slow_epsilon(n, alpha):
            return t
    return None


@pytest.mark.parametrize("levels", [None, 20])
@pytest.mark.parametrize("pool_size", [100, 73.5])
def test_css_is_algorithm_1_and_2(levels, pool_size):
    scores, labels = sample(400, 1, levels)
    target = sl.Expected(5, pool_size)
    policy = sl.calibrate(scores, labels, target, rule="dkw")
    assert policy.threshold == css_by_definition(scores, labels, target.rate, 0.1)


def test_css_diversity_is_algorithm_3_also_for_overlapping_groups():
    scores, labels = sample(900, 2)
    rng = np.random.default_rng(3)
    masks = {"a": rng.random(900) < 0.6, "b": rng.random(900) < 0.6}
    targets = {"a": sl.Expected(3, 60), "b": sl.Expected(2.5, 55)}
    policy = sl.calibrate(scores, labels, targets, groups=sl.Groups(masks, "a test"), rule="dkw")
    for name, mask in masks.items():
        expected = css_by_definition(scores[mask], labels[mask], targets[name].rate, 0.05)
        assert policy.thresholds[name] == expected
    pool = rng.random(500)
    members = {"a": rng.random(500) < 0.5, "b": rng.random(500) < 0.5}
    chosen = policy.select(pool, groups=members)
    union = np.zeros(500, bool)
    for name, mask in members.items():
        union |= mask & (pool >= policy.thresholds[name])
    assert (chosen == union).all()


def test_bernstein_and_its_inverse_with_the_right_sign():
    for worst, alpha in [(1, 0.05), (5, 0.1), (20, 0.01)]:
        k = bounds.bernstein_k(worst, alpha)
        log = math.log(1 / alpha)
        assert k == pytest.approx(worst + log / 3 + math.sqrt(log**2 + 18 * k * log) / 3, rel=1e-12)
        assert bounds.bernstein_worst(k, alpha) == pytest.approx(worst, abs=1e-9)
        assert k > worst  # the paper's minus would ask for less than it promises


# --- uniform mass binning -----------------------------------------------------------------------


def umb_by_definition(scores, labels, rate, alpha, bins):
    """Bins, sums and theta with fractions; (thresholds, chances) or None."""
    n = len(scores)
    ordered = sorted(scores, reverse=True)
    inner = {ordered[-(-b * n // bins) - 1] for b in range(1, bins)}
    edges = [*sorted(inner, reverse=True), -math.inf]
    width = 2 * slow_epsilon(n, alpha)
    total, upper = Fraction(0), math.inf
    for place, edge in enumerate(edges):
        count = sum(1 for s, y in zip(scores, labels, strict=True) if y and edge <= s < upper)
        gain = Fraction(count, n) - width
        if total + gain >= rate:
            share = (rate - total) / gain
            assert 0 < share <= 1
            return edges[: place + 1], [1.0] * place + [float(share)]
        total, upper = total + gain, edge
    return None


@pytest.mark.parametrize("bins", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("levels", [None, 6, 50])
@pytest.mark.parametrize("n", [301, 2000])
def test_umb_is_algorithm_4(bins, levels, n):
    for seed in range(4):
        scores, labels = sample(n, seed, levels)
        expected = umb_by_definition(scores.tolist(), labels.tolist(), TARGET.rate, 0.1, bins)
        if expected is None:
            with pytest.raises(baselines.NotEnoughRows, match="uniform mass binning"):
                baselines.umb(scores, labels, TARGET, bins=bins)
            continue
        found = baselines.umb(scores, labels, TARGET, bins=bins)
        assert list(found.thresholds) == expected[0]
        assert found.chances == pytest.approx(expected[1], rel=1e-9)
        assert found.chances[-1] >= expected[1][-1]  # rounded up, never down


def test_umb_counts_are_the_exact_ceilings():
    for n, alpha, bins in [(10_000, 0.1, 1), (10_000, 0.1, 5), (777, 0.05, 2), (100_000, 0.01, 3)]:
        exact = n * (Fraction(1, 20) + 2 * bins * slow_epsilon(n, alpha))
        assert bounds.bins_critical_count(n, Fraction(1, 20), alpha, bins) == math.ceil(exact)
    assert bounds.bins_critical_count(10_000, 0.05, 0.1, 1) == 745
    assert bounds.critical_count(10_000, 0.05, 0.1, "dkw") == 623


def test_umb_certifies_from_exactly_the_critical_count():
    needed = bounds.bins_critical_count(1000, 0.05, 0.1, 1)
    scores = np.linspace(0, 1, 1000)
    found = baselines.umb(scores, np.arange(1000) < needed, TARGET, bins=1)
    assert 0.98 < found.chances[0] <= 1
    with pytest.raises(baselines.NotEnoughRows) as refusal:
        baselines.umb(scores, np.arange(1000) < needed - 1, TARGET, bins=1)
    assert refusal.value.critical_count == needed
    assert refusal.value.qualified_available == needed - 1


def test_umb_share_spends_the_bound_exactly():
    """The lower bound of Algorithm 4 at (b, theta) equals k/m: no more, no less."""
    scores, labels = sample(5000, 5)
    found = baselines.umb(scores, labels, TARGET, bins=4)
    edges = [math.inf, *found.thresholds]
    bound = 0.0
    for upper, lower, chance in zip(edges, edges[1:], found.chances, strict=False):
        inside = labels & (scores >= lower) & (scores < upper)
        bound += chance * (inside.sum() / 5000 - 2 * bounds.dkw_epsilon(5000, 0.1))
    assert bound == pytest.approx(0.05, rel=1e-9)
    assert bound >= 0.05 * (1 - 1e-14)  # rounding never promises more than was counted


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), bins=st.integers(1, 6), levels=st.sampled_from([None, 8, 40]))
def test_deterministic_umb_never_beats_css(seed, bins, levels):
    scores, labels = sample(1500, seed, levels)
    try:
        found = baselines.umb(scores, labels, TARGET, bins=bins, randomised=False)
    except baselines.NotEnoughRows:
        return
    assert set(found.chances) == {1.0}
    assert found.thresholds[-1] <= sl.calibrate(scores, labels, TARGET, rule="dkw").threshold


def test_umb_refusal_says_what_would_do():
    scores, labels = sample(200, 6)
    with pytest.raises(baselines.NotEnoughRows) as refusal:
        baselines.umb(scores, labels, sl.Expected(10, 100), bins=3)
    found = refusal.value
    assert found.rows == 200
    assert found.critical_count > found.qualified_available
    assert found.largest_k is not None
    assert found.largest_k < 10
    many, truth = sample(4 * found.rows_needed, 6)
    baselines.umb(many, truth, sl.Expected(10, 100), bins=3)


# --- per-pool rules -----------------------------------------------------------------------------


def take_by_definition(pool, k):
    """Theorem 1 with loops: chances per candidate."""
    for t in sorted(set(pool), reverse=True):
        if math.fsum(f for f in pool if f >= t) >= k:
            above = math.fsum(f for f in pool if f > t)
            level = math.fsum(f for f in pool if f == t)
            return [1.0 if f > t else (k - above) / level if f == t else 0.0 for f in pool]
    return [1.0] * len(pool)


@pytest.mark.parametrize("levels", [4, 64])  # powers of two: sums are exact
@pytest.mark.parametrize(("size", "k"), [(25, 3), (90, 3), (90, 25)])  # short and long lists
def test_uncalibrated_and_omniscient_are_theorem_1(levels, size, k):
    rng = np.random.default_rng(levels)
    pools = rng.integers(0, levels + 1, (60, size)) / levels * rng.choice([1.0, 0.25, 1 / 32], (60, 1))
    expected = np.array([take_by_definition(pool.tolist(), k) for pool in pools])
    for rule in (baselines.uncalibrated, baselines.omniscient):
        found = rule(pools, k)
        np.testing.assert_allclose(found.chance, expected, atol=1e-12)
        np.testing.assert_allclose(rule(pools[7], k).chance, expected[7], atol=1e-12)
        rich = pools[pools.max(axis=1) > 0.5]  # all reach k: decided by the top scores alone
        np.testing.assert_allclose(rule(rich, k).chance, expected[pools.max(axis=1) > 0.5], atol=1e-12)
    enough = pools.sum(axis=1) >= k
    assert 0 < enough.sum() < 60  # both kinds of pools were tried
    np.testing.assert_allclose((found.chance * pools).sum(axis=1)[enough], k, atol=1e-12)
    assert (found.chance[~enough] == 1).all()
    assert (found.threshold[~enough] == -np.inf).all()


def test_members_of_a_group_are_a_pool_of_their_own():
    rng = np.random.default_rng(8)
    pools = np.round(rng.random((20, 30)), 1)
    member = rng.random((20, 30)) < 0.4
    found = baselines.uncalibrated(pools, 2, member)
    assert (found.chance[~member] == 0).all()
    for row in range(20):
        own = baselines.uncalibrated(pools[row][member[row]], 2)
        np.testing.assert_allclose(found.chance[row][member[row]], own.chance, atol=1e-9)


def test_omniscient_is_the_best_by_linear_programming():
    rng = np.random.default_rng(9)
    for _ in range(30):
        pool = np.round(rng.random(20), 1)
        best = optimize.linprog(np.ones(20), A_ub=[-pool], b_ub=[-3], bounds=(0, 1))
        assert baselines.omniscient(pool, 3).size == pytest.approx(best.fun, abs=1e-7)


def test_calibrated_oracle_is_the_best_by_linear_programming():
    rng = np.random.default_rng(10)
    for _ in range(30):
        mu, rho = rng.random(12), rng.dirichlet(np.ones(12))
        best = optimize.linprog(100 * rho, A_ub=[-100 * mu * rho], b_ub=[-5], bounds=(0, 1))
        found = baselines.calibrated_oracle(mu, rho, TARGET)
        assert found.expected_size == pytest.approx(best.fun, rel=1e-7)
        chance = found.bands.chance(mu)
        assert 100 * (chance * mu * rho).sum() == pytest.approx(5, rel=1e-9)
        assert 100 * (chance * rho).sum() == pytest.approx(found.expected_size, rel=1e-9)
    with pytest.raises(sl.InvalidInput, match="k: expected at most 2, all there is"):
        baselines.calibrated_oracle([0.02], [1.0], TARGET)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), cells=st.integers(1, 6))
def test_a_finer_calibrated_score_is_never_longer(seed, cells):
    rng = np.random.default_rng(seed)
    mu, rho = 0.06 + 0.94 * rng.random(10), rng.dirichlet(np.ones(10))
    cell = rng.integers(0, cells, 10)
    coarse, mass = baselines.coarsen(mu, rho, cell)
    assert baselines.dominates(mu, coarse[np.unique(cell, return_inverse=True)[1]])
    fine_size = baselines.calibrated_oracle(mu, rho, TARGET).expected_size
    assert fine_size <= baselines.calibrated_oracle(coarse, mass, TARGET).expected_size + 1e-9


def test_dominance_needs_every_difference_of_the_other_score():
    assert baselines.dominates([1, 2, 3], [1, 1, 2])
    assert not baselines.dominates([1, 1, 2], [1, 2, 3])


def test_oracle_threshold_reaches_k_and_no_higher_one_does():
    scores, labels = sample(999, 11, 40)
    found = baselines.oracle_threshold(scores, labels, TARGET)
    _, qualified = found.expected(scores, labels, 100)
    assert qualified >= 5 - 1e-12
    higher = scores > found.thresholds[0]
    assert 100 * (labels & higher).sum() / 999 < 5


# --- impossibility ------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "m"), [(5, 100), (1, 2), (0.5, 10), (50, 60), (19, 20)])
def test_no_blind_policy_is_near_the_best_on_both_pools(k, m):
    found = baselines.impossibility(k, m)
    assert found.oracle_sizes == pytest.approx((k, m))
    assert found.size_miss.min() == pytest.approx((m - k) / 2)
    assert found.size_miss.min() >= found.size_bound - 1e-9
    assert found.qualified_miss.min() == pytest.approx(k * (m - k) / (m + k))
    assert found.qualified_sharp >= found.qualified_bound - 1e-12
    # the two best lists by an independent route
    for truth, size in ((1.0, found.oracle_sizes[0]), (k / m, found.oracle_sizes[1])):
        best = optimize.linprog(np.ones(m), A_ub=[np.full(m, -truth)], b_ub=[-k + 1e-9], bounds=(0, 1))
        assert best.fun == pytest.approx(size, rel=1e-6)


def test_impossibility_needs_k_below_the_pool():
    with pytest.raises(sl.InvalidInput, match="expected less than the pool size, 5"):
        baselines.impossibility(5, 5)


# --- without guarantee --------------------------------------------------------------------------


def test_results_without_guarantee_say_so():
    scores, labels = sample(500, 12)
    mapped = baselines.platt(scores, labels)
    for result in (
        baselines.uncalibrated(scores[:100], 5),
        mapped,
        mapped.shortlist(scores[:100], 5),
        baselines.isotonic(scores, labels, TARGET),
    ):
        assert result.guarantee == "no guarantee"
    assert "wrong with probability at most 0.1" in baselines.umb(scores, labels, TARGET, bins=1).guarantee
    assert "true probability" in baselines.omniscient(scores[:100], 5).guarantee


@pytest.mark.parametrize("n", [300, 1001, 20_000])
@pytest.mark.parametrize("levels", [None, 30])
def test_isotonic_is_an_order_statistic_that_fails_half_the_time(n, levels):
    scores, labels = sample(n, n, levels)
    needed = math.ceil(n * Fraction(1, 20))
    own = np.sort(scores[labels])[::-1]
    assert baselines.isotonic(scores, labels, TARGET).thresholds == (own[needed - 1],)
    assert bounds.binomial_tail(n, 0.05, needed) > 0.4  # its probability of falling short


def test_platt_is_the_maximum_of_the_likelihood():
    scores, labels = sample(3000, 13)
    found = baselines.platt(scores, labels)

    def loss(point):
        linear = point[0] * scores + point[1]
        return np.logaddexp(0, linear).mean() - (linear * labels).mean()

    best = optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-9})
    assert (found.slope, found.intercept) == pytest.approx(tuple(best.x), rel=1e-4)
    probability = found.probability(scores)
    assert probability.mean() == pytest.approx(labels.mean(), rel=1e-6)
    expected = take_by_definition(probability[:50].tolist(), 3)
    np.testing.assert_allclose(found.shortlist(scores[:50], 3).chance, expected, atol=1e-9)


def test_platt_of_a_score_that_separates_perfectly():
    found = baselines.platt(np.linspace(0, 1, 200), np.linspace(0, 1, 200) > 0.9)
    assert np.isfinite([found.slope, found.intercept]).all()
    assert found.probability([0.85, 0.95]) == pytest.approx([0, 1], abs=1e-3)


# --- average calibration ------------------------------------------------------------------------


def test_average_calibration_is_the_cumulative_share():
    scores, labels = sample(200, 14, 15)
    found = baselines.average_calibration(scores, labels, alpha=0.2)
    points = np.append(np.linspace(-0.1, 1.1, 60), scores)  # between the scores and exactly at them
    expected = [sum(labels & (scores >= x)) / 200 for x in points]
    np.testing.assert_allclose(found.map(points), expected)
    assert set(found.levels) == {0.0, *(sum(labels & (scores >= x)) / 200 for x in set(scores[labels]))}
    assert found.levels[-1] == labels.sum() / 200
    lower, upper = found.band()
    wide = found.levels - lower
    assert wide[-1] == pytest.approx(math.sqrt(math.log(10) / 400))
    assert (upper - found.levels)[0] == pytest.approx(math.sqrt(math.log(10) / 400))


def test_average_calibration_band_holds_at_its_level_and_not_by_far():
    """Y=1 for all and uniform scores make P(Y=1, h <= s) known exactly; DKW is then sharp."""
    rng = np.random.default_rng(15)
    runs, n, alpha, misses = 3000, 400, 0.1, 0
    for _ in range(runs):
        scores = rng.random(n)
        found = baselines.average_calibration(scores, np.ones(n, bool), alpha)
        # h(X) <= s iff X > the first score whose h exceeds s: probability 1 - that score
        ordered = np.sort(scores)[::-1]
        truth = 1 - np.append(ordered, 0.0)  # P(h <= c/n), c = 0..n
        misses += bool(np.any(np.abs(truth - found.levels) > found.epsilon))
    assert stats.binom.sf(misses - 1, runs, alpha) > 1e-6
    assert stats.binom.cdf(misses, runs, alpha / 2) > 1 - 1e-6  # a band for alpha/2 would be too wide


# --- bands, and bad input -----------------------------------------------------------------------


def test_bands_take_any_number_of_pools():
    bands = baselines.Bands("x", (0.8, 0.5), (1.0, 0.25), "none")
    pools = np.array([[0.9, 0.8, 0.79], [0.5, 0.49, 0.1]])
    assert bands.chance(pools).tolist() == [[1, 1, 0.25], [0.25, 0, 0]]
    size, qualified = bands.expected([0.9, 0.6, 0.1, 0.2], [1, 1, 1, 0], 100)
    assert (size, qualified) == (31.25, 31.25)
    chosen = bands.select(np.full(40_000, 0.6), np.random.default_rng(0))
    assert stats.binomtest(int(chosen.sum()), 40_000, 0.25).pvalue > 1e-6
    assert bands.select(np.full(50, 0.8), np.random.default_rng(0)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: baselines.umb([0.1], [1], TARGET, bins=0), "bins: expected a whole number"),
        (lambda: baselines.umb([0.1, 0.2], [1], TARGET), "labels: expected 2 values"),
        (lambda: baselines.umb([], [], TARGET), "scores: expected at least one row"),
        (lambda: baselines.umb([0.1], [1], sl.Recall(0.9)), "target: expected Expected"),
        (lambda: baselines.uncalibrated([0.1, 1.2], 1), "between 0 and 1, got 1.2"),
        (lambda: baselines.uncalibrated([[0.1], [0.2, 0.3]], 1), "expected pools of one size"),
        (lambda: baselines.uncalibrated([0.1, math.nan], 1), "got nan at position 1"),
        (lambda: baselines.uncalibrated([0.1], 0), "k: expected a number above 0"),
        (lambda: baselines.uncalibrated([0.1], 1, [1]), "member: expected a boolean array"),
        (lambda: baselines.platt([0.1, 0.2], [0, 0]), "got only one kind"),
        (lambda: baselines.isotonic([0.1], [2], TARGET), "labels: expected 0 or 1"),
        (lambda: baselines.calibrated_oracle([0.5], [0.5], TARGET), "sum to 1"),
        (lambda: baselines.average_calibration([0.5], [1], alpha=1.7), "alpha: expected"),
        (lambda: bounds.bins_critical_count(10, 0.5, 0.1, 0), "bins: expected"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(sl.InvalidInput, match=message):
        call()
