"""Drops of a control sample: the level over every number of relevant items, in rationals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from surelist.bounds import control_sample
from surelist.bounds.collection_lists import chance_of, chances_to_go_on
from surelist.bounds.control_sample import (
    MARGIN,
    _cells,
    _drops_at,
    _last_of_each,
    _levels,
    _missable,
    _plug_in,
    binomial_drops,
    control_rule,
)

pytestmark = pytest.mark.slow


def pmf(total: int, marked: int, drawn: int, x: int) -> Fraction:
    if not 0 <= x <= marked or not 0 <= drawn - x <= total - marked:
        return Fraction(0)
    return Fraction(math.comb(marked, x) * math.comb(total - marked, drawn - x), math.comb(total, drawn))


def level(size: int, drawn: int, recall: Fraction, drops, known: int = 0) -> Fraction:
    """max over every R of sum over n+ of P(n+ | R) P(Hyp(R, u+1+d, n+) <= d)."""
    worst = Fraction(0)
    for relevant in range(size + 1):
        missable, total = math.floor((1 - recall) * (relevant + known)), Fraction(0)
        for count in range(min(drawn, relevant) + 1):
            drop = int(drops[count])
            marked = missable + 1 + drop
            if drop >= 0 and marked <= relevant:
                fails = sum(pmf(relevant, marked, count, x) for x in range(drop + 1))
                total += pmf(size, relevant, drawn, count) * fails
        worst = max(worst, total)
    return worst


def control_level(size: int, drawn: int, recall: Fraction, drops) -> float:
    """The same by the code, for numbers that integers take too long for."""
    relevant = np.arange(size + 1)
    return float(_levels(size, drawn, np.asarray(drops), relevant, _missable(relevant, recall)).max())


CASES = [
    (10, 7, Fraction(19, 20), 0.1),
    (12, 5, Fraction(1, 2), 0.2),
    (30, 15, Fraction(4, 5), 0.1),
    (40, 30, Fraction(9, 10), 0.1),
    (25, 24, Fraction(1, 2), 0.1),
    (8, 8, Fraction(1, 2), 0.1),
    (60, 20, Fraction(2, 3), 0.15),
]


@pytest.mark.parametrize("known", [0, 1, 3, 10, 40])
@pytest.mark.parametrize("case", CASES)
def test_level_over_every_number_of_relevant_items(case, known):
    size, drawn, recall, alpha = case
    rule = control_rule(*case, known)
    exact = level(size, drawn, recall, rule.drops, known)
    assert exact <= Fraction(str(alpha))
    assert float(exact) == pytest.approx(rule.level, abs=1e-10)
    assert float(level(size, drawn, recall, binomial_drops(drawn, recall, alpha), known)) <= alpha
    assert list(rule.drops) == sorted(rule.drops)
    assert all(drop <= count for count, drop in enumerate(rule.drops))


@pytest.mark.parametrize("known", [0, 10])
@pytest.mark.parametrize("case", CASES)
def test_the_drop_of_so_many_is_that_of_the_whole_table(case, known):
    drops = control_rule(*case, known).drops
    for hits, drop in enumerate(drops):
        assert control_rule(*case, known, hits).drops[hits] == drop


@pytest.mark.parametrize("known", [0, 9])
@pytest.mark.parametrize("case", [(6, 5, Fraction(4, 5), 0.9), (12, 10, Fraction(7, 9), 0.7)])
def test_no_more_is_dropped_than_there_are_where_alpha_is_near_one(case, known):
    """A nominal level above 1 dropped 5 of 3, and the level said was 0."""
    size, drawn, recall, alpha = case
    rule = control_rule(*case, known)
    assert all(drop <= count for count, drop in enumerate(rule.drops))
    exact = level(size, drawn, recall, rule.drops, known)
    assert exact <= Fraction(str(alpha))
    assert float(exact) == pytest.approx(rule.level, abs=1e-10)


@pytest.mark.parametrize("known", [0, 3, 10])
@pytest.mark.parametrize("case", [(60, 20, Fraction(1, 2), 0.15), (60, 30, Fraction(2, 3), 0.1)])
def test_of_many_u_looked_at_together_the_first_goes_with_the_last_r(case, known, monkeypatch):
    """As in large collections: the level holds at every R."""
    size, drawn, recall, alpha = case
    monkeypatch.setattr(control_sample, "FINE", 2)
    monkeypatch.setattr(control_sample, "COARSER", 4)
    relevant, missable = _cells(size, recall, known)
    at = np.searchsorted(relevant, np.arange(size + 1))  # the cell of every R
    each = (np.arange(size + 1) + known) * (1 - recall).numerator // (1 - recall).denominator
    assert (missable[at] <= each).all()
    assert len(relevant) < len(np.unique(each))
    wide = control_rule.__wrapped__(*case, known)
    assert level(size, drawn, recall, wide.drops, known) <= wide.level + 1e-10 <= alpha
    assert max(wide.drops) >= 0


@pytest.mark.parametrize("known", [0, 3, 10])
@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[3], CASES[6], (30, 12, Fraction(9, 10), 0.2)])
def test_no_drop_could_be_allowed_from_one_count_less_on(case, known):
    """Each threshold moved down by one, the others as they are, breaks the level for some R."""
    size, drawn, recall, alpha = case
    drops = np.array(control_rule(*case, known).drops)
    for count in range(drawn + 1):
        if drops[count] < min(count, drops[min(count + 1, drawn)]):
            more = np.where(np.arange(drawn + 1) == count, drops + 1, drops)
            assert float(level(size, drawn, recall, more, known)) > alpha * (1 - MARGIN)


def test_a_drop_of_all_ends_the_list_above_the_sample():
    """N = 7: known rows are kept beside; failures counted one by one, the list ending above everyone too."""
    size, drawn, recall, alpha = 7, 4, Fraction(1, 2), 0.3
    samples, whole = list(itertools.combinations(range(size), drawn)), 0
    for known in (0, 1, 2, 3, 6):
        drops = control_rule(size, drawn, recall, alpha, known).drops
        for pattern in itertools.product((0, 1), repeat=size):
            false = 0
            for sample in samples:
                hits = [rank for rank in sample if pattern[rank]]
                drop = drops[len(hits)]
                whole += drop == len(hits)
                end = size if drop < 0 else hits[len(hits) - 1 - drop] + 1 if drop < len(hits) else 0
                kept = known + sum(pattern[:end]) + sum(rank >= end for rank in hits)
                false += kept < recall * (known + sum(pattern))
            assert Fraction(false, len(samples)) <= Fraction(str(alpha))
    assert whole


@pytest.mark.parametrize("known", [0, 7])
def test_with_the_same_number_missable_more_relevant_items_fail_more_often(known):
    """So the last R of each u decides."""
    size, drawn, recall = 60, 20, Fraction(4, 5)
    drops = np.array(control_rule(size, drawn, recall, 0.1, known).drops)
    everyone = np.arange(size + 1)
    levels = _levels(size, drawn, drops, everyone, (everyone + known) // 5)
    same = np.diff((np.arange(size + 1) + known) // 5) == 0
    assert (np.diff(levels)[same] >= -1e-12).all()
    last = _last_of_each(size, recall, known)
    assert last[-1] == size
    assert levels[last].max() == levels.max()


@pytest.mark.parametrize("seed", range(4))
def test_the_level_of_any_drops_whatever(seed):
    """Drops that rise, fall, jump and stop: the walk over n+ gives the level of the definition."""
    rng = np.random.default_rng(seed)
    size, drawn, recall = 45, 18 + seed, Fraction(int(rng.integers(5, 19)), 20)
    steady = np.cumsum(rng.integers(-1, 2, drawn + 1))
    wild = rng.integers(-1, np.arange(drawn + 1) + 1)
    for drops in (steady, wild):
        drops = np.clip(drops, -1, np.arange(drawn + 1) - 1)
        found = control_level(size, drawn, recall, tuple(drops.tolist()))
        assert found == pytest.approx(float(level(size, drawn, recall, drops)), abs=1e-12)


def test_through_every_relevant_set_and_every_sample():
    """N = 9: the list is everyone at or above the threshold and the sample; failures counted one by one."""
    size, drawn, recall, alpha = 9, 5, Fraction(1, 2), 0.35
    drops = control_rule(size, drawn, recall, alpha).drops
    samples = list(itertools.combinations(range(size), drawn))
    used = False
    for pattern in itertools.product((0, 1), repeat=size):
        relevant, false = sum(pattern), 0
        for sample in samples:
            hits = [rank for rank in sample if pattern[rank]]  # best first
            if drops[len(hits)] < 0:
                continue
            drop = drops[len(hits)]
            last = hits[len(hits) - 1 - drop] if drop < len(hits) else -1
            kept = sum(pattern[: last + 1]) + sum(rank > last for rank in hits)
            false += kept < recall * relevant
            used = True
        assert Fraction(false, len(samples)) <= Fraction(str(alpha))
    assert used


def test_the_hole_of_the_plug_in_count():
    """N = 10, n = 7, r = .95: trusting the plug-in where it says 0 fails with .233 even at a = 0."""
    case = (10, 7, Fraction(19, 20))
    binomial = binomial_drops(7, case[2], 0.1)
    pvalues, hole = _plug_in(*case, binomial)
    assert hole.any()
    trusting = np.where(hole, 0, _drops_at(pvalues, hole, binomial, 1e-12))
    trusting[0] = -1
    assert float(level(*case, trusting)) == pytest.approx(0.233, abs=5e-4)
    assert control_rule(*case, 0.1).level <= 0.1


def test_the_nominal_level_must_be_solved_for_small_collections():
    """N = 100, n = 50, r = .9: a = alpha gives .108."""
    case = (100, 50, Fraction(9, 10))
    binomial = binomial_drops(50, case[2], 0.1)
    at_alpha = _drops_at(*_plug_in(*case, binomial), binomial, 0.1)
    assert control_level(*case, tuple(at_alpha.tolist())) == pytest.approx(0.108, abs=5e-4)
    rule = control_rule(*case, 0.1)
    assert 0.08 < rule.level <= 0.1


def test_the_figures_of_the_contract():
    rule = control_rule(2000, 600, Fraction(19, 20), 0.1)
    assert rule.needed == 30
    assert control_rule(2000, 600, Fraction(19, 20), 0.1, 40).needed == 19
    assert int(np.argmax(binomial_drops(600, Fraction(19, 20), 0.1) >= 0)) == 45
    assert 0.098 < rule.level <= 0.1


def test_the_chance_on_the_set_of_the_label_budget():
    """329 of 11,165 qualify; k of them are among 100 of the pilot, and 1,900 are drawn."""
    for known in range(0, 40, 3):
        drops = np.array(control_rule(11_065, 1900, Fraction(9, 10), 0.05, known).drops)
        chance = _levels(11_065, 1900, drops, np.array([329 - known]), np.array([32]))
        assert 0.04 < chance[0] <= 0.05


def test_too_large_to_enumerate_is_the_binomial_rule():
    rule = control_rule(3_000_000, 2000, Fraction(19, 20), 0.1)
    assert rule.level is None
    assert rule.drops == tuple(binomial_drops(2000, Fraction(19, 20), 0.1).tolist())


def test_the_binomial_rule_holds_for_every_number_of_relevant_items():
    """P(Hyp(R, u+1+d, n+) <= d) never exceeds alpha, so the rule needs no enumeration."""
    from scipy import stats

    for recall in (Fraction(1, 2), Fraction(4, 5), Fraction(19, 20)):
        drops = binomial_drops(120, recall, 0.1)
        for count in (5, 11, 30, 45, 61, 120):
            drop = int(drops[count])
            if drop < 0:
                continue
            relevant = np.unique(np.geomspace(count, 10**6, 4000).astype(int))
            marked = np.array([math.floor((1 - recall) * int(r)) + 1 + drop for r in relevant])
            kept = marked <= relevant
            fails = stats.hypergeom.cdf(drop, relevant[kept], marked[kept], count)
            assert fails.max() <= 0.1


def goes_on(drawn: int, count: int, looks, before: int = 0, hits: int = 0) -> Fraction:
    """The chance that every look is passed, over every way to divide the relevant ones of a sample."""
    if not looks:
        return Fraction(1)
    (rows, least), *later = looks
    ways = range(max(0, least - hits), rows - before + 1)
    return sum(
        (
            pmf(drawn - before, count - hits, rows - before, more)
            * goes_on(drawn, count, later, rows, hits + more)
            for more in ways
        ),
        Fraction(0),
    )


def share_of_those_that_go_on(size, drawn, recall, drops, looks, known=0) -> Fraction:
    """max over every R of P(fail and goes on | R) / P(goes on | R)."""
    going, worst = [goes_on(drawn, count, looks) for count in range(drawn + 1)], Fraction(0)
    for relevant in range(size + 1):
        missable, fails, goes = math.floor((1 - recall) * (relevant + known)), Fraction(0), Fraction(0)
        for count in range(min(drawn, relevant) + 1):
            chance, drop = pmf(size, relevant, drawn, count) * going[count], int(drops[count])
            goes += chance
            if drop >= 0 and missable + 1 + drop <= relevant:
                marked = missable + 1 + drop
                fails += chance * sum(pmf(relevant, marked, count, x) for x in range(drop + 1))
        worst = max(worst, fails / goes) if goes else worst
    return worst


IN_PARTS = [
    ((8, 5, Fraction(3, 4), 0.2), ((4, 2),)),
    ((9, 4, Fraction(3, 4), 0.2), ((2, 2),)),
    ((9, 5, Fraction(2, 3), 0.3), ((3, 3),)),
    ((12, 5, Fraction(1, 2), 0.2), ((1, 1), (4, 3))),
    ((30, 15, Fraction(4, 5), 0.1), ((4, 2), (12, 6))),
    ((40, 20, Fraction(9, 10), 0.1), ((5, 2), (12, 6), (17, 10))),
    ((60, 20, Fraction(2, 3), 0.15), ((17, 4),)),
]


@pytest.mark.parametrize(("drawn", "looks"), [(case[1], looks) for case, looks in IN_PARTS])
def test_the_chance_to_go_on_over_every_way_to_divide_the_relevant_ones(drawn, looks):
    exact = [float(goes_on(drawn, count, looks)) for count in range(drawn + 1)]
    assert chances_to_go_on(drawn, looks) == pytest.approx(exact, abs=1e-12)
    for relevant in (0, 5, 20, 30):
        chance = sum(float(pmf(30, relevant, drawn, count)) * exact[count] for count in range(drawn + 1))
        if drawn <= 30:
            found = chance_of(30, drawn, chances_to_go_on(drawn, looks), np.array([relevant]))
            assert float(found[0]) == pytest.approx(chance, abs=1e-11)


@pytest.mark.parametrize("known", [0, 3])
@pytest.mark.parametrize(("case", "looks"), IN_PARTS)
def test_of_the_samples_that_go_on_at_most_alpha_fail(case, looks, known):
    """Over every R, in rationals; with one drop more at any n+ it would be more."""
    size, drawn, recall, alpha = case
    drops = np.array(control_rule(*case, known, looks=looks).drops)
    assert share_of_those_that_go_on(size, drawn, recall, drops, looks, known) <= Fraction(str(alpha))
    assert list(drops) == sorted(drops)
    assert (drops <= np.arange(drawn + 1)).all()
    for count in range(max(least for _, least in looks), drawn + 1):
        if drops[count] < min(count, drops[min(count + 1, drawn)]):
            more = np.where(np.arange(drawn + 1) == count, drops + 1, drops)
            failing = share_of_those_that_go_on(size, drawn, recall, more, looks, known)
            assert float(failing) > alpha * (1 - MARGIN)


def test_the_drops_of_samples_that_always_go_on_fail_too_often_where_they_may_not():
    for case, looks in IN_PARTS[:3]:
        drops = control_rule(*case).drops
        assert share_of_those_that_go_on(*case[:3], drops, looks) > Fraction(str(case[3]))


@pytest.mark.parametrize("known", [0, 3])
@pytest.mark.parametrize(
    ("case", "looks"), [IN_PARTS[4], IN_PARTS[6], ((60, 12, Fraction(1, 2), 0.2), ((6, 2),))]
)
def test_many_r_looked_at_together_are_allowed_what_the_first_is(case, looks, known, monkeypatch):
    monkeypatch.setattr(control_sample, "FINE", 2)
    monkeypatch.setattr(control_sample, "COARSER", 4)
    monkeypatch.setattr(control_sample, "UNSURE", 0.2)
    size, drawn, recall, alpha = case
    drops = control_rule.__wrapped__(*case, known, looks=looks).drops
    assert share_of_those_that_go_on(size, drawn, recall, drops, looks, known) <= Fraction(str(alpha))
    assert max(drops) >= 0
