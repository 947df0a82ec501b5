"""Files that people take home: shortlists as they were made or for spreadsheets, and templates to fill in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from surelist.promises.policy import Policy
from surelist.reports.report import write_pdf
from surelist.service.errors import NotFound, TooMuchWork
from surelist.service.record.campaigns import CampaignScreened
from surelist.service.record.events import SelectionMade
from surelist.service.uploads import KeptList, Spool, removing
from surelist.service.workers import run
from surelist.workflows import files
from surelist.workflows import tables as workflows

FORMATS = ("csv", "jsonl", "parquet", "xlsx")


def unchanged(spool: Spool, kept: KeptList) -> Path:
    """A shortlist as it is, under a name of its own: somebody may remove the list while it is sent."""
    path = spool.new_path(kept.upload.path.suffix[1:])
    try:
        os.link(kept.upload.path, path)
    except FileNotFoundError:
        raise NotFound(
            "shortlist: it is no longer kept here. Select again, the result is the same."
        ) from None
    return path


def as_made(spool: Spool, kept: KeptList, format: str) -> Path:
    """A shortlist in another format, as a file of its own."""
    path = spool.new_path(format)
    run(workflows.convert, kept.upload.path, path)
    return path


def for_people(spool: Spool, kept: KeptList, format: str, policy: Policy, made: SelectionMade) -> Path:
    """A shortlist with rank and reason, to be opened in a spreadsheet."""
    sizes = {name: size for name, (size, _) in made.groups.items()}
    groups: list[str | None] = [*sizes] if policy.filter.grouped else [None]
    reasons = {each: policy.filter.reason(each, made.candidates, sizes) for each in groups}
    known = policy.columns or {}
    group = kept.columns.group or known.get("group")
    score = kept.columns.score or known.get("score", "score")
    return _listed(spool, kept, format, score, group if policy.filter.grouped else None, reasons)


def campaign_list(spool: Spool, kept: KeptList, format: str, made: CampaignScreened) -> Path:
    """The shortlist of a campaign's pool, with rank and reason where it is for a spreadsheet."""
    if format in ("parquet", "jsonl"):
        return as_made(spool, kept, format)
    limit = made.threshold
    reason = "everyone is shortlisted" if limit is None else f"score >= {limit!r}"
    return _listed(spool, kept, format, str(kept.columns.score), None, {None: reason})


def _listed(
    spool: Spool,
    kept: KeptList,
    format: str,
    score: str,
    group: str | None,
    reasons: Mapping[str | None, str],
) -> Path:
    path, source = spool.new_path(format), kept.upload.source(kept.columns.hints)
    run(files.write_list, source, path, score=score, group=group, reasons=reasons)
    return path


def report_pdf(spool: Spool, html: str) -> Path:
    """An audit report to be printed and filed."""
    path = spool.new_path("pdf")
    try:
        with removing(path):
            run(write_pdf, html, path)
    except TooMuchWork as error:
        raise TooMuchWork(error.what, "Open the report as a page and print it from there.") from None
    return path


def template(spool: Spool, format: str) -> Path:
    """A file to fill in."""
    path = spool.new_path(format)
    run(files.write_template, path)
    return path


def file_name(policy: str, pool: str, at: str, format: str, kind: str = "") -> str:
    """What a download is called: after policy, pool, day and kind, in letters that every system takes."""
    words = [re.sub(r"[^\w.-]+", "-", each).strip("-.")[:60] for each in (policy, pool, at[:10], kind)]
    return f"{'_'.join(each for each in words if each)}.{format}"
