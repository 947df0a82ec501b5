"""Calibrations, curves and evaluations of the API and the page: each is a look at the rows, and on record.

Before that a file is looked over: its columns, what was understood, what stands in the way.

Runs in worker threads, as all of ``jobs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from surelist._check import MissingLabels
from surelist.errors import NotCertifiable
from surelist.promises import policy_file
from surelist.promises.curve import GuaranteeCurve
from surelist.promises.kinds.this_list import ListCurve
from surelist.promises.sampled import NoisyLabels, SampledLabels
from surelist.promises.terms import Roles, Terms
from surelist.reports.evidence import Look, Question, RowsEvidence
from surelist.service.choices import ChosenColumns, ListCounts
from surelist.service.jobs import Problem, Profile, written
from surelist.service.record.events import PolicySaved
from surelist.service.record.record import SavedPolicy
from surelist.service.record.view import View
from surelist.service.runtime import Session
from surelist.service.uploads import Draft, KeptList, Upload
from surelist.service.workers import run
from surelist.workflows import files as looking, summaries as workflow_facts, tables as workflows
from surelist.workflows.source import LABELS, NO_HINTS, Hints, Source

T = TypeVar("T")
LENGTHS = 1000  # of a list, of which the page says how many are qualified
Column = workflows.Column
NO_LABEL = workflows.NO_LABEL


class CalibrationRequest(Struct, frozen=True):
    """A calibration as asked for: columns, targets, and how to certify them."""

    roles: Roles
    terms: Terms
    drawn: SampledLabels | NoisyLabels | None = None
    hints: Hints = NO_HINTS

    def question(self) -> Question:
        """For the record: what was asked of the rows."""
        terms, also = self.terms, "".join(f", and {each.describe()}" for each in self.terms.also)
        targets = {name or "everyone": each.describe() + also for name, each in terms.targets.items()}
        scores = list(self.roles.scores) if self.roles.other_score else []
        return Question(targets, terms.alpha, terms.rule, scores)


class Past(Struct, frozen=True):
    """Past candidates, and other candidates' scores where there are any."""

    upload: Upload
    others: Upload | None = None


def certify(
    me: Session, request: CalibrationRequest, past: Past, how: str, name: str = ""
) -> tuple[PolicySaved, str | None, float]:
    """One look at the rows, put on record when there is something to see; raises ``NotCertifiable``.

    A policy that may be saved, the salt that stays out of the log, and how long lists will be.
    A request that fails for another reason (a column that is not there) shows nothing: no look.
    """
    upload, others = past.upload, past.others
    rows, outcome = run(
        workflow_facts.certify, upload.source(request.hints), request.roles, request.terms,
        others.source(request.hints) if others else None, request.drawn,
    )  # fmt: skip
    looks = me.view.record_look(rows, upload.sha256, how, request.question())
    if isinstance(outcome, NotCertifiable):
        raise outcome
    saved = PolicySaved(
        name=name, policy=policy_file.dumps(outcome.policy), rows_sha256=upload.sha256,
        rows_fingerprint=rows[0], evidence=outcome.evidence, earlier_looks=looks,
        warnings=tuple(outcome.warnings), unlabelled_sha256=None if others is None else others.sha256,
    )  # fmt: skip
    return saved, policy_file.dump_salt(outcome.policy), outcome.share


def calibrate(me: Session, request: CalibrationRequest, past: Past, name: str) -> tuple[SavedPolicy, bool]:
    """Certify a promise and put the policy with its evidence on record, in one entry; or it was there."""
    view = me.view
    if (known := view.replayed()) is not None:
        return view.policy(known.subject), True
    saved, secret, _ = certify(me, request, past, "calibrate", name)
    written = view.save_policy(saved, secret).result()
    return view.policy(written.entry.subject), written.replayed


def evaluate(view: View, digest: str, upload: Upload, columns: Mapping[str, str | None]) -> dict[str, Any]:
    """How a policy did on labelled rows; whoever has seen that has looked at them."""
    policy = view.policy(digest).policy
    source = upload.source(Hints.of(policy.columns or {}, LABELS))
    found = run(workflows.evaluate_source, source, policy, columns)
    asked = {"everyone": f"how the policy {digest[:12]} did"}
    return _seen(view, upload, "evaluate", Question(asked, policy.alpha, policy.rule), found).to_dict()


def _seen(view: View, upload: Upload, how: str, question: Question, found: tuple[str | None, T]) -> T:
    """What was found of rows, once the look at them is on record."""
    rows, made = found
    view.record_look((rows,) if rows else (), upload.sha256, how, question)
    return made


def curve(
    view: View, upload: Upload, roles: Roles, options: Mapping[str, Any], hints: Hints = NO_HINTS
) -> GuaranteeCurve:
    """The guarantee curve of an upload, for choosing after looking."""
    found = run(workflow_facts.curve, upload.source(hints), roles, **options)
    return _seen(view, upload, "curve", Question({}, options["alpha"], options["rule"]), found)


def this_list(
    view: View, past: Past, roles: Roles, hints: Hints, *, best: Upload, score: str, alpha: float,
    best_hints: Hints = NO_HINTS, candidates: int | None = None,
) -> ListCurve:  # fmt: skip
    """How many of this very list are qualified, from labelled rows: of a pool's best, or of a whole pool."""
    found = run(
        workflow_facts.list_curve, past.upload.source(hints), roles,
        replace(best, name="the pool").source(best_hints), score, candidates, alpha,
    )  # fmt: skip
    question = Question({"everyone": "how many of one list are qualified"}, alpha, "simultaneous")
    return _seen(view, past.upload, "list", question, found)


def list_counts(
    view: View, saved: SavedPolicy, kept: KeptList, candidates: int, past: Past, roles: Roles
) -> ListCounts:
    """How many of a shortlist that is kept are qualified, at its lengths or, of many, at some of them."""
    known = saved.policy.columns or {}
    made = this_list(
        view, past, roles, Hints.of(known, LABELS), best=kept.upload, best_hints=kept.columns.hints,
        score=kept.columns.score or known.get("score", "score"), alpha=saved.policy.alpha,
        candidates=candidates,
    )  # fmt: skip
    points = list(zip(made.list_size.tolist(), made.at_least.tolist(), made.at_most.tolist(), strict=True))
    every = -(-len(points) // LENGTHS)
    return ListCounts(tuple(points[::-1][::every][::-1]), made.conditions, past.upload.name)


def explore(view: View, draft: Draft, columns: ChosenColumns, pool_size: float, alpha: float) -> RowsEvidence:
    """The simultaneous curve of a draft's rows as a report shows it. Another alpha is another look."""
    found = run(
        workflow_facts.evidence_at, *_past(draft, columns), pool_size=pool_size, alpha=alpha,
        rule="simultaneous", missing_labels=columns.missing_labels,
    )  # fmt: skip
    return _seen(view, draft.upload, "curve on the page", Question({}, alpha, "simultaneous"), found)


def looks(view: View, draft: Draft, columns: ChosenColumns) -> tuple[list[Look], tuple[float, float]]:
    """What was asked of a draft's rows before, whatever their name and order, and the range of scores."""
    values = columns.labels == "amounts"
    rows, span = run(workflow_facts.rows_at_a_glance, *_past(draft, columns), values=values)
    return view.looks(rows, draft.upload.sha256), span


def _past(draft: Draft, columns: ChosenColumns) -> tuple[Source, Roles]:
    return draft.upload.source(columns.hints), Roles(columns.score, columns.label)


# -- a file looked over before anything is decided; what columns hold is asked once, and waits in the draft


def profile(me: Session, draft: Draft) -> tuple[Draft, Profile]:
    """ChosenColumns, first rows and good guesses: what a person confirms. Asked of the file once."""
    if draft.profile is not None:
        return draft, draft.profile
    made = run(looking.profile, draft.upload.source())
    return me.spool.note(draft, profile=made), made


def problems(draft: Draft, columns: ChosenColumns) -> tuple[Problem, ...]:
    """What calibration would refuse or warn of, with the chosen columns."""
    source = draft.upload.source(columns.hints)
    if columns.labels == "amounts":
        return run(workflows.value_problems, source, columns.roles)
    return run(looking.problems, source, columns.roles, _missing_labels(columns))


def reading(draft: Draft, columns: ChosenColumns) -> tuple[str, ...]:
    """What was understood of the chosen columns, in sentences."""
    source = draft.upload.source(columns.hints)
    return run(looking.reading, source, str(columns.score), str(columns.label))


def problem_rows(me: Session, draft: Draft, columns: ChosenColumns) -> Path:
    """Every row that stands in the way, as a workbook of its own."""
    given = draft.upload.source(columns.hints), columns.roles, _missing_labels(columns)
    return written(me.spool, "xlsx", looking.write_problem_rows, *given)


def group_names(draft: Draft, group: str) -> dict[str, int]:
    """The groups of a table and how many rows each has."""
    return run(looking.group_names, draft.upload, group)


def _missing_labels(columns: ChosenColumns) -> MissingLabels:
    """Where labels were drawn, an empty one is no problem."""
    return "unqualified" if columns.labels == "drawn" else columns.missing_labels
