"""Decisions that are made: the level of what is said about them, by enumeration, and what may come between."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

import surelist as sl
from surelist.lifecycle.validation import SampleSplit, ValidationState, plan_split
from surelist.promises.phrases import percent_down

WORLDS = [
    (6, 9, 7, Fraction(3, 10)),
    (10, 12, 12, Fraction(1, 5)),
    (4, 20, 14, Fraction(1, 4)),
    (12, 10, 14, Fraction(1, 10)),
    (20, 12, 16, Fraction(2, 5)),  # here the whole of alpha on both sides is too much
]


def finished(
    kept: int, left: int, split: SampleSplit, marks: tuple[str, str], sample: int, alpha: float
) -> sl.Validation:
    rows = [*range(split.kept), *range(kept, kept + split.left)]
    sides = "1" * split.kept + "0" * split.left
    state = ValidationState(
        kept=kept, left=left, recall=0.5, alpha=alpha, sample=sample, table=None, decided=None, created="now",
        order=rows, sides=sides, labels="".join(marks),
    )  # fmt: skip
    test = sl.Validation.__new__(sl.Validation)
    test._resume(state)
    return sl.Validation.loads(test.dumps())


def told(hits: int, drawn: int, other: str = "0") -> str:
    return "1" * hits + other * (drawn - hits)


def law(size: int, marked: int, drawn: int) -> dict[int, Fraction]:
    possible = range(max(0, drawn + marked - size), min(drawn, marked) + 1)
    return {
        x: Fraction(comb(marked, x) * comb(size - marked, drawn - x), comb(size, drawn)) for x in possible
    }


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_the_share_kept_is_less_than_said_at_most_alpha_of_the_time(world, missing):
    """Every number of relevant rows on both sides, every outcome of the draw; all labels, or the worst missing."""
    kept, left, sample, alpha = world
    split = plan_split(kept, left, 0.5, sample, float(alpha))
    said = {}
    for first, second in product(range(split.kept + 1), range(split.left + 1)):
        # the labels that would speak against a high share are the ones that do not come
        marks = told(first, split.kept, "-" if missing else "0"), told(second, split.left)
        said[first, second] = finished(kept, left, split, marks, sample, float(alpha))._share
    worst = Fraction(0)
    for above, below in product(range(kept + 1), range(left + 1)):
        if above + below:
            tops, rests = law(kept, above, split.kept), law(left, below, split.left)
            truth = Fraction(above, above + below)
            false = sum((tops[x] * rests[y] for x in tops for y in rests if said[x, y] > truth), Fraction(0))
            worst = max(worst, false)
    assert alpha / 3 < worst <= alpha


def test_a_missing_label_counts_against_the_decisions():
    split = plan_split(6, 9, 0.5, 7, 0.3)
    all_in = finished(6, 9, split, (told(split.kept, split.kept), told(0, split.left)), 7, 0.3)
    for marks in (
        ("-" + told(split.kept - 1, split.kept - 1), told(0, split.left)),
        (told(split.kept, split.kept), "-" + told(0, split.left - 1)),
    ):
        test = finished(6, 9, split, marks, 7, 0.3)
        assert test.kept_at_least < all_in.kept_at_least
        assert "1 missing label counted against the decisions" in " ".join(test.describe().split())


def test_both_sides_are_drawn_without_repetition_in_mixed_order():
    decided = np.arange(2_000) % 4 == 0
    test = sl.Validation(decided, 0.8, sample=300)
    rows = test.ask()
    assert len(set(rows.tolist())) == 300
    kept, left = test.sampled()
    assert (kept.drawn, left.drawn) == (decided[rows].sum(), (~decided[rows]).sum())
    first = decided[rows[: kept.drawn]]
    assert (
        0 < first.sum() < kept.drawn
    )  # not one side after the other; the draw is seeded by this test's name


def test_a_label_can_be_corrected_until_the_result_is_known(tmp_path):
    test = sl.Validation([1] * 30 + [0] * 70, 0.8, sample=40)
    rows = test.ask().tolist()
    test.tell(rows[:2], [1, None])
    assert test.kept_at_least is None
    assert "nothing is said before" in test.describe()
    test.tell(rows[:2], [0, 1])
    assert test.told == {rows[0]: 0, rows[1]: 1}
    test.save(tmp_path / "v.json")
    test = sl.Validation.load(tmp_path / "v.json")
    test.tell(rows[2:], [1] * 38)
    test.tell(rows[:2], [0, 1])  # the same again
    with pytest.raises(sl.InvalidInput, match="the result was shown with it"):
        test.tell(rows[:1], [1])
    with pytest.raises(sl.InvalidInput, match="was not drawn"):
        test.tell([10_000], [1])


@pytest.mark.parametrize(
    ("decided", "sample", "said"),
    [
        ([0, 0, 0], 2, "no row is kept"),
        ([1, 1], 2, "no row is left out"),
        ([1, 0], 1, "at least 2 rows"),
        ([], 2, "no row"),
    ],
)
def test_what_cannot_be_validated_is_refused(decided, sample, said):
    with pytest.raises(sl.InvalidInput, match=said):
        sl.Validation(decided, 0.8, sample=sample)


def test_everything_labelled_gives_the_recall_itself():
    test = sl.Validation([1] * 10 + [0] * 30, 0.7, sample=40)
    rows = test.ask().tolist()
    test.tell(rows, [row < 12 and row > 1 for row in rows])
    assert test.kept_at_least == 0.8
    assert test.certified


def test_a_share_is_never_rounded_up():
    assert percent_down(0.87999) == "87.9%"


def test_a_file_that_was_changed_is_refused():
    text = sl.Validation([1] * 30 + [0] * 70, 0.8, sample=40).dumps()
    for old, new in (
        ('"kept":30', '"kept":50'),
        ('"sides":"', '"sides":"1'),
        ('"alpha":0.05', '"alpha":2.0'),
    ):
        with pytest.raises(sl.PolicyFileError):
            sl.Validation.loads(text.replace(old, new))


def test_corrections_stay_on_record_and_a_row_given_twice_is_refused():
    test = sl.Validation([1] + [0] * 99, 0.8, sample=40)
    assert test.describe().startswith("1 row was kept")
    rows = test.ask().tolist()
    test.tell(rows[:2], [1, 0])
    test.tell(rows[:2], [0, 0])
    again = sl.Validation.loads(test.dumps())
    assert "1 label corrected, on record." in again.describe()
    with pytest.raises(sl.InvalidInput, match="given twice"):
        test.tell([rows[0], rows[0]], [1, 0])
    with pytest.raises(sl.InvalidInput, match="row numbers"):
        test.tell([True], [1])
