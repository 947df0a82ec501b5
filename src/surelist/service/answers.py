"""What is on record, as plain values for answers and templates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import structs
from pydantic import BaseModel
from starlette.responses import HTMLResponse

from surelist import _numerals as numerals
from surelist.promises.policy import Policy
from surelist.reports import report
from surelist.reports.evidence import Look
from surelist.reports.report import summarise
from surelist.service import models
from surelist.service.record.event import Entry, Event
from surelist.service.record.events import SelectionMade
from surelist.service.record.log import Written
from surelist.service.record.record import SavedPolicy

M = TypeVar("M", bound=BaseModel)


def receipt(made: Written[Any] | Entry[Any]) -> models.Receipt:
    entry, replayed = (made.entry, made.replayed) if isinstance(made, Written) else (made, False)
    return models.Receipt(seq=entry.seq, hash=entry.hash, at=entry.at, by=entry.actor, replayed=replayed)


def view_of(model: type[M], made: object, **more: object) -> M:
    """An answer with what a result has of it, arrays as lists, and ``more``."""
    known = {name: getattr(made, name) for name in model.model_fields if hasattr(made, name)}
    plain = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in known.items()}
    return model.model_validate({**plain, **more})


def with_receipt(answer: M, made: Written[Any]) -> M:
    """An answer that says where on record it is."""
    return answer.model_copy(update={"receipt": receipt(made)})


def entry_facts(entry: Entry[Event], *, hidden: bool) -> dict[str, object]:
    """What an entry says; of marks that are still hidden only how many there are: a hash can be guessed."""
    return {"reviews": entry.facts["reviews"]} if hidden else entry.facts


def entry(made: Entry[Event], *, hidden: bool) -> models.EntryView:
    """A line of the log."""
    return view_of(models.EntryView, made, details=entry_facts(made, hidden=hidden))


def policy(saved: SavedPolicy, candidates: int | None = None) -> models.PolicyView:
    """A policy; its promise as it stands beside a list of so many ``candidates``, or none."""
    made, looks = saved.policy, saved.saved.earlier_looks
    return models.PolicyView(
        hash=saved.hash, name=saved.name, note=saved.note, file=saved.saved.file,
        promise=saved.current.promise_of(candidates),
        two_lines=models.TwoLinesView(**structs.asdict(saved.current.two_lines_of(candidates))),
        conditions=[*made.conditions, *look_conditions(made, looks)], alpha=made.alpha, rule=made.rule,
        cutoffs=[
            view_of(models.CutoffView, each, **structs.asdict(each.steps[0])) for each in made.cutoffs
        ],
        score_column=(made.columns or {}).get("score"), scores=scores(made),
        warnings=[*made.warnings, *saved.saved.warnings], purpose=made.purpose,
        retired=saved.retired is not None, withdrawn=saved.why_withdrawn, earlier_looks=len(looks),
        receipt=receipt(saved.entry),
    )  # fmt: skip


def policy_file(saved: SavedPolicy, replayed: bool = False) -> models.PolicyFile:
    """A policy with its file; ``replayed`` where the request found it on record."""
    written, file = receipt(Written(saved.entry, replayed)), json.loads(saved.saved.policy)
    return view_of(models.PolicyFile, policy(saved), receipt=written, policy=file)


def scores(made: Policy) -> list[models.ScoresView]:
    """How the certified scores lie on the calibration rows."""
    known = [(each.group, each.scores) for each in made.cutoffs if each.scores is not None]
    return [view_of(models.ScoresView, each, group=group) for group, each in known]


def look_conditions(made: Policy, looks: Sequence[Look]) -> list[str]:
    """What was chosen when: sentences for the looks before this promise was fixed."""
    free = [look for look in looks if made.rule == look.asked.rule == "simultaneous"]
    same = [look for look in free if look.asked.alpha == made.alpha]
    others = [look for look in looks if look not in same]
    sentences = []
    if same:
        sentences.append(
            "It was chosen after looking at what these rows carry, with the same chance of error; that is "
            "covered."
        )
    if others:
        seen = "; ".join(_seen(look) for look in others[:5]) + ("; …" if len(others) > 5 else "")
        asked = "another question was" if len(others) == 1 else f"{len(others):,} other questions were"
        sentences.append(
            f"Before it was fixed, {asked} asked of its calibration rows ({seen}). If the promise was chosen "
            "because of an answer, its chance of error does not cover that."
        )
    return sentences


def _seen(look: Look) -> str:
    asked = "; ".join(look.asked.targets.values()) or "the curve"
    alpha = "" if "alpha" in asked else f", false at most {numerals.percent(look.asked.alpha)}"
    return f"{numerals.moment(look.at)}: {asked}{alpha}"


_AS_RECORDED = [each for each in models.SelectionView.model_fields if each in SelectionMade.__struct_fields__]
_OF_CHECKS = [*models.CheckView.model_fields]  # a gap is for pictures


def selection(made: Written[SelectionMade] | Entry[SelectionMade]) -> dict[str, object]:
    """A selection, as plain values that are quick to write."""
    entry = made.entry if isinstance(made, Written) else made
    known = {name: getattr(entry.event, name) for name in _AS_RECORDED}
    known["checks"] = [{name: getattr(each, name) for name in _OF_CHECKS} for each in entry.event.checks]
    return {"id": entry.subject, **known, "receipt": dict(receipt(made))}


def report_html(
    saved: SavedPolicy, entry: Entry[SelectionMade] | None = None, reviews: dict[str, bool] | None = None
) -> str:
    """The audit report, from the record alone."""
    steps: dict[str, Entry[Event] | None] = {
        "Policy saved": saved.entry, "Policy retired": saved.retired, "Promise withdrawn": saved.withdrawn,
        "Selection made": entry,
    }  # fmt: skip
    summary = summarise(
        saved.current,
        name=saved.name,
        policy_sha256=saved.hash,
        rows_sha256=saved.saved.rows_sha256,
        evidence=saved.saved.evidence,
        earlier_looks=saved.saved.earlier_looks,
        selection=entry.event if entry is not None else None,
        reviews=(len(reviews), sum(reviews.values())) if reviews else None,
        record=[
            {"what": what, "at": step.at, "by": step.actor, "receipt": step.receipt}
            for what, step in steps.items()
            if step is not None
        ],
    )
    return report.render(summary)


def report_page(
    saved: SavedPolicy, entry: Entry[SelectionMade] | None = None, reviews: dict[str, bool] | None = None
) -> HTMLResponse:
    """The answer as a page."""
    return HTMLResponse(report_html(saved, entry, reviews))
