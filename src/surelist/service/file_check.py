"""A file looked over before anything is decided: its columns, what was understood, what stands in the way.

Heavy parts run in workers, each once per upload: what a column holds waits in the draft.
"""

from __future__ import annotations

from pathlib import Path

from surelist._check import MissingLabels
from surelist.service.choices import ChosenColumns
from surelist.service.jobs import Problem, named, source_of
from surelist.service.runtime import Runtime
from surelist.service.uploads import Draft, removing
from surelist.service.workers import run
from surelist.workflows import file_check as workflows
from surelist.workflows.tables import value_problems

Profile = workflows.Profile


def profile(runtime: Runtime, draft: Draft) -> tuple[Draft, Profile]:
    """ChosenColumns, first rows and good guesses: what a person confirms. Asked of the file once."""
    if draft.profile is not None:
        return draft, draft.profile
    with named(draft.upload, draft.filename):
        made = run(workflows.profile, source_of(draft.upload, draft.filename))
    return runtime.spool.note(draft, profile=made), made


def problems(draft: Draft, columns: ChosenColumns) -> tuple[Problem, ...]:
    """What calibration would refuse or warn of, with the chosen columns."""
    source = source_of(draft.upload, draft.filename, columns.hints)
    with named(draft.upload, draft.filename):
        if columns.labels == "amounts":
            return run(value_problems, source, columns.roles)
        return run(workflows.problems, source, columns.roles, _missing_labels(columns))


def reading(draft: Draft, columns: ChosenColumns) -> tuple[str, ...]:
    """What was understood of the chosen columns, in sentences."""
    source = source_of(draft.upload, draft.filename, columns.hints)
    with named(draft.upload, draft.filename):
        return run(workflows.reading, source, str(columns.score), str(columns.label))


def problem_rows(runtime: Runtime, draft: Draft, columns: ChosenColumns) -> Path:
    """Every row that stands in the way, as a workbook of its own."""
    path = runtime.spool.new_path("xlsx")
    source = source_of(draft.upload, draft.filename, columns.hints)
    with removing(path), named(draft.upload, draft.filename):
        run(workflows.write_problem_rows, source, columns.roles, _missing_labels(columns), path)
    return path


def group_names(draft: Draft, group: str) -> dict[str, int]:
    """The groups of a table and how many rows each has."""
    return run(workflows.group_names, draft.upload.path, group)


def _missing_labels(columns: ChosenColumns) -> MissingLabels:
    """Where labels were drawn, an empty one is no problem."""
    return "unqualified" if columns.labels == "drawn" else columns.missing_labels
