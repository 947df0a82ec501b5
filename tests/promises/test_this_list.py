"""How many of this very list are qualified: tables that hold for all lengths, and lists of one size [theory: this-list]."""

from __future__ import annotations

import math
import re
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.bounds.this_list import fixed_list, lower_counts, most_wrong_rows, upper_counts
from surelist.examples import population
from surelist.promises.kinds import this_list
from surelist.promises.kinds.this_list import ListHeld


def before(n: int, m: int):
    """V_1 … V_n of every order of n row marks and m pool marks."""
    for rows in combinations(range(n + m), n):
        yield np.array(rows) - np.arange(n)


@pytest.mark.parametrize(("n", "m", "alpha"), [(6, 5, 0.2), (9, 4, 0.3), (4, 9, 0.3), (12, 3, 0.1)])
def test_both_tables_hold_at_once_over_every_order(n, m, alpha):
    b, low = upper_counts(n, m, alpha), lower_counts(n, m, alpha)
    assert b[n] == m
    assert low[0] == 0
    above = below = 0
    for v in before(n, m):
        above += bool(np.any(v > b[:n]))
        below += bool(np.any(v < low[1:]))
    assert above <= alpha * comb(n + m, n)
    assert below <= alpha * comb(n + m, n)
    assert above > 0


def test_the_tables_use_most_of_alpha_where_n_is_much_larger_than_m():
    """Simulated orders: counts of paths would have underflowed here, to a true level of more than half."""
    rng, n, m, runs, alpha = np.random.default_rng(3), 15_000, 1_000, 2_000, 0.1
    b, low = upper_counts(n, m, alpha), lower_counts(n, m, alpha)
    above = below = 0
    for _ in range(runs):
        marks = np.zeros(n + m, dtype=bool)
        marks[rng.choice(n + m, m, replace=False)] = True
        v = np.cumsum(marks)[~marks]
        above += bool(np.any(v > b[:n]))
        below += bool(np.any(v < low[1:]))
    for wrong in (above, below):
        assert stats.binom.sf(wrong - 1, runs, alpha) > 1e-6
    assert stats.binom.cdf(above, runs, 0.05) > 1e-6


def promised(policy: sl.Policy) -> int:
    proof = policy.cutoffs[0].proof
    assert isinstance(proof, ListHeld)
    return proof.held


def truth(curve: sl.ListCurve, pool: np.ndarray, good: np.ndarray) -> np.ndarray:
    hits = np.sort(pool[good])
    return len(hits) - np.searchsorted(hits, curve.threshold)


@pytest.mark.parametrize("ties", [None, 1])
def test_the_curve_is_wrong_for_any_length_at_most_alpha_of_the_time(ties):
    rng, runs, alpha = np.random.default_rng(5), 400, 0.2
    wrong = 0
    for _ in range(runs):
        (scores, labels), (pool, good) = population(rng, 300), population(rng, 120)
        if ties is not None:
            scores, pool = scores.round(ties), pool.round(ties)
        curve = sl.list_curve(scores, labels, pool, alpha=alpha)
        held = truth(curve, pool, good)
        wrong += bool(np.any(curve.at_least > held) or np.any(curve.at_most < held))
        assert np.all(curve.at_least <= curve.at_most)
    assert stats.binom.sf(wrong - 1, runs, alpha) > 1e-6


def test_at_least_and_at_most_share_alpha(monkeypatch):
    """Both together are wrong at most alpha of the time: four tables whose levels add up to it."""
    levels = []

    def noted(name: str) -> None:
        real = getattr(this_list, name)

        def table(rows: int, pool: int, alpha: float) -> np.ndarray:
            levels.append(alpha)
            return real(rows, pool, alpha)

        monkeypatch.setattr(this_list, name, table)

    noted("upper_counts")
    noted("lower_counts")
    (scores, labels), (pool, _) = (population(np.random.default_rng(seed), 100) for seed in (1, 2))
    sl.list_curve(scores, labels, pool, alpha=0.1)
    assert len(levels) == 4
    assert math.isclose(sum(levels), 0.1)


def test_the_curve_reads_the_tables_at_the_rows_as_high_as_the_list():
    (scores, labels), (pool, _) = (
        population(np.random.default_rng(1), 200),
        population(np.random.default_rng(2), 80),
    )
    curve, b, low = (
        sl.list_curve(scores, labels, pool),
        upper_counts(200, 80, 0.045),
        lower_counts(200, 80, 0.045),
    )
    wrong = [int(np.sum(scores[~labels] >= t)) for t in curve.threshold]
    right = [int(np.sum(scores[labels] >= t)) for t in curve.threshold]
    by_tables = []
    for at, size in enumerate(curve.list_size.tolist()):
        bounds = [
            min(int(b[wrong[s]]), int(curve.list_size[s])) + size - int(curve.list_size[s])
            for s in range(at + 1)
        ]
        by_tables.append(max(size - min(bounds), min(size, int(low[right[at]]))))
    for at, size in enumerate(curve.list_size.tolist()):  # a shorter list has all but what it lacks
        longer = zip(by_tables[at:], curve.list_size[at:].tolist(), strict=True)
        assert curve.at_least[at] == max(held - (other - size) for held, other in longer)
    assert np.all(np.diff(curve.at_least) >= 0)
    assert np.all(np.diff(curve.at_most) >= 0)


def test_a_length_that_ties_do_not_allow_is_refused():
    curve = sl.list_curve([3.0, 2.0, 1.0] * 20, [1, 0, 0] * 20, [3.5, 2.5, 2.5, 0.5])
    assert curve.list_size.tolist() == [1, 3, 4]
    assert curve.of(3)[0] <= 3
    with pytest.raises(sl.InvalidInput, match="ties allow"):
        curve.of(2)
    assert "after looking" in curve.describe()


@pytest.mark.parametrize(("above", "size"), [(5, 4), (8, 3)])
def test_one_list_by_fisher_over_every_split_of_rows_and_candidates(above, size):
    """Rows and candidates above the next one are exchangeable: every choice of which are rows."""
    alpha = 0.3
    for wrong in range(above + size + 1):
        short = sum(
            comb(wrong, rows) * comb(above + size - wrong, above - rows)
            for rows in range(max(0, above - (above + size - wrong)), min(above, wrong) + 1)
            if wrong - rows > fixed_list(above, rows, size, alpha)
        )
        assert short <= alpha * comb(above + size, above)


def test_a_share_is_said_and_false_at_most_alpha_of_the_time_whatever_the_share_of_the_population():
    above, size, share, alpha = 30, 10, 0.6, 0.2
    most = most_wrong_rows(above, size, share, alpha)
    said = [stats.binom.cdf(most, above, b) * stats.binom.sf(4, size, b) for b in np.linspace(0, 1, 2001)]
    more = [stats.binom.cdf(most + 1, above, b) * stats.binom.sf(4, size, b) for b in np.linspace(0, 1, 2001)]
    assert max(said) <= alpha < max(more)


@pytest.mark.slow
@pytest.mark.parametrize("share", [None, 0.55])
def test_the_worst_point_by_simulation(share):
    rng, runs, alpha, wrong = np.random.default_rng(9), 1_000, 0.2, 0
    for _ in range(runs):
        scores, pool = rng.random(200), rng.random(60)
        labels, good = rng.random(200) < 0.5, rng.random(60) < 0.5
        try:
            policy = sl.calibrate(scores, labels, sl.ThisList(20, share=share), unlabelled=pool, alpha=alpha)
        except sl.NotCertifiable:
            continue
        held = int(np.count_nonzero(good & policy.select(pool)))
        wrong += held < promised(policy)
    assert stats.binom.sf(wrong - 1, runs, alpha) > 1e-6
    assert wrong > 0


def test_its_policy_selects_from_that_pool_alone_and_a_file_keeps_it(tmp_path):
    rng = np.random.default_rng(6)
    (scores, labels), (pool, _) = population(rng, 1_000), population(rng, 500)
    policy = sl.calibrate(scores, labels, sl.ThisList(50), unlabelled=pool)
    assert policy.select(pool).sum() == 50
    assert promised(policy) == 31
    assert "at least 31 qualified candidates are among them" in policy.promise
    with pytest.raises(sl.InvalidInput, match="from no other"):
        policy.select(scores)
    policy.save(tmp_path / "policy.json")
    assert sl.Policy.load(tmp_path / "policy.json") == policy
    text = (tmp_path / "policy.json").read_text()
    with pytest.raises(sl.PolicyFileError):
        sl.Policy.loads(text.replace('"held": 31', '"held": 32'))
    with pytest.raises(sl.NotCertifiable):
        sl.calibrate(scores, labels, sl.ThisList(50, share=0.9), unlabelled=pool)


@pytest.mark.parametrize("asked", [{"share": 0.9}, {}])
def test_a_refusal_says_where_rows_are_too_few(asked):
    rows, pool = np.linspace(0, 0.5, 100), [0.9, 0.8, 0.7, 0.6, 0.3]
    with pytest.raises(
        sl.NotCertifiable, match="too few rows to be sure, were all qualified: 0 calibration rows above"
    ):
        sl.calibrate(rows, np.ones(100), sl.ThisList(3, **asked), unlabelled=pool)


def test_a_list_whose_end_is_tied_is_refused():
    rng = np.random.default_rng(6)
    (scores, labels), (pool, _) = population(rng, 500), population(rng, 100)
    with pytest.raises(sl.InvalidInput, match="score alike"):
        sl.calibrate(scores.round(1), labels, sl.ThisList(60), unlabelled=pool.round(1) + 1e-9)
    with pytest.raises(sl.InvalidInput, match="at most the 100"):
        sl.calibrate(scores, labels, sl.ThisList(101), unlabelled=pool)


@pytest.mark.parametrize("move", [lambda s: 100 * s, lambda s: s - 2, lambda s: s + 0.2])
def test_a_pool_that_looks_like_another_population_is_pointed_out(move):
    rng = np.random.default_rng(3)
    (scores, labels), (pool, _) = population(rng, 1_000), population(rng, 800)
    assert sl.list_curve(scores, labels, pool).doubt is None
    with pytest.warns(sl.PoolWarning, match="do not look like candidates of one population"):
        curve = sl.list_curve(scores, labels, move(pool))
    assert curve.conditions[0] == curve.doubt
    moved = move(pool)
    said = re.match(r"([\d.]+)% of 800 candidates score at least (\S+), and ([\d.]+)% of 1,000", curve.doubt)
    mark = moved[np.argmin(np.abs(moved - float(said[2])))]
    shares = np.mean(moved >= mark), np.mean(scores >= mark)
    assert (float(said[1]), float(said[3])) == pytest.approx([100 * each for each in shares], abs=0.01)


def test_the_best_of_a_pool_are_compared_with_all_of_it():
    rng = np.random.default_rng(3)
    (scores, labels), (pool, _) = population(rng, 1_000), population(rng, 800)
    best = np.sort(pool)[-100:]
    assert this_list.curve_of_best(scores, labels, best, 800, 0.1).doubt is None
    with pytest.warns(sl.PoolWarning):
        assert this_list.curve_of_best(scores, labels, best, 100, 0.1).doubt is not None


def test_what_is_no_pool_of_its_own_and_no_label_of_every_row_is_refused():
    scores, labels = population(3, 500)
    with pytest.raises(sl.InvalidInput, match="pool: these scores hold some of the calibration rows"):
        sl.list_curve(scores, labels, scores)
    for given in (sl.NoisyLabels(labels, 0.1, 0.1), sl.SampledLabels(labels, probability=0.9)):
        with pytest.raises(sl.InvalidInput, match=f"labels: {type(given).__name__} have no proof here"):
            sl.list_curve(scores, given, population(4, 100)[0])
    with pytest.raises(sl.InvalidInput, match="a length from 1 to 100 that ties allow, got 101"):
        sl.list_curve(scores, labels, population(4, 100)[0]).of(101)
