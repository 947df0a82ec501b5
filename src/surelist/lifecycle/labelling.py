"""Few labels: from a scored collection without a single label to a certified list.

``Labelling`` draws once which rows to label, takes the labels in any order, and certifies the list from
them. How it draws, tests and lists is its design's affair (``labelling_design``): of a block
(``labelling_block``), for a recall (``labelling_recall``), for a precision (``labelling_precision``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._arrays import Ints, Mask
from surelist._randomness import fresh_generator
from surelist._version import __version__
from surelist.drawing import Display, axes
from surelist.errors import InvalidInput, NotCertifiable
from surelist.filters import ACCEPT, LOOK, REJECT
from surelist.lifecycle import labelling_design as base, labelling_start as given
from surelist.lifecycle.labelling_state import DESIGNS, LabellingState
from surelist.lifecycle.state import Saved
from surelist.promises.policy import Policy
from surelist.promises.promise import Promise
from surelist.promises.terms import require_purpose


class Labelling(Saved[LabellingState]):
    """Asks for the labels of chosen candidates and certifies a list from them.

    Parameters
    ----------
    scores
        Scores of all candidates of the collection; higher is better. None where ``judge`` makes them.
    target
        ``Expected`` or ``PerPool`` for future pools like the collection; ``AtLeast(k)``, ``Recall(share)``,
        ``Precision(share)`` or ``Triage(accept, reject_recall=...)`` for the collection itself. With
        ``groups``, one target for all or a mapping of group to target.
    alpha
        The chance of a false promise is at most this; groups share it evenly.
    labels
        How many candidates can be labelled in all; groups share them evenly.
    ids, groups
        One per candidate. Ids must be unique.
    judge
        Instead of scores, what a model said of every candidate: yes or no, or numbers. They are scores by
        ``judge_scores`` (equal verdicts in an order fixed by a hash of ``ids``), which ``select`` and
        ``triage`` are given again. People's labels alone are what is promised about.
    pilot, fallback, aside, block
        The design: share of the labels for the pilot, share of alpha for the pilot's own block, share of the
        collection set aside for the pilot (future pools only), or a fixed ``block`` and no pilot.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 20_000)
    >>> work = sl.Labelling(scores, sl.Expected(5, 100), labels=300)
    >>> while len(rows := work.ask()):  # which rows to label now
    ...     new = work.tell(rows, labels[rows])  # what a person answers
    >>> work.policy.promise.split(";")[0]
    'The shortlist holds at least 5 qualified candidates on average over pools of 100 candidates'
    """

    _shape = LabellingState

    def __init__(
        self,
        scores: Any,
        target: Promise | Mapping[Any, Promise],
        *,
        alpha: float = 0.1,
        labels: int,
        ids: Any = None,
        groups: Any = None,
        purpose: str | None = None,
        pilot: float = 0.25,
        fallback: float = 0.15,
        aside: float = 0.1,
        block: int | None = None,
        judge: Any = None,
    ) -> None:
        if (scores is None) == (judge is None):
            raise InvalidInput("scores", "give scores, or None and judge=, what a model said of everyone.")
        if judge is not None:
            check.require_one_index(judge=judge, ids=ids, groups=groups)
            scores = given.judge_scores(judge, ids)
        collection = given.ArrayCollection(scores, ids, groups)
        design: dict[str, Any] = {"pilot": pilot, "fallback": fallback, "aside": aside, "block": block}
        self._begin(collection, target, alpha=alpha, labels=labels, purpose=purpose, **design)

    @classmethod
    def of(cls, collection: base.ScoredCollection, target: Any, **given: Any) -> Labelling:
        """A labelling of a collection that lives elsewhere, such as a table."""
        work = cls.__new__(cls)
        work._begin(collection, target, **given)
        return work

    def _begin(
        self, collection: base.ScoredCollection, target: Any, *, alpha: float, labels: int,
        purpose: str | None = None, columns: dict[str, str] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        alpha, labels = check.as_level(alpha, calls=2), check.as_count(labels, "labels")
        sizes = collection.sizes
        require_purpose(purpose, groups_given=None not in sizes, level=4)
        targets = given.as_targets(target, list(sizes))
        for name in ("pilot", "fallback", "aside"):
            check.as_share(options.get(name, 0), name)
        if labels < len(sizes):
            raise InvalidInput("labels", expected=f"at least {len(sizes)}, one per group", got=f"{labels}")
        rng = fresh_generator()  # what it gives is recorded
        designs = []
        for number, (group, size) in enumerate(sizes.items()):
            share = min(labels // len(sizes) + (number < labels % len(sizes)), size)
            asked = base.LabelRequest(collection, group, targets[group], alpha / len(sizes), share, options)
            designs.append(DESIGNS[asked.target.sample or "block"].start(asked, rng))
        self._resume(
            LabellingState(alpha=alpha, labels=labels, purpose=purpose, columns=columns, designs=designs)
        )

    def _resume(self, state: LabellingState) -> None:
        super()._resume(state)
        self._where: dict[int, tuple[base.Design, int]] = {
            row: (design, at) for design in state.designs for at, row in enumerate(design.sample.rows)
        }

    @property
    def alpha(self) -> float:
        return self._state.alpha

    @property
    def columns(self) -> dict[str, str] | None:
        """Names of the table's columns by role, where the collection is a table."""
        return self._state.columns

    @property
    def done(self) -> bool:
        """Whether every label that was asked for has come, or is known not to come."""
        return len(self.ask()) == 0

    def ask(self, count: int | None = None) -> Ints:
        """Row numbers to label now: the stage at hand, best score first, or the first ``count`` of it.

        Asking again returns the same rows until their labels have come.
        """
        rows = [design.sample.rows[at] for design in self._state.designs for at in design.waiting]
        return np.array(rows[: None if count is None else check.as_count(count, "count")], dtype=np.int64)

    def ids(self, rows: object) -> list[str]:
        """The candidate ids of drawn rows."""
        named = []
        for row in given.as_rows(rows):
            design, at = self._drawn(row)
            if design.sample.ids is None:
                raise InvalidInput("ids", "the labelling was started without ids.")
            named.append(design.sample.ids[at])
        return named

    def score(self, row: int) -> float:
        """The score of a drawn row."""
        design, at = self._drawn(row)
        return design.sample.scores[at]

    @property
    def named(self) -> tuple[list[int], list[int]]:
        """Rows that are on the list whatever their score, and rows that are not, all labels being here."""
        self.see()
        both: tuple[list[int], list[int]] = ([], [])
        for design in self._state.designs:
            for rows, places in zip(both, design.named(), strict=True):
                rows.extend(design.sample.rows[at] for at in places)
        return both

    def tell(self, rows: object, labels: object) -> int:
        """Take in labels: 1 qualified, 0 not, missing (None or NaN): it will not come. Returns the new ones.

        Rows in any order and in parts. A label that contradicts an earlier one is an error. A missing
        label counts as not qualified; for ``Recall``, which needs every label, it is an error.
        """
        numbers = given.as_rows(rows)
        marks = given.marks_of(labels, len(numbers))
        designs = self._state.designs
        at_hand = {each.sample.rows[at] for each in designs for at in each.stages[-1].asked}
        new: dict[int, str] = {}
        for row, mark in zip(numbers, marks, strict=True):
            design, at = self._drawn(row)
            known = new.get(row, design.sample.labels[at])
            if known == mark:
                continue
            if known != base.WAITING:
                raise InvalidInput(
                    "labels",
                    f"row {row} was {given.spelled(known)} before and is {given.spelled(mark)} now. The "
                    "first stays; correct() replaces it while nothing rests on it. After that only a fresh "
                    "draw helps.",
                )
            if row not in at_hand:
                raise InvalidInput("rows", f"row {row} is not among those asked for; ask() says which are.")
            if mark == base.MISSING and design.every_label:
                raise InvalidInput(
                    "labels",
                    f"row {row} has no label. A recall needs the label of every row drawn: counting it as "
                    "not qualified would make the promise false.",
                )
            new[row] = mark
        for row, mark in new.items():
            design, at = self._where[row]
            design.sample.set_label(at, mark)
        for design in designs:
            design.advance()
        return len(new)

    def correct(self, rows: object, labels: object) -> int:
        """Correct labels that were told, on record, while nothing rests on them; returns how many changed.

        Those of a pilot, a look or a part of a sample until a label of the next stage has come, those of the
        last stage until the result was shown (``policy``, ``describe`` and displays of a finished labelling),
        those of any other until the next stage is asked for. After that a fresh draw is the way.
        """
        return self._state.correct(self._where, given.as_rows(rows), labels)

    @property
    def told(self) -> dict[int, int | None]:
        """The label of every row whose label has come; None: it will not."""
        marks = {row: design.sample.labels[at] for row, (design, at) in self._where.items()}
        labels = {"0": 0, "1": 1, base.MISSING: None}
        return {row: labels[mark] for row, mark in marks.items() if mark in labels}

    def close(self) -> int:
        """Stop waiting for this stage's labels that have not come; returns how many. Not for ``Recall``."""
        rows = self.ask()
        return self.tell(rows, [None] * len(rows)) if len(rows) else 0

    @property
    def policy(self) -> Policy:
        """The certified policy; ``NotCertifiable`` with the way out where the labels do not suffice."""
        waiting = len(self.ask())
        if waiting:
            raise InvalidInput(
                "policy",
                f"{waiting:,} labels are still to come in this stage; ask() says which. A promise made "
                "before would be another look.",
            )
        self.see()
        cutoffs = tuple(design.cutoff() for design in self._state.designs)
        grouped, named = cutoffs[0].group is not None, self.columns
        kept = named and {role: named[role] for role in ("score", "group", "id") if role in named}
        return Policy(
            cutoffs, alpha=self.alpha, rule="exact", created=self._state.created, version=__version__,
            purpose=self._state.purpose, group_split="bonferroni" if grouped else None,
            group_rows="own" if grouped else None, columns=kept,
        )  # fmt: skip

    def select(self, scores: object, groups: object = None) -> Mask:
        """True for everyone on the list of this very collection, given its scores again.

        For ``Recall`` and ``Precision`` that is everyone at or above the threshold but those labelled not
        qualified, and some more by name; the policy alone selects by threshold.
        """
        mask = self.policy.select(scores, groups=groups)
        if len(mask) != sum(design.size for design in self._state.designs):
            raise InvalidInput("scores", expected="those of the collection", got=f"{len(mask):,} values")
        for design in self._state.designs:
            rows = np.array(design.sample.rows, dtype=np.int64)
            if not np.array_equal(check.as_scores(scores)[rows], np.array(design.sample.scores)):
                raise InvalidInput("scores", "expected those of the collection, in its order; they differ.")
        on, off = self.named
        mask[on], mask[off] = True, False
        if int(mask.sum()) != self.listed:
            raise InvalidInput("scores", "expected those of the collection, in its order; they differ.")
        return mask

    def triage(self, scores: object, groups: object = None) -> NDArray[np.str_]:
        """For every candidate of this collection "accept", "look" or "reject"; of a ``Triage`` only."""
        if not self.policy.three_ways:
            raise InvalidInput("target", "it makes one list; start a labelling with Triage for three.")
        parts = np.where(self.select(scores, groups), ACCEPT, REJECT)
        parts[self.looks] = LOOK
        return parts

    @property
    def looks(self) -> list[int]:
        """Of a triage, the rows that neither promise decides."""
        return [design.sample.rows[at] for design in self._state.designs for at in design.looks()]

    @property
    def most_looks(self) -> int | None:
        """Of a triage whose labels are all here, how many looks are left at most, if people go on."""
        left = [design.most_looks for design in self._state.designs if design.waiting]
        return sum(filter(None, left)) if left and None not in left else None

    def describe(self) -> str:
        """The design, what has come so far, and what is to be done."""
        lines = self._state.describe()
        try:
            lines += ["", self.policy.describe()] if self.done else []
        except NotCertifiable as error:
            lines += ["", str(error)]
        return "\n".join(lines)

    @property
    def stages(self) -> list[tuple[str | None, str, int, int, int]]:
        """Stage by stage: group, name, how many labels have come, of how many, and how many are qualified."""
        stages = ((design, stage) for design in self._state.designs for stage in design.stages)
        return [(design.group, stage.name, *design.counts(stage)) for design, stage in stages]

    @property
    def certified(self) -> bool:
        """Whether all labels are here and suffice for every promise."""
        verdicts = self._verdicts()
        return bool(verdicts) and all(each.refusal is None for each in verdicts)

    @property
    def listed(self) -> int | None:
        """How many of the collection are on the list; None while nothing is certified."""
        counts = [verdict.listed for verdict in self._verdicts()]
        return sum(filter(None, counts)) if counts and None not in counts else None

    def _display(self) -> Display:
        return self._state.display(self.describe(), self.listed)

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """Labels by rank, and the threshold where there is one (needs the ``plots`` extra)."""
        ends = [verdict.listed for verdict in self._verdicts() if verdict.listed is not None]
        drawn = [(each.sample.ranks[at] + 1, each.sample.labels[at]) for each, at in self._where.values()]
        answers = [(rank, mark == "1") for rank, mark in drawn if mark in "01"]
        return axes.picture(ax, path, axes.draw_labels, answers, ends)

    @property
    def drawn(self) -> list[int]:
        """All rows that were drawn, asked for or not."""
        return list(self._where)

    @property
    def marks(self) -> str:
        """One sign for each drawn row, in their order: 0, 1, ? (to come) or - (will not come)."""
        return "".join(design.sample.labels for design in self._state.designs)

    @property
    def needs_all(self) -> bool:
        """Whether every label that is asked for has to come."""
        return any(design.every_label for design in self._state.designs)

    @property
    def seen(self) -> bool:
        """Whether the result was shown: from then on no label is corrected."""
        return self._state.seen

    def see(self) -> None:
        """The result is about to be shown, where all labels are here."""
        self._state.seen |= self.done

    def _verdicts(self) -> list[base.Finding]:
        self.see()
        return [design.verdict() for design in self._state.designs] if self.done else []

    def _drawn(self, row: int) -> tuple[base.Design, int]:
        if row not in self._where:
            raise InvalidInput("rows", f"row {row} was not drawn for labelling; ask() says which rows were.")
        return self._where[row]
