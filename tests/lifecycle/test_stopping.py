"""StopTest where labels are missing, corrected or too many: every draw of small rests, through the real code."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

import surelist as sl

WORLDS = [(4, 8, 0.8, 0.3), (6, 9, 0.7, 0.2), (10, 8, 0.9, 0.4), (2, 7, 0.6, 0.3)]


def fresh(world) -> sl.StopTest:
    found, rest, recall, alpha = world
    return sl.StopTest(found, rest, recall, alpha=alpha, looks=3)


@cache
def walk(world, told) -> list[tuple[int, float, bool]]:
    """Items drawn, recall now and whether it is certified, each time that something can be read."""
    test, seen = fresh(world), list[tuple[int, float, bool]]()
    while not test.certified and test.drawn < len(told):
        test.tell(told[test.drawn : test.drawn + 1])
        seen.append((test.drawn, test.recall_now, test.certified))
    return seen


def draws(world):
    """Every order of drawing, as labels up to the last look, by how many relevant ones are left."""
    _, rest, _, _ = world
    last = fresh(world).sizes[-1]
    for order in product((0, 1), repeat=rest):
        yield sum(order), order[:last]


def with_missing(labels):
    """The labels with every set of them missing."""
    for gone in product((False, True), repeat=len(labels)):
        yield tuple(None if missing else label for label, missing in zip(labels, gone, strict=True))


def chances(world, false) -> dict[int, Fraction]:
    """How likely it is, for each number left, that ``false(left, labels)``."""
    _, rest, _, _ = world
    counts = dict.fromkeys(range(rest + 1), 0)
    for left, labels in draws(world):
        counts[left] += false(left, labels)
    return {left: Fraction(count, math.comb(rest, left)) for left, count in counts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_the_recall_certified_now_is_false_at_most_alpha_of_the_time_whatever_labels_are_missing(world):
    """Somebody who knows everything chooses which labels are missing, and when to read: found is what is
    known to be relevant, whether or not those without a label are kept."""
    found, _, _, alpha = world
    plain = 0.0

    def false(left: int, labels) -> bool:
        return any(
            now > (found + told[:drawn].count(1)) / (found + left)
            for told in with_missing(labels)
            for drawn, now, _ in walk(world, told)
        )

    levels = chances(world, false)
    assert max(levels.values()) <= check_alpha(alpha), levels
    for drawn, now, _ in walk(world, (0,) * fresh(world).sizes[-1]):
        plain = max(plain, now if drawn else 0.0)
    assert plain > found / (found + 4), "it says something where nothing is found"


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_a_certificate_is_false_at_most_alpha_of_the_time_whatever_labels_are_missing(world):
    """The items without a label are kept, as its sentence says."""
    found, _, recall, alpha = world

    def false(left: int, labels) -> bool:
        return any(
            certified and found + sum(labels[:drawn]) < check_alpha(recall) * (found + left)
            for told in with_missing(labels)
            for drawn, _, certified in walk(world, told)
        )

    assert max(chances(world, false).values()) <= check_alpha(alpha)


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS[:2])
def test_a_certificate_is_false_at_most_alpha_of_the_time_whatever_was_mistyped_and_corrected(world):
    """Any labels at first, all of them corrected at any time, and after that the right ones."""
    found, _, recall, alpha = world
    ended: dict[tuple[object, ...], tuple[int, bool]] = {}

    def end(labels, wrong) -> tuple[int, bool]:
        if (labels, wrong) not in ended:
            test = fresh(world)
            for mark in wrong:
                if len(test.ask()):
                    test.tell([mark])
            items = test.order[: test.drawn]
            test.correct(items, labels[: test.drawn])
            while len(test.ask()):
                test.tell([labels[test.drawn]])
            ended[labels, wrong] = test.drawn, test.certified
        return ended[labels, wrong]

    def false(left: int, labels) -> bool:
        for many in range(len(labels) + 1):
            for wrong in product((0, 1), repeat=many):
                drawn, certified = end(labels, wrong)
                if certified and found + sum(labels[:drawn]) < check_alpha(recall) * (found + left):
                    return True
        return False

    assert max(chances(world, false).values()) <= check_alpha(alpha)


def check_alpha(number: float) -> Fraction:
    return Fraction(str(number))


def test_a_missing_label_is_not_counted_as_found():
    told = sl.StopTest(30, 400, 0.8, alpha=0.1)
    missing = sl.StopTest(30, 400, 0.8, alpha=0.1)
    size = told.sizes[0]
    told.tell([1] * 8 + [0] * (size - 8))
    missing.tell([None] * 8 + [0] * (size - 8))
    assert missing.hits == told.hits == 8
    left = 38 / told.recall_now - 30
    assert missing.recall_now == pytest.approx(30 / (30 + left))


def test_a_test_that_is_lost_says_so_at_once_what_was_found_and_what_can_be_promised():
    test = sl.StopTest(195, 8000, 0.95)
    looks = len(test.sizes)
    test.tell([1] * (looks - 1))
    assert not test.lost
    assert len(test.ask()) == test.sizes[-1] - test.drawn, "the one look that can still be passed"
    assert f"at most {looks - 1} hits in all" in test.describe()
    test.tell([0] * 500 + [1])
    assert test.lost
    assert test.over
    assert not test.certified
    assert len(test.ask()) == 0
    said = " ".join(test.describe().split())
    assert f"Lost: {looks} hits, and the last look allows {looks - 1}" in said
    assert f"Found in all: {195 + looks} relevant items. Certified now: a recall of" in said
    assert "lost" in repr(test)
    # the last look is taken at the hit that lost it: 9 hits in the 509 draws before it, at alpha / 10
    from scipy import stats

    drawn, most = test.drawn - 1, round((195 + looks) / test.recall_now) - 195
    assert stats.hypergeom(8000, most, drawn).cdf(looks - 1) > 0.05 / looks
    assert stats.hypergeom(8000, most + 1, drawn).cdf(looks - 1) <= 0.05 / looks
    test.tell([1, 0])  # labels made before that was known
    assert test.recall_now > (195 + looks) / (195 + most)


def test_where_only_the_whole_rest_would_do_that_is_said():
    test = sl.StopTest(2, 30, 0.95, looks=3)
    assert test.sizes[-1] == 30
    test.tell([1] * 5)
    assert not test.lost
    assert "label 25 more items, all that are left" in test.describe()
    test.tell([1] * 25)
    assert test.certified
    assert test.recall_now == 1


def test_a_correction_before_its_look_replaces_the_label_and_is_on_record(tmp_path):
    test = sl.StopTest(150, 1000, 0.9)
    items = test.ask().tolist()
    test.tell([1, 0, None])
    test.correct(items[:3], [0, 0, 0])
    assert (test.hits, test.drawn) == (0, 3)
    assert test.told == dict.fromkeys(items[:3], 0)
    path = tmp_path / "stop.json"
    test.save(path)
    again = sl.StopTest.load(path)
    said = " ".join(again.describe().split())
    assert f"2 labels corrected, on record: item {items[0]} from relevant to not relevant" in said
    assert f"item {items[2]} from missing to not relevant" in said
    with pytest.raises(sl.InvalidInput, match=f"item {items[3]} has no label yet"):
        again.correct([items[3]], [1])
    with pytest.raises(sl.InvalidInput, match="an item is given twice"):
        again.correct([items[0], items[0]], [1, 0])
    with pytest.raises(sl.InvalidInput, match="items: expected row numbers, got None"):
        again.correct(None, [1])
    text = json.loads(path.read_text())
    text["corrected"][0]["row"] = items[3]
    path.write_text(json.dumps(text))
    with pytest.raises(sl.PolicyFileError, match="a correction is of none of its rows"):
        sl.StopTest.load(path)


def test_a_label_corrected_to_relevant_withdraws_the_certificate():
    test = sl.StopTest(150, 1000, 0.9)
    items = test.ask()
    test.tell(np.zeros(len(items)))
    assert test.certified
    test.correct(items[:1], [1])
    assert not test.certified
    assert test.hits == 1
    assert len(test.ask()) == test.sizes[1] - test.drawn


def test_a_hit_that_is_taken_back_after_its_look_stays_a_hit_and_is_not_found():
    test = sl.StopTest(150, 1000, 0.9)
    items = test.ask().tolist()
    test.tell([1] + [0] * (len(items) - 1))
    before = test.recall_now
    test.correct(items[:1], [0])
    assert not test.certified, "the look has passed"
    assert test.hits == 1
    assert test.told[items[0]] == 0
    assert test.recall_now < before
    test.correct(items[:1], [0])
    assert len(test._state.corrected) == 1, "nothing to correct"
