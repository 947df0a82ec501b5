"""What tools that ask a language model write, as a table of rows with the judge's verdict as a score.

JSON Lines and tables with a column of verdicts; the logs of Inspect and promptfoo and the output of DocETL,
which are plain JSON. The table is written beside the labelling's state, as CSV.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from surelist.errors import InvalidInput
from surelist.lifecycle.labelling_start import judge_scores
from surelist.tables.arrays import read_text
from surelist.tables.rows import count_rows, rows_at, write_sheet
from surelist.tables.sources import open_table

SCORE = "surelist_score"


def judged_table(source: Path, judge: str, ident: str | None, output: Path) -> Path:
    """Write the rows of ``source`` with a score from the column ``judge``; returns where."""
    if source.suffix == ".json":
        records = _records(source)
        names = list(dict.fromkeys(name for record in records for name in record))
        for name in (judge, ident):
            if name is not None and name not in names:
                raise InvalidInput(f"column {name!r}", f"{source} has {', '.join(names)}.")
        rows: list[Any] = [[record.get(name) for name in names] for record in records]
        verdicts = [record.get(judge) for record in records]
        ids = [record.get(ident) for record in records] if ident else None
    else:
        table = open_table(source)
        names = list(table.columns)
        texts = read_text(table, {"judge": judge} | ({"id": ident} if ident else {}))
        verdicts, ids = texts["judge"], texts.get("id")
        rows = rows_at(table, range(count_rows(table)))
    scores = judge_scores(verdicts, ids)
    body = [[*row, repr(float(score))] for row, score in zip(rows, scores, strict=True)]
    write_sheet(output, [*names, SCORE], body, [str(source)])
    return output


def _records(source: Path) -> list[dict[str, Any]]:
    """One flat record for each answer of a log."""
    try:
        held = json.loads(source.read_text(encoding="utf-8"))
    except ValueError as error:
        said = f"is no JSON ({error}); answers line by line are named .jsonl."
        raise InvalidInput(str(source), said) from None
    if isinstance(held, list):  # DocETL: the output is a list of records
        found = held
    elif isinstance(held, dict) and isinstance(held.get("samples"), list):
        found = [_inspect(each) for each in held["samples"]]
    elif isinstance(held, dict) and "results" in held:
        inner = held["results"]
        found = [_promptfoo(each) for each in (inner["results"] if isinstance(inner, dict) else inner)]
    else:
        found = []
    if not found or not all(isinstance(each, dict) for each in found):
        raise InvalidInput(
            str(source),
            "expected a list of records (DocETL), a log of Inspect (samples) or one of promptfoo (results).",
        )
    return [{name: _flat(value) for name, value in each.items()} for each in found]


def _inspect(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample with the value of each of its scores: C, I, P or a number."""
    choices = (sample.get("output") or {}).get("choices") or [{}]
    answer = (choices[0].get("message") or {}).get("content")
    scores = {name: (each or {}).get("value") for name, each in (sample.get("scores") or {}).items()}
    first = next(iter(scores.values()), None)
    parts = {"id": sample.get("id"), "input": sample.get("input"), "answer": answer, "verdict": first}
    return {**parts, **{f"score {name}": value for name, value in scores.items()}}


def _promptfoo(result: dict[str, Any]) -> dict[str, Any]:
    output = (result.get("response") or {}).get("output")
    parts = {"answer": output, "verdict": result.get("success"), "score": result.get("score")}
    return {**(result.get("vars") or {}), **parts}


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
