"""The promises, enumerated: every outcome of a small world goes through the real code.

Populations have finitely many scores, so a calibration sample is a multiset with an exact
multinomial probability. The failure probability is the sum over all multisets whose policy
selects too little. No sampling, no tolerance on the level itself.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import surelist as sl
from surelist import bounds
from surelist.bounds.simultaneous import crossing_probability, equal_local_levels

ALPHAS = [0.1, 0.05, 0.3]


def multisets(n: int, kinds: int):
    """All ways to split n rows over ``kinds`` categories."""
    for bars in itertools.combinations(range(n + kinds - 1), kinds - 1):
        edges = (-1, *bars, n + kinds - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def probability(counts, chances) -> Fraction:
    ways, left = 1, sum(counts)
    for count in counts:
        ways *= math.comb(left, count)
        left -= count
    return ways * math.prod(p**c for p, c in zip(chances, counts, strict=True))


SCORES = np.array([-0.5, 0.0, 2.0])  # qualified candidates score one of these; negative too
UNQUALIFIED = 1.0  # between the others: the score is not monotone


def sample(counts):
    """Scores and labels with these many qualified at each of SCORES, the rest unqualified."""
    scores = np.concatenate([np.repeat(SCORES, counts[:-1]), np.full(counts[-1], UNQUALIFIED)])
    return scores, np.arange(len(scores)) < sum(counts[:-1])


def certified(n, target, alpha, rule):
    """Every sample of n rows that certifies the target, with its policy: the same in every population."""
    for counts in multisets(n, len(SCORES) + 1):
        scores, labels = sample(counts)
        with contextlib.suppress(sl.NotCertifiable):
            yield counts, sl.calibrate(scores, labels, target, alpha=alpha, rule=rule)


def failure_probability(listed_by, chances, too_little) -> Fraction:
    """P(certified and the shortlisted share of the population is too little)."""
    total = Fraction(0)
    for counts, listed in listed_by:
        if too_little([p for p, chosen in zip(chances, listed, strict=False) if chosen]):
            total += probability(counts, chances)
    return total


def populations(rate: Fraction):
    """Qualified shares at the three scores, lowest first; each puts an atom near the boundary."""
    hair = Fraction(1, 10**6)
    yield [rate / 3, rate / 3, rate - hair]  # the top atom just misses
    yield [rate / 2, rate / 2, rate / 2 - hair]  # the top two just miss
    yield [Fraction(1, 10), Fraction(1, 10), rate]  # the top atom is just enough
    yield [rate / 3 - hair, rate / 3, rate / 3]  # nobody's list is enough


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("rule", ["exact", "dkw", "simultaneous"])
@pytest.mark.parametrize(("k", "pool_size", "n"), [(1, 4, 9), (3, 10, 8), (1, 10, 12), (1, 50, 5)])
def test_expected_fails_at_most_alpha(alpha, rule, k, pool_size, n):
    rate = Fraction(k, pool_size)
    samples = certified(n, sl.Expected(k, pool_size), alpha, rule)
    listed_by = [(counts, policy.select(SCORES)) for counts, policy in samples]
    for shares in populations(rate):
        chances = [*shares, 1 - sum(shares)]
        failed = failure_probability(listed_by, chances, lambda listed: sum(listed, Fraction(0)) < rate)
        assert failed <= Fraction(str(alpha))


def exact_tail(n: int, rate: Fraction, count: int) -> Fraction:
    a, b = rate.numerator, rate.denominator
    ways = sum(math.comb(n, j) * a**j * (b - a) ** (n - j) for j in range(max(0, count), n + 1))
    return Fraction(ways, b**n)


@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.01, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 2, 7, 30, 100, 299])
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(1, 100), Fraction(9, 10)])
def test_exact_count_is_the_smallest_valid_one(n, rate, alpha):
    """Level and tightness in rational arithmetic: c holds, c-1 does not."""
    count = bounds.critical_count(n, rate, alpha)
    assert exact_tail(n, rate, count) <= Fraction(str(alpha))
    below = exact_tail(n, rate, count - 1)
    assert below >= Fraction(str(alpha))  # equality only at an exact tie, which may cost one


def test_exact_count_at_a_tie_of_tail_and_alpha_is_never_too_small():
    """P(Binomial(n, 1/2) >= n) = 2^-n exactly: one too large is allowed, too small is not."""
    for n in range(1, 40):
        for count in (n, n - 1):
            tail = exact_tail(n, Fraction(1, 2), count)
            if tail < 1:
                found = bounds.critical_count(n, 0.5, float(tail))
                assert count <= found <= count + 1


def test_numbers_of_the_contract():
    assert bounds.critical_count(n=10_000, rate=0.05, alpha=0.1, rule="exact") == 529
    counts = [bounds.critical_count(1_000, 0.05, 0.1, rule) for rule in ("exact", "simultaneous", "dkw")]
    assert counts == [60, 67, 89]
    assert [bounds.pool_critical_count(n, 5, 100, 0.1) for n in (1_000, 10_000)] == [81, 786]
    rate = bounds.pac_rate(5, 100, 0.05)
    assert [round(bounds.critical_count(n, rate, 0.05) / n * 100, 1) for n in (1_000, 10_000)] == [10.5, 9.4]
    worst = bounds.bernstein_k(5, 0.05) / 100
    shares = [bounds.critical_count(n, worst, 0.05, "dkw") / n * 100 for n in (1_000, 10_000)]
    assert [round(share, 1) for share in shares] == [20.1, 17.1]


@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.4])
@pytest.mark.parametrize(("n", "pool_size", "k"), [(8, 4, 1), (9, 5, 2), (7, 6, 3), (10, 3, 3)])
def test_per_pool_over_every_merged_order(alpha, n, pool_size, k):
    """All qualified and untied: every split of the merged ranks is equally likely."""
    target = sl.PerPool(k, pool_size)
    orders = list(itertools.combinations(range(n + pool_size), pool_size))

    def failures(count):
        bad = 0
        for places in orders:
            pool = np.array(places, dtype=float)
            rows = np.setdiff1d(np.arange(n + pool_size), places).astype(float)
            bad += np.count_nonzero(pool >= np.sort(rows)[-count]) < k
        return bad

    count = bounds.pool_critical_count(n, k, pool_size, alpha)
    if count <= n:
        assert Fraction(failures(count), len(orders)) <= Fraction(str(alpha))
        policy = sl.calibrate(np.arange(n), np.ones(n), target, alpha=alpha)
        assert policy.cutoffs[0].steps[0].critical_count == count
    if count > 1:
        assert Fraction(failures(count - 1), len(orders)) > Fraction(str(alpha))


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["exact", "pac", "bernstein"])
@pytest.mark.parametrize(("k", "pool_size", "larger"), [(1, 3, 3), (1, 3, 4), (2, 4, 4), (1, (2, 5), 4)])
def test_per_pool_with_ties_and_unqualified(rule, k, pool_size, larger):
    """Calibration and pool multisets together, through calibrate and select."""
    alpha, n = 0.4, 9
    shares = [Fraction(1, 5), Fraction(1, 5), Fraction(2, 5)]
    chances = [*shares, 1 - sum(shares)]
    pools = [(np.array(pool[:-1]), probability(pool, chances)) for pool in multisets(larger, 4)]
    total = Fraction(0)
    for counts, policy in certified(n, sl.PerPool(k, pool_size), alpha, rule):
        listed = policy.select(np.resize(SCORES, larger))[: len(SCORES)]  # a pool of that size
        total += probability(counts, chances) * sum(chance for pool, chance in pools if pool @ listed < k)
    assert total <= Fraction(str(alpha))


@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize("share", [0.5, 0.7, 0.8])
def test_recall_fails_at_most_alpha(alpha, share):
    wanted, hair = Fraction(str(share)), Fraction(1, 10**6)
    enough = wanted * Fraction(3, 4)
    samples = certified(9, sl.Recall(share), alpha, "exact")
    listed_by = [(counts, policy.select(SCORES)) for counts, policy in samples]
    for shares in ([1 - wanted + hair, Fraction(0), wanted - hair], [1 - wanted, wanted / 2, wanted / 2],
                   [Fraction(1, 3)] * 3):  # fmt: skip
        chances = [*[s * Fraction(3, 4) for s in shares], Fraction(1, 4)]
        failed = failure_probability(listed_by, chances, lambda listed: sum(listed, Fraction(0)) < enough)
        assert failed <= Fraction(str(alpha))


def test_recall_needs_45_qualified_rows():
    scores = np.arange(45.0)
    assert sl.calibrate(scores, np.ones(45), sl.Recall(0.95), alpha=0.1).threshold == 0.0
    with pytest.raises(sl.NotCertifiable) as refusal:
        sl.calibrate(scores[:44], np.ones(44), sl.Recall(0.95), alpha=0.1)
    assert refusal.value.largest_share == pytest.approx(0.1 ** (1 / 44), rel=1e-8)


@pytest.mark.parametrize("share", [0.6, 0.9, 0.95])
@pytest.mark.parametrize("qualified", [10, 45, 120])
def test_recall_drops_as_many_as_the_definition_allows(share, qualified):
    """d = max{d : P(Binomial(n+, 1-r) <= d) <= alpha}; threshold the (d+1)-th smallest."""
    alpha, r = Fraction(1, 10), Fraction(str(share))
    allowed = [d for d in range(qualified) if 1 - exact_tail(qualified, 1 - r, d + 1) <= alpha]
    if not allowed:
        with pytest.raises(sl.NotCertifiable):
            sl.calibrate(np.arange(qualified), np.ones(qualified), sl.Recall(share), alpha=0.1)
        return
    policy = sl.calibrate(np.arange(qualified), np.ones(qualified), sl.Recall(share), alpha=0.1)
    assert policy.threshold == max(allowed)


@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize("n", [3, 5, 6])
def test_simultaneous_family_holds_at_once(n, alpha):
    """P(some c_j of n uniforms lie below r_j), by multinomial enumeration over the intervals."""
    counts, rates = equal_local_levels(n, alpha)
    edges = [Fraction(0), *[Fraction(float(r)) for r in rates], Fraction(1)]
    chances = [b - a for a, b in itertools.pairwise(edges)]
    crossed = Fraction(0)
    for split in multisets(n, len(chances)):
        below = np.cumsum(split)[:-1]
        if (below >= counts).any():
            crossed += probability(split, chances)
    assert crossed <= Fraction(str(alpha))
    assert crossed >= Fraction(str(alpha)) * Fraction(99, 100)  # the level is used up
    assert float(crossed) == pytest.approx(crossing_probability(n, counts, rates), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 400, 3000])
def test_simultaneous_recursion_against_plain_binomial_recursion(n):
    """The Poissonised convolution equals the textbook recursion with binomial steps."""
    from scipy import stats

    counts, rates = equal_local_levels(n, 0.1)
    keep = counts <= 60
    counts, rates = counts[keep], rates[keep]
    state, reached = np.zeros(61), 0.0
    state[0] = 1.0
    for count, rate in zip(counts, rates, strict=True):
        step = (rate - reached) / (1 - reached)
        moved = np.zeros(61)
        for here in np.flatnonzero(state):
            moved[here:] += state[here] * stats.binom.pmf(np.arange(61 - here), n - here, step)
        moved[count:] = 0.0
        state, reached = moved, rate
    assert crossing_probability(n, counts, rates) == pytest.approx(1 - state.sum(), abs=1e-10)


def test_curve_is_a_step_function_of_the_family():
    rng = np.random.default_rng(3)
    scores = np.round(rng.random(500), 2)
    labels = rng.random(500) < scores
    curve = sl.guarantee_curve(scores, labels, pool_size=40, alpha=0.1)
    counts, rates = bounds.simultaneous_family(500, 0.1)
    for size, qualified, t in zip(curve.list_size, curve.qualified, curve.threshold, strict=True):
        reached = np.count_nonzero(labels & (scores >= t))
        assert size == pytest.approx(40 * np.count_nonzero(scores >= t) / 500)
        held = 40 * max([r for c, r in zip(counts, rates, strict=True) if c <= reached], default=0)
        assert held * (1 - 1e-14) <= qualified <= held


def test_bernstein_inverse_and_sign():
    """Proposition 4 and its inverse agree; the printed minus would not ensure the worst case."""
    for worst in (1, 5, 40):
        for alpha in (0.01, 0.05, 0.3):
            k = bounds.bernstein_k(worst, alpha)
            assert bounds.bernstein_worst(k, alpha) == pytest.approx(worst)
            log = math.log(1 / alpha)
            printed = worst + 4 * log / 3 - math.sqrt(16 * log**2 / 9 + 2 * worst * log)
            assert printed < worst < k


@pytest.mark.parametrize(("worst", "pool_size"), [(1, 30), (5, 100), (20, 100)])
def test_bernstein_and_pac_rates_ensure_the_worst_case(worst, pool_size):
    """P(Binomial(m, rate) < k_worst) <= alpha2, summed exactly; pac's is the smallest such rate."""
    alpha = Fraction(1, 20)
    pac = bounds.pac_rate(worst, pool_size, 0.05)
    assert 1 - exact_tail(pool_size, Fraction(pac), worst) <= alpha
    assert 1 - exact_tail(pool_size, Fraction(pac) * Fraction(999, 1000), worst) > alpha
    bernstein = bounds.bernstein_k(worst, 0.05) / pool_size
    if bernstein <= 1:
        assert 1 - exact_tail(pool_size, Fraction(bernstein), worst) <= alpha
        assert bernstein > pac


def test_tails_against_exact_integers_at_large_n():
    n, k, m = 10**6, 5, 100
    count = bounds.pool_critical_count(n, k, m, 0.1)

    def tail(c):
        drawn = c + k - 1
        log_total = math.lgamma(n + m + 1) - math.lgamma(drawn + 1) - math.lgamma(n + m - drawn + 1)
        assert log_total > 0
        total = Fraction(0)
        for i in range(k):  # C(m,i) C(n,d-i) / C(n+m,d) as a product of exact ratios
            term = Fraction(math.comb(drawn, i))
            falling = Fraction(1)
            for j in range(m - i):
                falling = falling * Fraction(n + m - drawn - j, n + m - j)
            rest = Fraction(1)
            for j in range(i):
                rest = rest * Fraction(m - j, n + i - j)
            total += term * falling * rest
        return total

    assert tail(count) <= Fraction(1, 10) < tail(count - 1)
    assert bounds.pool_tail(n, k, m, count) == pytest.approx(float(tail(count)), rel=1e-12)


def test_excess_bound_both_forms():
    rng = np.random.default_rng(0)
    scores = rng.random(1_000)
    bound = sl.calibrate(scores, scores > 0.5, sl.Expected(5, 100), alpha=0.1).excess_bound[None]
    assert (round(bound.paper, 2), round(bound.count, 2)) == (7.84, 2.08)
    broken = sl.calibrate(scores, scores > 0.5, sl.Expected(5, 100), alpha=0.1, ties=sl.Hash(range(1_000)))
    assert round(broken.excess_bound[None].count, 2) == 1.97


def test_excess_bound_is_the_beta_quantile():
    """delta(t) of the c-th of n uniforms exceeds the bound with probability alpha exactly."""
    n, k, m, alpha = 200, 5, 100, 0.1
    count = bounds.critical_count(n, Fraction(k, m), alpha)
    top = (bounds.excess_count(n, count, k, m, alpha, untied=True) + k) / m
    assert 1 - float(exact_tail(n, Fraction(top), count)) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize(("n", "k", "m"), [(5, 1, 50), (12, 1, 10), (30, 1, 10), (100, 5, 100)])
def test_excess_bound_holds_with_probability_1_minus_alpha_whatever_the_ties(n, k, m):
    """A first atom and a second one: every pair of counts, in full. The law of untied scores fails here."""
    from scipy.stats import binom

    alpha = 0.1
    needed = bounds.critical_count(n, Fraction(k, m), alpha)
    tops = [(bounds.excess_count(n, r, k, m, alpha) + k) / m for r in range(needed, n + 1)]
    untied = (bounds.excess_count(n, needed, k, m, alpha, untied=True) + k) / m
    worst, fooled = 0.0, 0.0
    for total in (*(min(1.0, top * (1 + 1e-9)) for top in tops[:4]), untied * (1 + 1e-9)):
        for first in np.linspace(0, total * 0.999, 12):
            false = seen = 0.0
            for at_first in range(needed):  # with more the list ends at the first atom
                chance = binom.pmf(at_first, n, first)
                rest = binom.pmf(np.arange(n - at_first + 1), n - at_first, (total - first) / (1 - first))
                for more, part in enumerate(rest):
                    if at_first + more >= needed:
                        false += chance * part * (total > tops[at_first + more - needed])
                        seen += chance * part * (total > untied and at_first + more == needed)
            ends = binom.pmf(np.arange(needed, n + 1), n, first)
            false += float(ends[[first > top for top in tops]].sum())
            worst, fooled = max(worst, false), max(fooled, seen)
    assert worst <= alpha * (1 + 1e-9)
    assert worst > alpha / 4
    assert n >= 30 or fooled > alpha
