"""Files that people take home: shortlists as they were made or for spreadsheets, and templates to fill in."""

from __future__ import annotations

import os
import re
from pathlib import Path

from surelist.promises.policy import Policy
from surelist.reports.html import write_pdf
from surelist.service.errors import NotFound, TooMuchWork
from surelist.service.jobs import hints_of, source_of
from surelist.service.record.chain import Entry
from surelist.service.uploads import Draft, Spool
from surelist.service.workers import run
from surelist.workflows import downloads
from surelist.workflows import tables as workflows


def unchanged(spool: Spool, kept: Draft) -> Path:
    """A shortlist as it is, under a name of its own: somebody may remove the list while it is sent."""
    path = spool.new_path(kept.upload.path.suffix[1:])
    try:
        os.link(kept.upload.path, path)
    except FileNotFoundError:
        raise NotFound(
            "shortlist: it is no longer kept here. Select again, the result is the same."
        ) from None
    return path


def as_made(spool: Spool, kept: Draft, format: str) -> Path:
    """A shortlist in another format, as a file of its own."""
    path = spool.new_path(format)
    run(workflows.convert, kept.upload.path, path)
    return path


def for_people(spool: Spool, kept: Draft, format: str, policy: Policy, entry: Entry) -> Path:
    """A shortlist with rank and reason, to be opened in a spreadsheet."""
    columns, facts = kept.notes, entry.facts
    sizes = {name: size for name, (size, _) in facts["groups"].items()}
    groups: list[str | None] = [*sizes] if policy.filter.grouped else [None]
    reasons = {each: policy.filter.reason(each, facts["candidates"], sizes) for each in groups}
    path = spool.new_path(format)
    source = source_of(kept.upload, "the shortlist", hints_of(columns))
    score = columns.get("score") or (policy.columns or {}).get("score", "score")
    group = columns.get("group") or (policy.columns or {}).get("group")
    run(
        downloads.write_list,
        source,
        path,
        score=score,
        group=group if policy.filter.grouped else None,
        reasons=reasons,
    )
    return path


def campaign_list(spool: Spool, kept: Draft, format: str, entry: Entry) -> Path:
    """The shortlist of a campaign's pool, with rank and reason where it is for a spreadsheet."""
    if format in ("parquet", "jsonl"):
        return as_made(spool, kept, format)
    limit, path = entry.facts["threshold"], spool.new_path(format)
    reason = "everyone is shortlisted" if limit is None else f"score >= {limit!r}"
    source = source_of(kept.upload, "the shortlist", hints_of(kept.notes))
    run(
        downloads.write_list, source, path, score=kept.notes["score"], group=None, reasons={None: reason}
    )  # fmt: skip
    return path


def report_pdf(spool: Spool, html: str) -> Path:
    """An audit report to be printed and filed."""
    path = spool.new_path("pdf")
    try:
        run(write_pdf, html, path)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, TooMuchWork):
            raise TooMuchWork(error.what, "Open the report as a page and print it from there.") from None
        raise
    return path


def template(spool: Spool, format: str) -> Path:
    """A file to fill in."""
    path = spool.new_path(format)
    run(downloads.write_template, path)
    return path


def file_name(policy: str, pool: str, at: str, format: str, kind: str = "") -> str:
    """What a download is called: after policy, pool, day and kind, in letters that every system takes."""
    words = [re.sub(r"[^\w.-]+", "-", each).strip("-.")[:60] for each in (policy, pool, at[:10], kind)]
    return f"{'_'.join(each for each in words if each)}.{format}"
