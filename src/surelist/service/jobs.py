"""What the service does, once for the API and the page: call one workflow, put it on record.

And files that people take home: shortlists as they were made or for spreadsheets, and templates to fill in.

Runs in worker threads. Errors name the file as the person knows it, never the path on disk.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from starlette.datastructures import UploadFile

from surelist._check import DecimalMark
from surelist.errors import InvalidInput
from surelist.promises.policy import Policy
from surelist.reports.report import write_pdf
from surelist.service import policy_watch, reviewing, worklist
from surelist.service.choices import AboutList, ChosenColumns
from surelist.service.errors import NotFound, TooLarge, TooMuchWork
from surelist.service.record.campaigns import CampaignScreened
from surelist.service.record.events import SelectionMade
from surelist.service.record.log import Written
from surelist.service.runtime import Runtime, Session
from surelist.service.sent_rows import SentRows
from surelist.service.settings import Settings
from surelist.service.uploads import KeptList, Spool, Upload, list_of, removing
from surelist.service.workers import run
from surelist.workflows import files, selection, summaries as workflow_facts, tables as workflows, watching
from surelist.workflows.demo import write_example
from surelist.workflows.files import escape_file
from surelist.workflows.source import NO_HINTS, Hints, Source

Problem = workflows.Problem
Profile = workflows.Profile


class Shortlisted(Struct, frozen=True):
    """A selection on record, and the shortlist as a file."""

    written: Written[SelectionMade]
    file: Upload
    decimal: DecimalMark = "auto"  # the mark of its scores, where they are text


# -- uploads


def admit(
    upload: Upload, settings: Settings, *, past: bool, place: Hints = NO_HINTS, ask: bool = False
) -> Upload:
    """Refuse, before any work, what would unfold to more than the service can hold.

    A workbook or text in another encoding becomes Parquet here, once; its hash stays that of what came.
    Where a sheet has to be chosen, whoever can ``ask`` a person keeps the file.
    """
    adopted = upload.path.with_name(f"{upload.path.stem}-adopted.parquet")
    try:
        rows, names, origin = run(workflows.admit, upload, place, adopted)
        _check_shape(rows, names, settings, past=past, name=upload.name)
    except BaseException as error:
        if not (ask and isinstance(error, workflows.SheetNeeded)):
            upload.path.unlink(missing_ok=True)
        adopted.unlink(missing_ok=True)
        raise
    if origin is None:
        return upload
    upload.path.unlink(missing_ok=True)
    return replace(upload, path=adopted, origin=origin)


def _check_shape(rows: int, names: list[str], settings: Settings, *, past: bool, name: str) -> None:
    limit = settings.max_calibration_rows if past else settings.max_rows
    if rows > limit:
        raise TooLarge(limit, f"{name} has {rows:,} rows; this service takes {limit:,} at most here.")
    if len(names) > settings.max_columns:
        raise TooLarge(
            settings.max_columns,
            f"{name} has {len(names):,} columns; this service takes {settings.max_columns:,} at most. "
            "Leave out those that are not needed.",
        )
    seen: set[str] = set()
    for column in names:
        if column.lower() in seen:
            raise InvalidInput("file", f"the column {column!r} appears twice. Give each column its own name.")
        seen.add(column.lower())


def store(me: Session, file: UploadFile, *, past: bool) -> Upload:
    """A file that came with a form."""
    return admit(_stored(me, file), me.settings, past=past)


def store_to_ask(
    me: Session, file: UploadFile, *, past: bool, place: Hints
) -> tuple[Upload, tuple[str, ...]]:
    """The same, and the sheets to choose from where that is still open."""
    upload = _stored(me, file)
    try:
        return admit(upload, me.settings, past=past, place=place, ask=True), ()
    except workflows.SheetNeeded as question:
        return upload, question.sheets


def _stored(me: Session, file: UploadFile) -> Upload:
    return me.spool.store(file.file, me.settings.max_upload, str(file.filename))


def store_example(runtime: Runtime, *, past: bool) -> Upload:
    """Made-up candidates, to try the page with."""
    path = runtime.spool.new_path("csv")
    rng = np.random.default_rng(0 if past else 2)
    write_example(path, rng, 2000 if past else 100, labelled=past)
    return made_upload(path, "example-past.csv" if past else "example-pool.csv")


def made_upload(path: Path, name: str = "the shortlist") -> Upload:
    """A file that was made here."""
    size, sha256 = path.stat().st_size, workflow_facts.sha256_of(path)
    return Upload(path, size, sha256, path.suffix[1:], name=name)


# -- looking at a list


def first_rows(kept: KeptList, limit: int) -> tuple[list[str], list[list[str]]]:
    """Column names and the first rows of a shortlist, as text."""
    return run(workflows.first_rows, kept.upload.path, limit)


def reviews_in_file(me: Session, file: UploadFile, columns: Mapping[str, str]) -> dict[str, bool]:
    """Yes and no by candidate id, from a file that is not kept."""
    upload = store(me, file, past=False)
    try:
        return reviewing.reviews_in(run(workflows.read_text, upload, columns))
    finally:
        upload.path.unlink(missing_ok=True)


# -- selecting


def select_file(
    me: Session, digest: str, upload: Upload, columns: ChosenColumns, *,
    format: str | None = None, about: AboutList | None = None, watch: bool = False, review: bool = False,
    audit_rate: float | None = None,
) -> Shortlisted:  # fmt: skip
    """Shortlist a file: the result keeps the pool's format unless another is asked for.

    ``about`` goes on record with it; ``review`` also lays the list out for reviewing, and with it those who
    are drawn for an audit at ``audit_rate``. ``watch``: its reviews are to count.
    """
    view, policy = me.view, me.view.policy(digest).policy
    names = {
        "score": columns.score,
        "group": columns.group if policy.filter.grouped else None,
        # only ties need ids; a check for repeats would name candidates
        "id": columns.id if policy.salt_hash is not None else None,
        "pool": columns.pool,
    }
    source = upload.source(columns.hints)
    output = list_path(me, upload, format)
    with removing(output, output.with_suffix(".list")):
        done, read = run(selection.select_source, source, policy, output=output, **names)
        wanted = (upload, output, columns.attributes, policy.three_ways)
        impact = run(workflows.impact, *wanted) if columns.attributes else ()
        result = made_upload(output)
        facts = workflow_facts.selection_facts(
            done, (upload.sha256, upload.format), (result.sha256, result.format), impact
        )
        drawn, groups = None, dict[str, int]()
        if review:
            drawn, groups = _laid_out(me, source, policy, names, result, columns, read.decimal, audit_rate)
        here = drawn is not None
        made = SelectionMade(
            **asdict(facts), **asdict(about or AboutList()), policy=digest, reading=read.sentences,
            audit_rate=audit_rate if here else None, audit=drawn, audit_groups=groups, audit_here=here,
            pool_scores=run(watching.pool_scores_in, source, columns.score) if watch or review else None,
        )  # fmt: skip
        if watch:
            written = policy_watch.record_watched(view, new_id(), made)
        else:
            written = view.record_selection(new_id(), made).result()
    return Shortlisted(written, replace(result, origin=upload.origin), read.decimal)


def list_path(me: Session, upload: Upload, format: str | None) -> Path:
    """Where the shortlist of a pool is written, in its format or another."""
    return me.spool.new_path(format or ("xlsx" if upload.format == "xls" else upload.format))


def _laid_out(
    me: Session, source: Source, policy: Policy, names: Mapping[str, str | None], result: Upload,
    columns: ChosenColumns, decimal: DecimalMark, audit_rate: float | None,
) -> tuple[list[int] | None, dict[str, int]]:  # fmt: skip
    """A list ready to be reviewed, with those drawn for an audit; their row numbers, and counts by group.

    Of a triage those whom people look at are reviewed, and its lists are the groups.
    """
    if audit_rate is None and not policy.three_ways:
        run(worklist.build, result.path, list_of(result), columns, decimal)
        return None, {}
    with passing(me) as drawn, passing(me) as band:
        rows, groups = run(watching.write_audit, source, policy, names, audit_rate, drawn, band)
        if policy.three_ways:
            columns = replace(columns, group=watching.LIST)
        listed = band if policy.three_ways else result.path
        run(worklist.build, listed, list_of(result), columns, decimal, drawn if rows else None)
    return None if audit_rate is None else rows, groups


@contextmanager
def passing(me: Session) -> Iterator[Path]:
    """A CSV file that goes when its work is done."""
    path = me.spool.new_path("csv")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def select_rows(
    body: bytes, policy: Policy, digest: str, columns: Mapping[str, str | None],
    audit_rate: float | None = None, watch: bool = False,
) -> tuple[SelectionMade, bytes, list[str] | None]:  # fmt: skip
    """Shortlist rows in memory: what goes on record, the rows as JSON, and of a triage the list of each row.

    With an ``audit_rate`` the numbers of the rows drawn for the audit are on record too, so that asking
    again gives the same ones.
    """
    sent = SentRows(body)
    rows = sent.columns(selection.names_in_rows(policy, sent.has, columns))
    numbers, done = selection.select_columns(rows, policy)
    listed = hashlib.sha256(msgspec.json.encode(numbers)).hexdigest()
    pool = hashlib.sha256(body).hexdigest()
    facts = workflow_facts.selection_facts(done, (pool, "json"), (listed, "row numbers"))
    known_by = watching.pool_scores(rows["score"]) if watch else None
    made = SelectionMade(**asdict(facts), policy=digest, pool_scores=known_by)
    lists = selection.three_lists(rows, policy) if policy.three_ways else None
    if audit_rate is not None:
        drawn = watching.draw_audit(done.candidates, numbers if lists is None else (), audit_rate)
        groups = {} if lists is None else watching.drawn_by_list(lists, drawn)
        made = replace(made, audit_rate=audit_rate, audit=drawn, audit_groups=groups)
    return made, sent.at(numbers), lists


def escaped(path: Path) -> Path:
    """A CSV file made safe for spreadsheets, with the separator it has."""
    return run(escape_file, path)


def new_id() -> str:
    return secrets.token_hex(8)


FORMATS = ("csv", "jsonl", "parquet", "xlsx")


def unchanged(spool: Spool, kept: KeptList) -> Path:
    """A shortlist as it is, under a name of its own: somebody may remove the list while it is sent."""
    try:
        return spool.linked(kept.upload).path
    except FileNotFoundError:
        raise NotFound(
            "shortlist: it is no longer kept here. Select again, the result is the same."
        ) from None


def written(spool: Spool, format: str, write: Callable[..., object], *given: object, **named: object) -> Path:
    """A file of its own, which ``write`` makes in a worker."""
    path = spool.new_path(format)
    with removing(path):
        run(write, *given, path, **named)
    return path


def as_made(spool: Spool, kept: KeptList, format: str) -> Path:
    """A shortlist in another format."""
    return written(spool, format, workflows.convert, kept.upload.path)


def for_people(spool: Spool, kept: KeptList, format: str, policy: Policy, made: SelectionMade) -> Path:
    """A shortlist with rank and reason, to be opened in a spreadsheet."""
    sizes = {name: size for name, (size, _) in made.groups.items()}
    groups: list[str | None] = [*sizes] if policy.filter.grouped else [None]
    reasons = {each: policy.filter.reason(each, made.candidates, sizes) for each in groups}
    known = policy.columns or {}
    group = kept.columns.group or known.get("group")
    score = kept.columns.score or known.get("score", "score")
    who = group if policy.filter.grouped else None
    return _listed(spool, kept, format, score=score, group=who, reasons=reasons)


def campaign_list(spool: Spool, kept: KeptList, format: str, made: CampaignScreened) -> Path:
    """The shortlist of a campaign's pool, with rank and reason where it is for a spreadsheet."""
    if format in ("parquet", "jsonl"):
        return as_made(spool, kept, format)
    limit = made.threshold
    reason = "everyone is shortlisted" if limit is None else f"score >= {limit!r}"
    return _listed(spool, kept, format, score=str(kept.columns.score), group=None, reasons={None: reason})


def _listed(spool: Spool, kept: KeptList, format: str, **how: object) -> Path:
    return written(spool, format, files.write_list, kept.upload.source(kept.columns.hints), **how)


def report_pdf(spool: Spool, html: str) -> Path:
    """An audit report to be printed and filed."""
    try:
        return written(spool, "pdf", write_pdf, html)
    except TooMuchWork as error:
        raise TooMuchWork(error.what, "Open the report as a page and print it from there.") from None


def template(spool: Spool, format: str) -> Path:
    """A file to fill in."""
    return written(spool, format, files.write_template)


def file_name(policy: str, pool: str, at: str, format: str, kind: str = "") -> str:
    """What a download is called: after policy, pool, day and kind, in letters that every system takes."""
    words = [re.sub(r"[^\w.-]+", "-", each).strip("-.")[:60] for each in (policy, pool, at[:10], kind)]
    return f"{'_'.join(each for each in words if each)}.{format}"
