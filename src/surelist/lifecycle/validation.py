"""Were decisions good enough? One random sample of those that were kept and of those left out.

The decisions may come from anybody and from anything, a model or a whole review: the test is conditional on
them [theory: validation]. The bound is in ``bounds.collection_lists``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from surelist import _check as check
from surelist._arrays import Ints
from surelist._files import hold
from surelist._randomness import fresh_generator
from surelist.bounds._tails import smallest
from surelist.bounds.collection_lists import Sampled, kept_share
from surelist.drawing.display import Display
from surelist.errors import InvalidInput
from surelist.lifecycle.labelling_start import as_rows, marks_of
from surelist.lifecycle.state import Correction, verify_corrections
from surelist.lifecycle.stopping import WAITING, DrawnState, DrawnTest, filled
from surelist.promises.phrases import counted, percent, percent_down

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of the sample, for those that were kept
RELEVANT = 0.8  # of those that were kept, for the plan; any guess is valid
CONDITIONS = (
    "Nothing is assumed about how the decisions were made: only that they were made before the draw and are "
    "still the same, that the labels are right and were given without knowing the decisions, and that the "
    "draw is not repeated. A label that is missing counts against the decisions."
)


class ValidationState(DrawnState, kw_only=True, forbid_unknown_fields=True):
    """All that a validation knows, in the order of its file.

    ``sides``: 1 for a row that was kept, 0 for one left out; ``labels``: 0, 1, - (missing) or ? (to come).
    """

    kind: Literal["surelist validation"] = "surelist validation"
    kept: int
    left: int
    sample: int
    decided: str | None  # its column of decisions
    sides: str

    def verify(self) -> None:
        split = plan_split(self.kept, self.left, self.recall, self.sample, self.alpha)
        sides, rows = (self.sides.count("1"), self.sides.count("0")), self.order
        hold(sides == split[:2] and sum(sides) == len(self.sides), "its draw has another size")
        hold(len(set(rows)) == len(rows) == len(self.sides) == len(self.labels), "its rows do not fit")
        hold(min(rows) >= 0 and max(rows) < self.kept + self.left, "a row is none of the table")
        hold(set(self.labels) <= set("01-?"), "its labels are impossible")
        told = {row for row, mark in zip(rows, self.labels, strict=True) if mark != WAITING}
        verify_corrections(self.corrected, told)


class SampleSplit(NamedTuple):
    """How many are drawn from those kept and from those left out; the share to be certified if it goes as
    guessed."""

    kept: int
    left: int
    expected: Fraction


def plan_split(kept: int, left: int, recall: float, sample: int, alpha: float) -> SampleSplit:
    """The split with the largest share to expect, where the decisions keep half of what they may miss more
    than they have to. Nothing but sizes enters: it is fixed before any label."""
    if kept == 0 or left == 0:
        side = "kept" if kept == 0 else "left out"
        raise InvalidInput("decided", f"no row is {side}, so there is no recall to validate.")
    sample = min(sample, kept + left)
    if sample < 2:
        raise InvalidInput("sample", expected="at least 2 rows", got=f"{sample}")
    missed = RELEVANT * kept * (1 / ((1 + recall) / 2) - 1)
    least, most = max(1, sample - left), min(kept, sample - 1)
    best = SampleSplit(0, 0, Fraction(-1))
    for first in sorted({min(most, max(least, round(part * sample))) for part in SHARES}):
        drawn, second = Sampled(kept, first, round(RELEVANT * first)), sample - first
        hits = round(second * min(1.0, missed / left))
        expected = kept_share(drawn, Sampled(left, second, hits), check.as_fraction(alpha, "alpha"))
        if expected > best.expected:
            best = SampleSplit(first, second, expected)
    return best


class Validation(DrawnTest[ValidationState]):
    """Did decisions that are made keep enough of all that is relevant? A test by one random sample.

    Parameters
    ----------
    decided
        One decision a row: 1 or True for kept; 0, False or missing for left out.
    recall
        The share of all relevant rows that the decisions should have kept.
    sample
        Rows to label in all; how many of them from those kept is chosen here.
    alpha
        The chance of a false statement is at most this, whatever the decisions rest on.
    table, column
        To remember: where the rows are, and which column has the decisions.

    Examples
    --------
    >>> import surelist as sl
    >>> test = sl.Validation([1] * 300 + [0] * 700, recall=0.8, sample=400, alpha=0.05)
    >>> rows = test.ask()
    >>> test.tell(rows, [1 if row < 290 else 0 for row in rows.tolist()])
    >>> test.certified
    True
    """

    _shape = ValidationState

    def __init__(
        self, decided: Any, recall: float, *, sample: int, alpha: float = 0.05, table: str | None = None,
        column: str | None = None,
    ) -> None:  # fmt: skip
        marks = np.array(marks_of(decided, None))
        sides = [np.flatnonzero(marks == "1"), np.flatnonzero(marks != "1")]
        kept, left = (len(each) for each in sides)
        recall, alpha = check.as_alpha(recall, "recall"), check.as_level(alpha)
        sample = check.as_count(sample, "sample")
        split = plan_split(kept, left, recall, sample, alpha)
        rng = fresh_generator()  # what it gives is recorded
        drawn = [rng.choice(side, size, replace=False) for side, size in zip(sides, split[:2], strict=True)]
        order = rng.permutation(np.concatenate(drawn)).tolist()  # mixed: nobody sees what was decided
        self._resume(ValidationState(
            kept=kept, left=left, recall=float(recall), alpha=float(alpha), sample=sample, table=table,
            decided=column, order=order, labels=WAITING * len(order),
            sides="".join("1" if marks[row] == "1" else "0" for row in order),
        ))  # fmt: skip

    @property
    def column(self) -> str | None:
        """The column with the decisions, if they are in a table."""
        return self._state.decided

    @property
    def decisions(self) -> dict[int, bool]:
        """Whether each row that was drawn was kept."""
        return {row: side == "1" for row, side in zip(self._state.order, self._state.sides, strict=True)}

    def ask(self, count: int | None = None) -> Ints:
        """Rows to label now, in this order: all that are to come, or the first ``count`` of them."""
        pairs = zip(self._state.order, self._state.labels, strict=True)
        rows = [row for row, mark in pairs if mark == WAITING]
        return np.array(rows[: None if count is None else check.as_count(count, "count")], dtype=np.int64)

    def tell(self, rows: Any, labels: Any) -> None:
        """Take in labels of rows that were asked for; a missing one (None or NaN) will not come.

        A label may be told again, and corrected so, on record, until all are in: then the result is known.
        """
        numbers = as_rows(rows)
        marks = marks_of(labels, len(numbers))
        if len(set(numbers)) < len(numbers):
            raise InvalidInput("rows", "a row is given twice; give each row once.")
        told, corrected = len(self.told), list[Correction]()
        kept, place = list(self._state.labels), {row: at for at, row in enumerate(self._state.order)}
        for row, mark in zip(numbers, marks, strict=True):
            if row not in place:
                raise InvalidInput("rows", f"row {row!r} was not drawn; label the rows that ask() names.")
            if self.done and kept[place[row]] != mark:
                raise InvalidInput(
                    "labels", f"row {row} has another label, and the result was shown with it. A label that "
                    "was wrong means starting again with a fresh draw.",
                )  # fmt: skip
            was, kept[place[row]] = kept[place[row]], mark
            if was not in (WAITING, mark):
                corrected.append(Correction(row, was, mark, told))
        self._state.labels = "".join(kept)
        self._state.corrected += corrected

    @property
    def done(self) -> bool:
        """Whether every label is in."""
        return WAITING not in self._state.labels

    def sampled(self) -> tuple[Sampled, Sampled]:
        """Those kept and those left out: how many there are, how many were drawn, how many are relevant.

        A missing label is not relevant among those kept, and relevant among those left out.
        """
        state = self._state
        pairs = list(zip(state.sides, state.labels, strict=True))
        kept, left = ([mark for side, mark in pairs if side == which] for which in "10")
        good = Sampled(state.kept, len(kept), kept.count("1"))
        return good, Sampled(state.left, len(left), len(left) - left.count("0"))

    @property
    def kept_at_least(self) -> float | None:
        """The share of all relevant rows that the decisions kept for certain; None while labels are to
        come."""
        return float(self._share) if self.done else None

    @property
    def _share(self) -> Fraction:
        return kept_share(*self.sampled(), check.as_fraction(self._state.alpha, "alpha"))

    @property
    def certified(self) -> bool:
        """Whether the recall asked for is certified."""
        asked = check.as_fraction(self._state.recall, "recall")
        return self.done and self._share >= asked

    def _said(self) -> list[str]:
        state, (kept, left) = self._state, self.sampled()
        drawn = (
            f"{_sides(state.kept, state.left)} Drawn at random: {kept.drawn:,} of those kept and "
            f"{left.drawn:,} of those left out."
        )
        made = len(state.corrected)
        corrected = [f"{counted(made, 'label')} corrected, on record."] if made else []
        return [drawn, self._verdict(), *corrected, CONDITIONS]

    def _verdict(self) -> str:
        state, share = self._state, self.kept_at_least
        if share is None:
            return f"Go on: {counted(state.labels.count(WAITING), 'label')} to come; nothing is said before."
        kept, left = self.sampled()
        missing = counted(state.labels.count("-"), "missing label")
        gone = f", {missing} counted against the decisions" if "-" in state.labels else ""
        asked = f"The {percent(state.recall)} asked for {'is' if self.certified else 'is not'} certified."
        return (
            f"Relevant: {kept.hits:,} of those drawn from the kept, {left.hits:,} of those drawn from the "
            f"left out{gone}. The decisions kept at least {percent_down(share)} of all relevant rows; this "
            f"is wrong with probability at most {percent(state.alpha)} over our own draw. {asked}"
        )

    def _display(self) -> Display:
        state, (kept, left) = self._state, self.sampled()
        sides = [("kept", state.kept, kept.drawn), ("left out", state.left, left.drawn)]
        facts = [(side, f"{rows:,}, {drawn:,} drawn") for side, rows, drawn in sides]
        risk = f"at most {percent(state.alpha)}, over our own draw"
        facts += [("recall asked for", percent(state.recall)), ("wrong with probability", risk)]
        facts.append(("started", state.created))
        word = "certified" if self.certified else "not certified" if self.done else "labels to come"
        line = f"recall {percent(state.recall)} of {state.kept + state.left:,} decisions: {word}"
        return Display(line, self._verdict(), facts, folded=[("What it rests on", [CONDITIONS])])


def describe_plan(kept: int, left: int, recall: float, sizes: Sequence[int], alpha: float) -> str:
    """What samples of these sizes can certify, before anybody labels."""
    recall, alpha = check.as_alpha(recall, "recall"), check.as_level(alpha)
    text = (
        f"{_sides(kept, left)} To certify a recall of {percent(recall)}, wrong with probability at most "
        f"{percent(alpha)} over the draw, at most so many of those drawn from the left out may be relevant, "
        f"if {percent(RELEVANT)} of those drawn from the kept are:"
    )
    level, target = check.as_fraction(alpha, "alpha"), check.as_fraction(recall, "recall")
    table = [f"{'sample':>8}{'of kept':>10}{'of left out':>13}{'relevant at most':>18}"]
    for sample in sizes:
        split = plan_split(kept, left, recall, sample, alpha)
        first = Sampled(kept, split.kept, round(RELEVANT * split.kept))

        def too_many(hits: int, first: Sampled = first, split: SampleSplit = split) -> bool:
            return kept_share(first, Sampled(left, split.left, hits), level) < target

        most = smallest(too_many, 0, split.left) - 1
        allowed = f"{most:,}" if most >= 0 else "too small"
        table.append(f"{split.kept + split.left:>8,}{split.kept:>10,}{split.left:>13,}{allowed:>18}")
    return "\n".join([filled([text]), "", *table])


def _sides(kept: int, left: int) -> str:
    return f"{counted(kept, 'row')} {'was' if kept == 1 else 'were'} kept and {left:,} left out."
