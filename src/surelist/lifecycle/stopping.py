"""When to stop a review: a test of what was not reviewed, after any review whatever.

``StopTest`` draws items from the rest at random and certifies a recall [theory: stop-test]. The review
before it may have depended on everything, active learning included: the test is conditional on the rest.
Sizes of the looks are in ``bounds.stop_sample``.
"""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from msgspec import field

from surelist import _check as check
from surelist._arrays import Ints
from surelist._files import Chance, Count, hold
from surelist._randomness import fresh_generator
from surelist.bounds.stop_sample import RestLooks, certified_by, most_left, rest_looks
from surelist.drawing import Display, axes
from surelist.errors import InvalidInput
from surelist.lifecycle.labelling_start import as_rows, marks_of
from surelist.lifecycle.state import Correction, Positive, Saved, State, verify_corrections
from surelist.promises.phrases import counted, percent, percent_down

WAITING = "?"  # the sign of a label that is to come
LOOKS = 10
MOST_LOOKS = 100


class DrawnState(State, kw_only=True, forbid_unknown_fields=True):
    """What tests by a random draw know of it: rows in the order of drawing, and a sign for each label.

    ``labels``: 0, 1, - (missing) or what a test says beside these.
    """

    recall: Chance
    alpha: Chance
    table: str | None  # where the rows are, if they are a table
    order: list[int]
    labels: str
    corrected: list[Correction] = field(default_factory=list)


Drawn = TypeVar("Drawn", bound=DrawnState)


class DrawnTest(Saved[Drawn]):
    """A recall tested by labels of a random draw."""

    @property
    def table(self) -> str | None:
        """Where the rows are, if they are a table."""
        return self._state.table

    @property
    def told(self) -> dict[int, int | None]:
        """The label of every row whose label has come, in the order of drawing; None: missing."""
        marks = zip(self._state.order, self._state.labels, strict=False)
        return {row: None if mark == "-" else int(mark == "1") for row, mark in marks if mark != WAITING}

    def describe(self) -> str:
        """What was drawn, what came of it, and what it rests on."""
        return filled(self._said())

    def _said(self) -> list[str]:
        raise NotImplementedError


def filled(paragraphs: list[str]) -> str:
    """Paragraphs for a terminal."""
    return "\n".join(textwrap.fill(each, 100) for each in paragraphs)


class StopState(DrawnState, kw_only=True, forbid_unknown_fields=True):
    """All that a stop test knows, in the order of its file.

    ``labels``: 0, 1, - (missing: a hit) or x (not relevant, and taken back after its look: a hit still).
    """

    kind: Literal["surelist stop test"] = "surelist stop test"
    found: Count
    rest: Positive
    looks: Positive

    def plan(self) -> RestLooks:
        return _plan(self.found, self.rest, self.recall, self.alpha, self.looks)

    def verify(self) -> None:
        order, labels = self.order, self.labels
        hold(len(set(order)) == len(order) == self.plan().sizes[-1], "its draw has another size")
        inside = min(order, default=0) >= 0 and max(order, default=0) < self.rest
        hold(inside, "an item is none of the rest")
        hold(set(labels) <= set("01-x") and len(labels) <= len(order), "its labels are impossible")
        verify_corrections(self.corrected, set(order[: len(labels)]))


class StopTest(DrawnTest[StopState]):
    """May the review stop? Draws from the rest, look by look, until the recall is certified.

    Parameters
    ----------
    found
        Relevant items that the review has found.
    rest
        Items that it has not reviewed; they are numbered 0 to rest-1.
    recall
        The share of all relevant items to be certified.
    alpha
        The chance of a false certificate is at most this, whatever the review did before.
    looks
        The most looks to plan. More looks cost little; the level is solved over all of them.
    table
        A path to remember: where the rest is.

    Examples
    --------
    >>> import surelist as sl
    >>> stop = sl.StopTest(found=195, rest=8_000, recall=0.95, alpha=0.05)
    >>> rows = stop.ask()
    >>> len(rows)
    2133
    >>> stop.tell([0] * len(rows))
    >>> stop.certified
    True
    """

    _shape = StopState

    def __init__(
        self, found: int, rest: int, recall: float, *, alpha: float = 0.05, looks: int = LOOKS,
        table: str | None = None,
    ) -> None:  # fmt: skip
        found, rest = check.as_count(found, "found", least=0), check.as_count(rest, "rest")
        looks = check.as_count(looks, "looks")
        plan = _plan(found, rest, check.as_alpha(recall, "recall"), check.as_level(alpha), looks)
        rng = fresh_generator()  # what it gives is recorded
        order = rng.permutation(rng.choice(rest, plan.sizes[-1], replace=False)).tolist()
        self._resume(StopState(
            found=found, rest=rest, recall=float(recall), alpha=float(alpha), looks=looks,
            table=table, order=order, labels="",
        ))  # fmt: skip

    def _resume(self, state: StopState) -> None:
        super()._resume(state)
        self._plan = state.plan()
        certified = self._certified_at
        ended = certified is None or self.drawn == self.sizes[certified]
        hold(ended, "labels came after the test had ended")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Items drawn in all at each look; look x certifies with at most x hits."""
        return self._plan.sizes

    @property
    def level(self) -> float:
        """The chance of a false certificate at the worst number of relevant items left."""
        return self._plan.level

    @property
    def drawn(self) -> int:
        """Items whose labels have come."""
        return len(self._state.labels)

    @property
    def hits(self) -> int:
        """Relevant items among those drawn; a missing label counts as one."""
        return len(self._state.labels) - self._state.labels.count("0")

    @property
    def certified(self) -> bool:
        """Whether the recall is certified; it stays so unless a label behind it is corrected."""
        return self._certified_at is not None

    @property
    def lost(self) -> bool:
        """Whether more hits were drawn than the last look allows: the recall asked for is out of reach."""
        return self.hits >= len(self.sizes) and self.sizes[-1] < self._state.rest

    @property
    def over(self) -> bool:
        """Whether nothing more is to be drawn."""
        return self.certified or self.lost

    @property
    def order(self) -> tuple[int, ...]:
        """Items in the order of drawing, up to the last look."""
        return tuple(self._state.order)

    @property
    def _certified_at(self) -> int | None:
        labels = self._state.labels
        for look, size in enumerate(self.sizes):
            if size > len(labels):
                return None
            if size == self._state.rest or size - labels[:size].count("0") <= look:
                return look
        return None

    def ask(self, count: int | None = None) -> Ints:
        """Items of the rest to label now, in this order: up to the next look, or the first ``count`` of them.

        The next look is the next that can still be passed. Asking again returns the same items until their
        labels have come.
        """
        if self.over:
            return np.zeros(0, dtype=np.int64)
        end = self.sizes[self._next_look]
        if count is not None:
            end = min(end, self.drawn + check.as_count(count, "count"))
        return np.array(self._state.order[self.drawn : end], dtype=np.int64)

    @property
    def _next_look(self) -> int:
        """The next look that can still be passed; drawing the whole rest always can."""
        coming = ((look, size) for look, size in enumerate(self.sizes) if size > self.drawn)
        return next(look for look, size in coming if look >= self.hits or size == self._state.rest)

    def tell(self, labels: object) -> None:
        """Take in labels in the order of ``ask``; a missing one (None or NaN) counts as relevant."""
        marks = marks_of(labels, None)
        due = len(self.ask())
        if self.lost:  # labels that were made before that was known count as found
            due = self.sizes[-1] - self.drawn
        if len(marks) > due:
            raise InvalidInput(
                "labels", expected=f"at most the {due:,} that ask() names", got=f"{len(marks):,}"
            )
        self._state.labels += "".join(marks)

    def correct(self, items: Any, labels: Any) -> None:
        """Correct labels that were told, on record.

        Before its look a correction simply replaces the label. After its look a label can become relevant,
        which may withdraw a certificate; one that is not relevant after all stays a hit of that look, and is
        no longer counted as found [theory: stop-test].
        """
        numbers = as_rows(items, "items")
        marks = marks_of(labels, len(numbers))
        if len(set(numbers)) < len(numbers):
            raise InvalidInput("items", "an item is given twice; give each item once.")
        place = {item: at for at, item in enumerate(self._state.order[: self.drawn])}
        for item in numbers:
            if item not in place:
                raise InvalidInput("items", f"item {item!r} has no label yet; there is none to correct.")
        looked = max((size for size in self.sizes if size <= self.drawn), default=0)
        kept = list(self._state.labels)
        for item, mark in zip(numbers, marks, strict=True):
            at = place[item]
            was = kept[at].replace("x", "0")
            if was != mark:
                self._state.corrected.append(Correction(item, was, mark, self.drawn))
                kept[at] = "x" if mark == "0" and at < looked else mark
        self._state.labels = "".join(kept)

    @property
    def recall_now(self) -> float:
        """The recall certified by the looks so far, all of them together at alpha: a statement of its own.

        Of what is known to be relevant. A look at j items with h hits rules out every number left that would
        give so few hits with probability at most alpha divided by the number of looks planned; a missing
        label is a hit there, and is not found. A test that is lost has its last look at the hit that lost it.
        """
        state, level = self._state, self._state.alpha / len(self.sizes)
        known = state.labels.count("1")
        left = [state.rest - state.labels.count("0") - state.labels.count("x")]  # whatever else was drawn
        for drawn, hits in self._looked_at():
            left.append(most_left(state.rest, drawn, hits, level))
        whole = state.found + min(most for most in left if most >= known)
        return (state.found + known) / whole if whole else 1.0

    def _looked_at(self) -> list[tuple[int, int]]:
        """Items drawn and hits at each look so far."""
        labels, last = self._state.labels, self.sizes[-1]
        looks = [(size, size - labels[:size].count("0")) for size in self.sizes[:-1] if size <= self.drawn]
        if self.lost:
            hits = [at for at, mark in enumerate(labels) if mark != "0"]
            return [*looks, (hits[len(self.sizes) - 1], len(self.sizes) - 1)]
        return [*looks, (last, self.hits)] if self.drawn == last else looks

    def _said(self) -> list[str]:
        state = self._state
        return [
            f"Recall {percent(state.recall)}, wrong with probability at most {percent(state.alpha)} over our "
            f"own draw; {state.found:,} relevant found, {counted(state.rest, 'item')} not reviewed, "
            f"{self.drawn:,} of them drawn with {counted(self.hits, 'hit')}.",
            self._verdict(),
            *self._corrections(),
            "Nothing is assumed about the review before or about the items: only that the labels are right, "
            "that every item not reviewed is in the rest, and that the draw is not repeated.",
        ]

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """Hits by items drawn, and how many each look allows (needs the ``plots`` extra)."""
        hits = [0, *np.cumsum([mark != "0" for mark in self._state.labels]).tolist()]
        title = f"Recall {percent(self._state.recall)}: {self._state_word()}"
        return axes.picture(ax, path, axes.draw_looks, hits, self.sizes, title)

    def _display(self) -> Display:
        state = self._state
        facts = [
            ("relevant found", f"{state.found:,}"),
            ("not reviewed", f"{state.rest:,}"),
            ("drawn", f"{self.drawn:,} with {counted(self.hits, 'hit')}"),
            ("looks", ", ".join(f"{size:,}" for size in self.sizes)),
            ("wrong with probability", f"at most {percent(state.alpha)}, over our own draw"),
        ]
        line = f"recall {percent(state.recall)}, {self.drawn:,} drawn, {counted(self.hits, 'hit')}: "
        full = " ".join(self.describe().split())
        return Display(line + self._state_word(), self._verdict(), facts, folded=[("In full", [full])])

    def _state_word(self) -> str:
        return "certified" if self.certified else "lost" if self.lost else "go on"

    def _verdict(self) -> str:
        state = self._state
        if self.certified:
            missing = counted(state.labels.count("-"), "item")
            kept = f", with {missing} kept whose label is missing," * ("-" in state.labels)
            return (
                f"Certified: what the review found and the hits of this draw{kept} hold at least "
                f"{percent(state.recall)} of all relevant items. Stop."
            )
        if self.lost:
            found = state.found + state.labels.count("1")
            return (
                f"Lost: {counted(self.hits, 'hit')}, and the last look allows {len(self.sizes) - 1:,}, so no "
                f"further label can certify {percent(state.recall)}. Found in all: "
                f"{counted(found, 'relevant item')}.{self._recall()} "
                "Review more, by any method, and the rest of that can be tested again with alpha of its own."
            )
        look = self._next_look
        more = counted(self.sizes[look] - self.drawn, "more item")
        now = self._recall() if self.drawn >= self.sizes[0] else ""
        if self.sizes[look] == state.rest:
            return f"Go on: label {more}, all that are left; then everything is reviewed.{now}"
        return f"Go on: label {more}; certified then with at most {counted(look, 'hit')} in all.{now}"

    def _recall(self) -> str:
        return f" Certified now: a recall of {percent_down(self.recall_now)}."

    def _corrections(self) -> list[str]:
        """What was corrected, in the order of the record; the first few by name."""
        made = self._state.corrected
        if not made:
            return []
        words = {"0": "not relevant", "1": "relevant", "-": "missing"}
        named = [f"item {each.row} from {words[each.was]} to {words[each.now]}" for each in made[:5]]
        named += [f"{len(made) - 5:,} more"] if len(made) > 5 else []
        return [
            f"{counted(len(made), 'label')} corrected, on record: {', '.join(named)}. A label "
            "that is not relevant after all stays a hit of the looks it was counted in."
        ]


def plan_stop(found: int, rest: int, recall: float, *, alpha: float = 0.05, looks: int = LOOKS) -> str:
    """The looks that would be planned, and how likely each is to be the last, before anything is drawn."""
    plan = _plan(found, rest, check.as_alpha(recall, "recall"), check.as_level(alpha), looks)
    half = (1 + recall) / 2
    cases = [left for left in sorted({0, math.floor(found * (1 - half) / half)}) if left <= rest]
    chances = [certified_by(rest, left, plan.sizes) for left in cases]
    heads = "".join(f"{f'if {left:,} left':>16}" for left in cases)
    lines = [
        f"Recall {percent(recall)}, wrong with probability at most {percent(alpha)} over the draw; "
        f"{found:,} relevant found, {counted(rest, 'item')} not reviewed.",
        "Chance to be certified by each look, if so many relevant items are left:",
    ]
    table = [f"{'items drawn':>12}{'hits at most':>14}{heads}"]
    for look, size in enumerate(plan.sizes):
        reached = "".join(f"{f'{100 * each[look]:.0f}%':>16}" for each in chances)
        table.append(f"{size:>12,}{look:>14,}{reached}")
    return "\n".join([filled(lines), *table])


def _plan(found: int, rest: int, recall: float, alpha: float, looks: int) -> RestLooks:
    looks, rest = check.as_count(looks, "looks"), check.as_count(rest, "rest")
    found = check.as_count(found, "found", least=0)
    if looks > MOST_LOOKS:
        raise InvalidInput("looks", expected=f"at most {MOST_LOOKS:,} looks", got=f"{looks:,}")
    return rest_looks(found, rest, check.as_fraction(recall, "recall"), alpha, looks)
