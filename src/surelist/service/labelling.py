"""What the pages of a labelling do: start the draw, lay out a stage for answering, count its answers, save.

The draw and every answer that counts are entries of the log: row numbers and labels, no candidate. The
candidates themselves wait in the spool for as long as was chosen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from surelist.errors import InvalidInput
from surelist.promises import kinds, policy_file
from surelist.promises.grammar import one_target
from surelist.promises.promise import Promise
from surelist.service import worklist
from surelist.service.choices import ChosenColumns, until
from surelist.service.errors import NotFound
from surelist.service.jobs import escaped, made_upload, new_id
from surelist.service.promise_form import Offer, Part, kind_of, number_in, parts, share_in
from surelist.service.record.event import Entry
from surelist.service.record.events import PolicySaved
from surelist.service.record.labellings import AnswersSoFar, LabellingListed, LabellingStarted, LabellingTold
from surelist.service.record.log import Written
from surelist.service.record.record import retried
from surelist.service.record.view import View
from surelist.service.runtime import Session, once
from surelist.service.uploads import KeptList, Upload, list_of, removing
from surelist.service.workers import run
from surelist.service.worklist import Worklist
from surelist.workflows import labelling_record
from surelist.workflows.labelling_record import ROW, LabellingStatus, Told

_LAYING_OUT = threading.Lock()  # one list per stage, whoever asks for it first


def offers() -> list[Offer]:
    """The promises that can be made by labels of a draw."""
    return [Offer(kind, kind.labelled) for kind in kinds.classes() if kind.labelled]


def fields_of(offer: Offer) -> list[Part]:
    """The fields of a promise that a person fills in."""
    return [each for each in parts(offer.kind, offer.choice.words) if each.label]


DEFAULTS = {
    "score": "", "id": "", "promise": kinds.FIRST, "alpha": "10", "labels": "300", "name": "", "keep": "",
    "group": "", "purpose": "", **{each.name: each.shown for offer in offers() for each in fields_of(offer)},
}  # fmt: skip


def asked_of(form: Mapping[str, object]) -> dict[str, str]:
    """The design as a person typed it."""
    return {name: str(form.get(name) or "") for name in DEFAULTS}


def _target(asked: Mapping[str, str]) -> Promise:
    offer = next((each for each in offers() if each.choice.name == asked["promise"]), None)
    if offer is None:
        raise InvalidInput("promise", "choose what is to be promised.")
    return one_target(kind_of(offer.kind), {each.field: each.read(asked) for each in fields_of(offer)})


def _whole(text: str, what: str) -> int:
    value = number_in(text, "labels", what)
    if value != int(value):
        raise InvalidInput(what, expected="a whole number", got=repr(text[:40]))
    return int(value)


@once  # a second draw would be a choice between two
def start(me: Session, upload: Upload, asked: Mapping[str, str], seconds: int) -> Written[LabellingStarted]:
    """Draw the candidates to label, put the draw on record, and lay out the first stage."""
    if not asked["score"]:
        raise InvalidInput("score", "choose the column that holds the score.")
    target, alpha = _target(asked), share_in(asked["alpha"], "alpha", "how often it may be false")
    labels = _whole(asked["labels"], "how many candidates can be labelled")
    group = asked["group"] or None
    if group and not asked["purpose"].strip():
        raise InvalidInput("purpose", "say why groups are treated differently; it goes on record.")
    state, sizes = run(
        labelling_record.begin, upload, target, labels=labels, alpha=alpha, score=asked["score"],
        group=group, purpose=asked["purpose"].strip()[:2000] or None,
    )  # fmt: skip
    ident = new_id()
    event = LabellingStarted(
        name=asked["name"].strip()[:200] or upload.name.rsplit(".", 1)[0], file=upload.name,
        collection_sha256=upload.sha256, candidates=sum(sizes.values()),
        target=target.describe() + (f", in each group of {group}" if group else ""), alpha=alpha,
        labels=labels, state=state, kept_until=until(time.time() + seconds),
    )  # fmt: skip
    columns = ChosenColumns(score=asked["score"], id=asked["id"] or ROW, group=ROW)
    stage = _laid_out(me, state, "", upload.path, columns)  # ids that repeat are refused now
    if stage is not None:
        me.spool.keep_result(ident, stage, seconds, columns, stage=str(len(sizes)))
    try:
        me.spool.keep_collection(ident, me.spool.linked(upload), seconds, columns)  # the draw needs them
        made = me.view.append(ident, event).result()
    except BaseException:
        me.spool.drop(ident)
        raise
    if made.replayed:  # sent twice at once; the other draw counts
        me.spool.drop(ident)
    return made


class LabellingOnRecord(Struct, frozen=True):
    """A labelling as it stands on record: how it began, the answers that count, what follows from them."""

    entry: Entry[LabellingStarted]
    progress: AnswersSoFar
    now: LabellingStatus

    @property
    def state(self) -> str:
        """The draw."""
        return self.entry.event.state


def standing(view: View, ident: str) -> LabellingOnRecord:
    """What to label now, or what can be promised: from the record alone."""
    entry, progress = view.labelling(ident), view.progress(ident)
    return LabellingOnRecord(entry, progress, run(labelling_record.status, entry.event.state, progress.marks))


def _laid_out(me: Session, state: str, marks: str, path: Path, columns: ChosenColumns) -> Upload | None:
    """The rows of the stage at hand as a list to be answered."""
    output = me.spool.new_path("csv")
    with removing(output):
        if not run(labelling_record.write_stage, state, marks, path, output):
            return None
        upload = made_upload(output)
        run(worklist.build, output, list_of(upload), columns, as_it_is=True)
    return upload


def stage_at_hand(me: Session, ident: str) -> KeptList | None:
    """The list of those to be answered now and of nobody else, as long as the collection is kept.

    Laid out here where answers came by API, or the service ended between an answer and what follows from it.
    """
    with _LAYING_OUT:
        if not laid_out(me, ident):
            _lay_out(me, standing(me.view, ident))
    return me.spool.result(ident)


def laid_out(me: Session, ident: str) -> bool:
    """Whether the list that is kept is that of those to be answered now; or nobody is kept any more."""
    kept = me.spool.result(ident)
    if kept is None:
        return me.spool.collection(ident) is None
    return kept.told == me.view.progress(ident).seq


def _lay_out(me: Session, at: LabellingOnRecord) -> None:
    """Lay out what is to be answered now, in the place of what was answered before."""
    ident = at.entry.subject
    kept, before = me.spool.collection(ident), me.spool.result(ident)
    upload = None
    if kept is not None and at.now.waiting:
        columns, marks = kept.columns, at.progress.marks
        try:
            upload = _laid_out(me, at.state, marks, kept.upload.path, columns)
        except InvalidInput:  # ids that repeat among these rows
            columns = replace(columns, id=ROW)
            upload = _laid_out(me, at.state, marks, kept.upload.path, columns)
    if kept is not None and upload is not None:
        seconds = int(kept.until - time.time())
        me.spool.keep_result(ident, upload, seconds, columns, told=at.progress.seq, stage=at.now.stage)
    if before is not None:
        me.spool.drop_result(before, replaced=upload is not None)


@once
def tell(me: Session, ident: str, missing: bool) -> Written[LabellingTold]:
    """Count the answers that are in; the others are asked for again, or never come if ``missing``."""
    at = standing(me.view, ident)
    if at.now.done:
        raise InvalidInput("labels", "all are in. Nothing is left to answer.")
    waiting, answers = at.now.waiting, answers_of(me, ident)
    rows = [row for row in waiting if row in answers]
    if missing:
        rows = list(waiting)
    elif not rows:
        raise InvalidInput("labels", "none is in yet, or all are disputed. Answer some of them first.")
    told = Told(rows, [None if row not in answers else int(answers[row]) for row in rows])
    return _count(me, at.entry, at.progress, told)


@once
@retried
def take(me: Session, ident: str, labels: Mapping[int, bool | None]) -> Written[LabellingTold]:
    """Labels of rows that are asked for now, given at once; None for one that will not come."""
    told = Told(list(labels), [None if each is None else int(each) for each in labels.values()])
    return _count(me, me.view.labelling(ident), me.view.progress(ident), told)


def _count(
    me: Session, entry: Entry[LabellingStarted], before: AnswersSoFar, told: Told,
    marked: tuple[int, set[str]] | None = None,
) -> Written[LabellingTold]:  # fmt: skip
    """Put labels on record that fit; lay out who is asked next where a stage ends with them.

    With ``marked``, up to which entry the page has answers and of whom, they are in the place of others.
    """
    ident, again = entry.subject, marked is not None
    marks, now = run(labelling_record.told, entry.event.state, before.marks, told, again)  # or refuses them
    if marked is not None:
        _refuse_known(me, ident, marked[1])
    written = me.view.tell_labels(ident, told, marks, before, marked and marked[0]).result()
    with _LAYING_OUT:
        kept = me.spool.result(ident)
        if kept is not None and (again or now.done or kept.stage != now.stage):
            _lay_out(me, standing(me.view, ident))
    return written


@once
@retried
def correct(me: Session, ident: str, labels: Mapping[int, bool]) -> Written[LabellingTold]:
    """Labels in the place of others on record, as long as nothing rests on those."""
    view, told = me.view, Told(list(labels), [int(each) for each in labels.values()])
    entry, before, marks = view.labelling(ident), view.progress(ident), view.marks(ident)
    return _count(me, entry, before, told, (marks.seq, marks.ever))


def correct_one(me: Session, ident: str, candidate: str, qualified: bool) -> None:
    """The same by the name of a candidate, as long as the collection is kept."""
    at, kept = me.view.labelling(ident), me.spool.collection(ident)
    if kept is None:
        raise NotFound("candidates: they are no longer kept here.")
    marks, column = me.view.progress(ident).marks, kept.columns.id or ROW
    row = run(labelling_record.answered_row, at.event.state, marks, kept.upload.path, column, candidate)
    correct(me, ident, {row: qualified})


def _refuse_known(me: Session, ident: str, marked: set[str]) -> None:
    """What a correction chooses anew must not be chosen by answers that do not count yet."""
    kept = stage_at_hand(me, ident) if marked else None
    if kept is None:
        return
    waiting = set(standing(me.view, ident).now.waiting)
    with Worklist(list_of(kept.upload)) as work:
        known = [name for name, row in work.groups().items() if name in marked and int(row) in waiting]
    if known:
        raise InvalidInput(
            "labels",
            f"{len(known):,} of those who are asked for now were answered on the page already, and a "
            "correction could choose others in their place. Let these answers count first.",
        )


class AskedRow(BaseModel):
    """A row to label now, with all its columns."""

    row: int
    candidate: str
    columns: dict[str, str]


def asked_now(me: Session, ident: str, limit: int) -> list[AskedRow]:
    """The rows to label now, as long as the collection is kept."""
    at = standing(me.view, ident)
    waiting = set(at.now.waiting)
    if not waiting:
        return []
    kept = me.spool.result(ident)
    if kept is None or kept.stage != at.now.stage:  # those told since are left out below
        kept = stage_at_hand(me, ident)
    if kept is None:
        raise NotFound("candidates: they are no longer kept here.")
    with Worklist(list_of(kept.upload)) as work:
        laid_out = (work.candidates(range(n, n + 500)) for n in range(1, work.length + 1, 500))
        everyone = (
            (each, dict(zip(work.names, each.cells, strict=True))) for part in laid_out for each in part
        )
        rows = (AskedRow(row=int(c.pop(ROW)), candidate=each.id, columns=c) for each, c in everyone)
        return list(islice((each for each in rows if each.row in waiting), limit))


def answers_of(me: Session, ident: str) -> dict[int, bool]:
    """Row numbers with what people agree on, of the stage at hand."""
    kept = stage_at_hand(me, ident)
    if kept is None:
        return {}
    outcomes = me.view.marks(ident).outcomes()
    with Worklist(list_of(kept.upload)) as work:
        return {int(row): outcomes[name] for name, row in work.groups().items() if name in outcomes}


def shown(me: Session, ident: str) -> dict[str, object]:
    """What the page of a labelling shows."""
    at = standing(me.view, ident)
    answered = len(answers_of(me, ident).keys() & set(at.now.waiting))
    return {
        "entry": at.entry, "facts": at.entry.event, "now": at.now, "answered": answered,
        "saved": me.view.policy_of(ident), "kept": me.spool.result(ident) is not None,
        "counted": sum(here for *_, here, _, _ in at.now.stages),
        "collection": me.spool.collection(ident) is not None,
    }  # fmt: skip


def report(view: View, ident: str) -> str:
    """The design, the answers that count and what can be promised, as a page of its own."""
    started, progress = view.labelling(ident).event, view.progress(ident)
    return run(labelling_record.report, started.state, progress.marks, started.name)


def save(view: View, ident: str, name: str, note: str) -> str:
    """The certified policy on record; its hash."""
    at = standing(view, ident)
    now = at.now
    if now.policy is None:
        raise InvalidInput("policy", "nothing is certified yet. Label first.")
    if not now.future:
        raise InvalidInput(
            "policy",
            "this promise is about the list of these very candidates, not about future pools. Download "
            "the list instead.",
        )
    saved = PolicySaved(
        name=name, policy=policy_file.dumps(now.policy), labelling=ident, file=at.entry.event.file, note=note
    )
    return view.save_policy(saved).result().entry.subject


def make_list(me: Session, ident: str) -> Path:
    """The certified list of the collection itself, as a file of its own; that it was made goes on record."""
    kept, at = me.spool.collection(ident), standing(me.view, ident)
    if at.now.policy is None or kept is None:
        raise InvalidInput("list", "nothing is certified yet, or the candidates are no longer kept here.")
    output = me.spool.new_path("csv")
    with removing(output):
        listed = run(labelling_record.write_list, at.state, at.progress.marks, kept.upload.path, output)
        output = escaped(output)  # people open it in a spreadsheet
    with removing(output):
        made = LabellingListed(shortlisted=listed, result_sha256=made_upload(output).sha256)
        me.view.append(ident, made).result()
    return output
