"""What the pages of a labelling do: start the draw, lay out a stage for answering, count its answers, save.

The draw and every answer that counts are entries of the log: row numbers and labels, no candidate. The
candidates themselves wait in the spool for as long as was chosen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surelist.errors import InvalidInput
from surelist.promises.targets import AtLeast, Expected, Recall
from surelist.service import reviewing, worklist
from surelist.service.errors import NotFound
from surelist.service.jobs import escaped, named, new_id
from surelist.service.promise_form import number_in, share_in
from surelist.service.record.chain import Entry
from surelist.service.record.log import Key, Written
from surelist.service.record.view import View
from surelist.service.runtime import Runtime
from surelist.service.uploads import Draft, Upload, list_of
from surelist.service.workers import run
from surelist.service.worklist import Worklist
from surelist.workflows import facts as workflow_facts
from surelist.workflows import labelling_record
from surelist.workflows.labelling_record import ROW, LabellingStatus

_LAYING_OUT = threading.Lock()  # one list per stage, whoever asks for it first
DEFAULTS: dict[str, Any] = {
    "score": None, "id": None, "promise": "expected", "k": "5", "pool_size": "100", "many": "100",
    "share": "90", "alpha": "10", "labels": "300", "name": "", "keep": "", "group": None, "purpose": "",
}  # fmt: skip


def asked_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """The design as a person typed it."""
    return {name: str(form.get(name) or "") for name in DEFAULTS}


def _target(asked: Mapping[str, str]) -> Any:
    if asked["promise"] == "expected":
        k = number_in(asked["k"], "k", "how many qualified you need")
        return Expected(k, number_in(asked["pool_size"], "pool_size", "the pool size"))
    if asked["promise"] == "at-least":
        return AtLeast(_whole(asked["many"], "how many qualified you need"))
    if asked["promise"] == "recall":
        return Recall(share_in(asked["share"], "share", "the share to keep"))
    raise InvalidInput("promise: choose what is to be promised.")


def _whole(text: str, what: str) -> int:
    value = number_in(text, "many", what)
    if value != int(value):
        raise InvalidInput(f"{what}: expected a whole number, got {text[:40]!r}.")
    return int(value)


def start(runtime: Runtime, view: View, draft: Draft, seconds: int, key: Key | None = None) -> str:
    """Draw the candidates to label, put the draw on record, and lay out the first stage."""
    made = view.once(key, lambda: _start(runtime, view, draft, seconds, key))
    if made.replayed:  # a second draw would be a choice between two
        runtime.spool.drop_draft(draft)
    return made.entry.subject


def _start(runtime: Runtime, view: View, draft: Draft, seconds: int, key: Key | None) -> Written:
    asked = draft.notes["asked"]
    if not asked["score"]:
        raise InvalidInput("score: choose the column that holds the score.")
    target, alpha = _target(asked), share_in(asked["alpha"], "alpha", "how often it may be false")
    labels = _whole(asked["labels"], "how many candidates can be labelled")
    group = asked["group"] or None
    if group and not asked["purpose"].strip():
        raise InvalidInput("purpose: say why groups are treated differently; it goes on record.")
    with named(draft.upload, draft.filename):
        state, sizes = run(
            labelling_record.begin,
            draft.upload.path,
            target,
            labels=labels,
            alpha=alpha,
            score=asked["score"],
            group=group,
            purpose=asked["purpose"].strip()[:2000] or None,
        )
    ident = new_id()
    facts = {
        "name": asked["name"].strip()[:200] or draft.filename.rsplit(".", 1)[0], "file": draft.filename,
        "collection_sha256": draft.upload.sha256, "candidates": sum(sizes.values()), "shortlisted": labels,
        "groups": {name: [size, 0] for name, size in sizes.items() if name is not None},
        "target": target.describe() + (f", in each group of {group}" if group else ""), "alpha": alpha,
        "labels": labels, "state": state,
        "kept_until": reviewing.until(time.time() + seconds),
    }  # fmt: skip
    columns: dict[str, str | None] = {"score": asked["score"], "id": asked["id"] or ROW, "group": ROW}
    upload = _laid_out(runtime, state, [], draft.upload.path, columns)  # ids that repeat are refused now
    keep_stage(runtime, ident, upload, 0, seconds, columns)
    runtime.spool.keep_collection(ident, draft, seconds, columns)  # before the draw counts: it needs them
    try:
        made = view.start_labelling(ident, facts, key).result()
    except BaseException:
        runtime.spool.give_back(ident, draft)
        raise
    if made.replayed:  # sent twice at once; the other draw counts
        runtime.spool.drop(ident)
    return made


def status(view: View, ident: str) -> LabellingStatus:
    """What to label now, or what can be promised: from the record alone."""
    return run(labelling_record.status, view.labelling(ident).facts["state"], view.told(ident))


def _laid_out(
    runtime: Runtime, state: str, told: list[dict[str, Any]], path: Path, columns: Mapping[str, str | None]
) -> Upload | None:
    """The rows of the stage at hand as a list to be answered."""
    output = runtime.spool.new_path("csv")
    try:
        if not run(labelling_record.write_stage, state, told, path, output):
            return None
        upload = Upload(output, output.stat().st_size, workflow_facts.sha256_of(output), "csv")
        run(worklist.build, output, list_of(upload), columns)
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    return upload


def keep_stage(
    runtime: Runtime, ident: str, upload: Upload | None, stages: int, seconds: int,
    columns: Mapping[str, str | None],
) -> None:  # fmt: skip
    """Keep the list that is answered after so many stages; none where nothing is left to answer."""
    if upload is not None:
        runtime.spool.keep_result(ident, upload, seconds, {**columns, "stages": str(stages)})


def stage_at_hand(runtime: Runtime, view: View, ident: str, now: LabellingStatus) -> Draft | None:
    """The list to be answered now, as long as the collection is kept.

    Laid out here where the service ended between an answer and what follows from it.
    """
    with _LAYING_OUT:
        kept = runtime.spool.result(ident)
        known = None if kept is None else kept.notes.get("stages")
        told = view.told(ident)
        if now.waiting and (kept is None or known not in (None, str(len(told)))):
            _next_stage(runtime, view, ident, told)
    return runtime.spool.result(ident)


def _next_stage(runtime: Runtime, view: View, ident: str, told: list[dict[str, Any]]) -> None:
    """Lay out what is to be answered now, in the place of what was answered before."""
    kept, before = runtime.spool.collection(ident), runtime.spool.result(ident)
    upload, columns = None, {} if kept is None else dict(kept.notes)
    if kept is not None:
        state = view.labelling(ident).facts["state"]
        try:
            upload = _laid_out(runtime, state, told, kept.upload.path, columns)
        except InvalidInput:  # ids that repeat among these rows
            columns["id"] = ROW
            upload = _laid_out(runtime, state, told, kept.upload.path, columns)
        keep_stage(runtime, ident, upload, len(told), int(kept.until - time.time()), columns)
    if before is not None:
        runtime.spool.drop_result(before, replaced=upload is not None)


def tell(runtime: Runtime, view: View, ident: str, missing: bool, key: Key | None) -> None:
    """Count the answers of the stage at hand; those that are not in never come where ``missing`` says so."""
    view.once(key, lambda: _tell(runtime, view, ident, missing, key))


def _tell(runtime: Runtime, view: View, ident: str, missing: bool, key: Key | None) -> Written:
    now = status(view, ident)
    if now.done:
        raise InvalidInput("labels: all are in. Nothing is left to answer.")
    answers = answers_of(runtime, view, ident, now)
    rows = [row for row in now.waiting if row in answers]
    if len(rows) < len(now.waiting):
        if not missing:
            raise InvalidInput(
                f"labels: {len(now.waiting) - len(rows):,} of {len(now.waiting):,} are not in yet, or "
                "disputed. Answer them, or say that they will not come."
            )
        rows = list(now.waiting)
    told = {"rows": rows, "labels": [None if row not in answers else int(answers[row]) for row in rows]}
    return _count(runtime, view, ident, told, key)


def take(
    runtime: Runtime, view: View, ident: str, labels: Mapping[int, bool | None], key: Key | None
) -> Entry:
    """Labels of rows that are asked for now, given at once; None for one that will not come."""
    return view.once(key, lambda: _take(runtime, view, ident, labels, key)).entry


def _take(
    runtime: Runtime, view: View, ident: str, labels: Mapping[int, bool | None], key: Key | None
) -> Written:
    waiting = set(status(view, ident).waiting)
    for row in labels:
        if row not in waiting:
            raise InvalidInput(f"labels: row {row:,} is not asked for now. Ask which are, and label those.")
    told = {"rows": list(labels), "labels": [None if each is None else int(each) for each in labels.values()]}
    return _count(runtime, view, ident, told, key)


def _count(runtime: Runtime, view: View, ident: str, told: dict[str, Any], key: Key | None) -> Written:
    """Put labels on record that fit, and lay out what is asked for next."""
    before = view.told(ident)
    run(labelling_record.status, view.labelling(ident).facts["state"], [*before, told])  # or refuses them
    written = view.tell_labels(ident, told, len(before), key).result()
    with _LAYING_OUT:
        _next_stage(runtime, view, ident, view.told(ident))
    return written


def asked_now(runtime: Runtime, view: View, ident: str, limit: int) -> list[dict[str, Any]]:
    """The rows to label now with all their columns, as long as the collection is kept."""
    now = status(view, ident)
    waiting, kept = set(now.waiting), stage_at_hand(runtime, view, ident, now)
    if not waiting:
        return []
    if kept is None:
        raise NotFound("candidates: they are no longer kept here.")
    with Worklist(list_of(kept.upload)) as work:
        at = work.names.index(ROW)
        laid_out = (work.candidates(range(n, n + 500)) for n in range(1, work.length + 1, 500))
        rows = [each for part in laid_out for each in part if int(each.cells[at]) in waiting]
        return [
            {"row": int(each.cells[at]), "candidate": each.id,
             "columns": dict(zip(work.names[:at], each.cells[:at], strict=True))
             | dict(zip(work.names[at + 1 :], each.cells[at + 1 :], strict=True))}
            for each in rows[:limit]
        ]  # fmt: skip


def answers_of(runtime: Runtime, view: View, ident: str, now: LabellingStatus) -> dict[int, bool]:
    """Row numbers with what people agree on, of the stage at hand."""
    kept = stage_at_hand(runtime, view, ident, now)
    if kept is None:
        return {}
    outcomes = view.marks(ident).outcomes()
    with Worklist(list_of(kept.upload)) as work:
        return {int(row): outcomes[name] for name, row in work.groups().items() if name in outcomes}


def shown(runtime: Runtime, view: View, ident: str) -> dict[str, Any]:
    """What the page of a labelling shows."""
    entry, now = view.labelling(ident), status(view, ident)
    answered = len(answers_of(runtime, view, ident, now).keys() & set(now.waiting))
    return {
        "entry": entry, "facts": entry.facts, "now": now, "answered": answered,
        "saved": view.policy_of(ident), "kept": runtime.spool.result(ident) is not None,
        "stages": len(view.told(ident)), "collection": runtime.spool.collection(ident) is not None,
    }  # fmt: skip


def save(view: View, ident: str, name: str, note: str, key: Key | None) -> str:
    """The certified policy on record; its hash."""
    now = status(view, ident)
    if now.policy is None:
        raise InvalidInput("policy: nothing is certified yet. Label first.")
    if not now.future:
        raise InvalidInput(
            "policy: this promise is about the list of these very candidates, not about future pools. "
            "Download the list instead."
        )
    facts = {"labelling": ident, "file": view.labelling(ident).facts["file"], "note": note}
    return view.save_policy(now.policy, name, facts, key).result().entry.subject


def make_list(runtime: Runtime, view: View, ident: str, key: Key | None) -> Path:
    """The certified list of the collection itself, as a file of its own; that it was made goes on record."""
    kept, now = runtime.spool.collection(ident), status(view, ident)
    if now.policy is None or kept is None:
        raise InvalidInput("list: nothing is certified yet, or the candidates are no longer kept here.")
    output = runtime.spool.new_path("csv")
    try:
        state = view.labelling(ident).facts["state"]
        listed = run(labelling_record.write_list, state, view.told(ident), kept.upload.path, output)
        output = escaped(output)  # people open it in a spreadsheet
        facts = {"shortlisted": listed, "result_sha256": workflow_facts.sha256_of(output)}
        view.list_labelled(ident, facts, key).result()
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    return output
