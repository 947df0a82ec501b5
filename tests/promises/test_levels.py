"""The level of every declared set, at a hard point of it; the matrix is made of what the kinds declare.

``make test`` runs the smallest set of every declaration, condition and pair of conditions, ``make exhaustive``
all of them. The chance that any of this fails on correct code is below 1e-9 (and the draws are seeded).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import surelist as sl
from surelist.promises import kinds
from surelist.promises.conditions import Conditions
from surelist.promises.proved import accepted
from tests.promises.levels import runs, worlds
from tests.promises.levels.judging import Sum, Verdict, judged, sets_of
from tests.promises.levels.runs import Cell, cells_of, listed
from tests.promises.levels.truths import ALPHA, CASES
from tests.promises.levels.worlds import WITHIN, world

KINDS = kinds.classes()
quiet = pytest.mark.filterwarnings("ignore::UserWarning")  # what is said of pools and directions is true here


def named(kind: type) -> str:
    return kind.__name__


def test_every_kind_is_in_the_matrix_and_every_set_has_a_cell():
    assert set(CASES) == set(KINDS), "a kind has no case in tests/promises/levels/truths.py: CASES"
    for kind in KINDS:
        assert {each.asked for each in cells_of(kind, list(accepted(kind)))} == accepted(kind)


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_every_declaration_condition_and_pair_of_conditions_is_among_those_of_make_test(kind):
    chosen = sets_of(kind, every=False)
    assert all(any(proved.covers(asked) for asked in chosen) for proved in kind.proved_with)
    pairs = lambda sets: {  # noqa: E731
        frozenset({a, b}) for asked in sets for a in asked.beside().items() for b in asked.beside().items()
    }
    assert pairs(chosen) == pairs(accepted(kind))


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_no_declared_pair_of_conditions_makes_false_promises_more_often_than_alpha(kind):
    verdict = judged(kind, every=False)
    print(f"{kind.__name__}: {verdict.describe()}")
    assert verdict.too_many == []


@quiet
@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_no_declared_set_makes_false_promises_more_often_than_alpha(kind):
    verdict = judged(kind, every=True)
    print(f"{kind.__name__}: {verdict.describe()}")
    assert verdict.too_many == []


HARD = {  # cells whose rule spends its alpha, and how much of it at least
    (sl.Expected, 0): 0.15, (sl.PerPool, 0): 0.13, (sl.Recall, 0): 0.12, (sl.NextPool, 1): 0.2, (sl.Value, 0): 0.18,
    (sl.PoolAverage, 0): 0.15,
}  # fmt: skip


@quiet
@pytest.mark.parametrize(("kind", "number"), HARD, ids=lambda each: getattr(each, "__name__", str(each)))
def test_the_points_are_hard(kind, number):
    """Where nothing is ever false a level test shows nothing."""
    chances = Cell(kind, number, Conditions()).chances(300)
    assert np.mean(chances) > HARD[kind, number]


def test_the_bound_is_one_of_the_chance_of_so_many():
    for false in (10, 15, 30, 40):
        assert math.exp(Sum(40, false, 40 * ALPHA).log_chance) >= binom.sf(false - 1, 40, ALPHA)
    assert Verdict({"a": Sum(40, 10, 10)}, {}).too_many == []
    assert Verdict({"a": Sum(40, 38, 10)}, {}).too_many == ["a: 38.0 of 40 false, 10.0 allowed"]


def test_the_worst_ratios_within_the_factor_are_the_pools_of_that_world():
    found = world(Conditions(shift="within"))
    wrong = found.pool / found.rows / found.ratio
    assert wrong.max() / wrong.min() == pytest.approx(WITHIN**2)
    assert (found.rows * found.ratio).sum() == pytest.approx(1)


@quiet
@pytest.mark.parametrize(
    "asked", [Conditions(), Conditions(groups="overlapping"), Conditions(scores="several")], ids=str
)
def test_what_a_list_holds_is_worked_out_of_the_list_that_select_makes(asked):
    found, rng = world(asked, fine=True), np.random.default_rng(1)
    drawn = worlds.draw(rng, found, asked, 300, 0)
    target = sl.Expected(10, 100)
    targets = target if asked.groups == "none" else dict.fromkeys(worlds.GROUPS, target)
    policy = runs.calibrated(rng, found, asked, drawn, targets, amounts=False)
    score = "a" if policy.choice is None else policy.choice.chosen
    scores = {score: found.scores(score)} if asked.scores == "several" else found.a
    groups = None if asked.groups == "none" else found.member
    assert np.array_equal(policy.select(scores, groups=groups), listed(policy, found, score) == 1)
    assert 0 < policy.cutoffs[0].steps[0].threshold < 9
