"""A file looked over before anything is decided: its columns, what was understood, what stands in the way.

Heavy parts run in workers, each once per upload: what a column holds waits in the draft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from surelist._check import MissingLabels
from surelist.promises.terms import Roles
from surelist.service.jobs import Problem, hints_of, named, source_of
from surelist.service.runtime import Runtime
from surelist.service.uploads import Draft
from surelist.service.workers import run
from surelist.workflows import file_check as workflows
from surelist.workflows.tables import value_problems

Profile = workflows.Profile


def profile(runtime: Runtime, draft: Draft) -> tuple[Draft, Profile]:
    """Columns, first rows and good guesses: what a person confirms. Asked of the file once."""
    known = draft.notes.get("profile")
    if known is not None:
        return draft, workflows.profile_from(known)
    with named(draft.upload, draft.filename):
        made = run(workflows.profile, source_of(draft.upload, draft.filename))
    return runtime.spool.note(draft, profile=asdict(made)), made


def problems(draft: Draft, columns: Mapping[str, Any]) -> tuple[Problem, ...]:
    """What calibration would refuse or warn of, with the chosen columns."""
    source = source_of(draft.upload, draft.filename, hints_of(columns))
    with named(draft.upload, draft.filename):
        if columns.get("labels") == "value":
            return run(value_problems, source, _roles(columns))
        return run(workflows.problems, source, _roles(columns), _missing_labels(columns))


def reading(draft: Draft, columns: Mapping[str, Any]) -> tuple[str, ...]:
    """What was understood of the chosen columns, in sentences."""
    source = source_of(draft.upload, draft.filename, hints_of(columns))
    with named(draft.upload, draft.filename):
        return run(workflows.reading, source, columns["score"], columns["label"])


def problem_rows(runtime: Runtime, draft: Draft) -> Path:
    """Every row that stands in the way, as a workbook of its own."""
    columns = draft.notes["columns"]
    path = runtime.spool.new_path("xlsx")
    source = source_of(draft.upload, draft.filename, hints_of(columns))
    try:
        with named(draft.upload, draft.filename):
            run(workflows.write_problem_rows, source, _roles(columns), _missing_labels(columns), path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def group_names(draft: Draft, group: str) -> dict[str, int]:
    """The groups of a table and how many rows each has."""
    return run(workflows.group_names, draft.upload.path, group)


def _missing_labels(columns: Mapping[str, Any]) -> MissingLabels:
    """Where labels were drawn, an empty one is no problem."""
    return "unqualified" if columns.get("labels") == "drawn" else columns["missing_labels"]


def _roles(columns: Mapping[str, Any]) -> Roles:
    return Roles(columns["score"], columns["label"], columns["group"], columns["id"])
