"""Density ratios from a classifier, and promises that hold although ratios are somewhat wrong."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binom

import surelist as sl
from surelist.errors import PolicyFileError
from surelist.promises.phrases import at_least
from surelist.promises.promise import Level

FACTOR = 1.3


def worst_pool_share(share: float, factor: float) -> float:
    """P_pool(A) where the pool's density is a on A and factor^2 a elsewhere."""
    a = 1 / (share + factor**2 * (1 - share))
    return a * share


@pytest.mark.parametrize("target", [sl.Expected(5, 100), sl.Recall(0.8), sl.Precision(0.6)])
def test_the_share_asked_for_is_the_one_that_the_worst_ratios_leave(target):
    asked = target.k / 100 if isinstance(target, sl.Expected) else target.share
    wider: Any = target.widened(FACTOR)
    certified = wider.k / 100 if isinstance(wider, sl.Expected) else wider.share
    assert worst_pool_share(certified, FACTOR) == pytest.approx(asked, rel=1e-9)
    assert worst_pool_share(certified, FACTOR) >= asked * (1 - 1e-15)
    assert at_least(certified, FACTOR) == pytest.approx(asked)


def test_false_at_most_alpha_at_the_worst_ratios_and_more_without_the_margin():
    """Every number of kept rows and of qualified ones among them, at the boundary, in full."""
    rows, kept_at, alpha = 150, 0.6, 0.1
    target, level = sl.Expected(20, 100), Level(alpha)
    wider: Any = target.widened(FACTOR)
    # just below: the worst pool then holds just less than the 20 promised
    rate = (wider.k / 100) * (1 - 1e-9)
    false = dict.fromkeys(("with", "without"), 0.0)
    for kept in range(1, rows + 1):
        chance = binom.pmf(kept, rows, kept_at)
        for name, asked in (("with", wider), ("without", target)):
            false[name] += chance * binom.sf(asked.count_at(0, kept, kept, level) - 1, kept, rate)
    assert false["with"] <= alpha
    assert false["with"] > 0.6 * alpha
    assert false["without"] > 0.5


class Told:
    """A classifier whose probability of being a pool candidate is the only feature."""

    classes_ = np.array([0, 1])

    def predict_proba(self, rows):
        return np.column_stack([1 - rows, rows])


def test_ratios_are_odds_times_the_shares_it_was_trained_on():
    chances = np.array([0.2, 0.5, 0.75, 1.0])
    made = sl.DensityRatio.from_classifier(Told(), chances, trained_on=(300, 100), bound=5)
    assert made.ratios.tolist() == pytest.approx([0.75, 3.0, 5.0, 5.0])
    assert made.bound == 5
    assert not made.exact
    assert "about 3 will be kept" in made.describe()
    assert "2 of them are at the bound 5" in made.describe()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trained_on": (300, 0)}, "trained_on"),
        ({"trained_on": 300}, "trained_on: expected .past rows, pool candidates."),
        ({"bound": 0}, "bound"),
        ({"within": 0.5}, "within: expected a factor of at least 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, words):
    asked = {"trained_on": (10, 10), "bound": 3.0, **change}

    def ask():
        made = sl.DensityRatio.from_classifier(Told(), np.full(4, 0.5), **asked)
        sl.calibrate(np.arange(4.0), [0, 1, 1, 1], sl.Expected(5, 100), shift=made)

    with pytest.raises(sl.InvalidInput, match=words):
        ask()


def test_classes_the_other_way_round_are_refused():
    told = Told()
    told.classes_ = np.array(["past", "pool"])
    with pytest.raises(sl.InvalidInput, match=r"classes 0 \(past rows\) and 1"):
        sl.DensityRatio.from_classifier(told, np.full(4, 0.5), trained_on=(1, 1), bound=3)


def rows_and_ratios(n=4000):
    rng = np.random.default_rng(7)
    z = rng.standard_normal(n)
    labels = rng.random(n) < 1 / (1 + np.exp(1.5 - 1.5 * z))
    return z, labels, np.clip(np.exp(0.5 * z - 0.125), 0, 4.0)


@pytest.mark.parametrize("target", [sl.Expected(5, 100), sl.Recall(0.8)])
def test_a_margin_is_kept_in_the_policy_and_checked_when_it_is_read(tmp_path, target):
    scores, labels, ratios = rows_and_ratios()
    plain = sl.calibrate(scores, labels, target, shift=sl.DensityRatio(ratios, bound=4, seed=1))
    ratio = sl.DensityRatio(ratios, bound=4, within=1.2)
    policy = sl.calibrate(scores, labels, target, shift=replace(ratio, seed=1))
    assert policy.threshold < plain.threshold
    assert policy.cutoffs[0].target == target
    assert any("within a factor of 1.2 of these" in each for each in policy.conditions)
    assert not policy.excess_bound
    policy.save(tmp_path / "p.json")
    assert sl.Policy.load(tmp_path / "p.json") == policy
    raw = json.loads((tmp_path / "p.json").read_text())
    raw["shift"]["within"] = 1.3  # claims more than its count certifies
    (tmp_path / "p.json").write_text(json.dumps(raw))
    with pytest.raises(PolicyFileError, match="is less than"):
        sl.Policy.load(tmp_path / "p.json")


def test_without_a_margin_the_conditions_say_what_is_left():
    scores, labels, ratios = rows_and_ratios()
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100), shift=sl.DensityRatio(ratios, bound=4))
    assert any("still holds at least 3.26 on average" in each for each in policy.conditions)
    exact = sl.DensityRatio(ratios, bound=4, exact=True)
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100), shift=exact)
    assert not any("still holds" in each for each in policy.conditions)


def test_a_refusal_says_what_the_rows_could_certify_with_the_margin():
    scores, labels, ratios = rows_and_ratios(300)
    ratio = sl.DensityRatio(ratios, bound=4, within=2)
    with pytest.raises(sl.NotCertifiable, match="within a factor of 2") as refused:
        sl.calibrate(scores, labels, sl.Expected(20, 100), shift=replace(ratio, seed=3))
    assert 0 < refused.value.largest_k < 20


@pytest.mark.parametrize("target", [sl.PerPool(3, 50), sl.Budget(10, 100)])
def test_promises_without_such_a_margin_say_so(target):
    scores, labels, ratios = rows_and_ratios(300)
    ratio = sl.DensityRatio(ratios, bound=4, within=1.2)
    others = scores + 0.1 if target.others == "needed" else None
    with pytest.raises(sl.InvalidInput, match="and a shift known within a factor have no proof together"):
        sl.calibrate(scores, labels, target, unlabelled=others, shift=ratio)
