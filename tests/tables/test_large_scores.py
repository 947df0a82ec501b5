"""Whole numbers beyond 2^53 lose their order as floats: refused from arrays, tables and files alike."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import surelist as sl
from surelist._check import LOST
from tests.helpers.engines import Engine, arrow

LARGE = [*range(39), 2**53 + 1]
LABELS = [n % 2 for n in range(40)]
TARGET = sl.Expected(5, 100)


def test_whole_numbers_beyond_2_to_53_are_refused_everywhere_in_one_sentence(engine: Engine) -> None:
    table = engine.table(arrow({"score": LARGE, "label": LABELS}, score=pa.int64()))
    with pytest.raises(sl.InvalidInput, match=re.escape(LOST)):
        sl.calibrate(LARGE, LABELS, TARGET)
    for on_bad_rows in ("error", "drop"):
        with pytest.raises(sl.InvalidInput, match=f"column 'score': {re.escape(LOST)}.*: 1 row"):
            sl.calibrate_table(
                table, score="score", label="label", target=TARGET, on_bad_rows=on_bad_rows, **engine.options
            )


def test_a_list_is_not_made_of_such_scores_either(tmp_path: Path) -> None:
    policy = sl.calibrate(range(40), LABELS, sl.Expected(1, 100))
    pool = tmp_path / "pool.csv"
    pool.write_text("score\n1\n\n9007199254740993\n")
    for on_bad_rows in ("error", "drop"):
        with pytest.raises(sl.InvalidInput, match=f"{re.escape(LOST)}.*spreadsheet row 4"):
            sl.select_table(pool, policy, score="score", on_bad_rows=on_bad_rows)


@pytest.mark.parametrize("text", ["1e300", "9007199254740993.0", "9007199254740992", "-9007199254740992"])
def test_text_that_is_no_whole_number_beyond_2_to_53_is_a_score(tmp_path: Path, text: str) -> None:
    path = tmp_path / "past.csv"
    path.write_text("score,label\n" + "".join(f"{n},{n % 2}\n" for n in range(99)) + f"{text},1\n")
    policy = sl.calibrate_table(path, score="score", label="label", target=TARGET)
    assert policy.cutoffs[0].rows == 100


def test_large_whole_numbers_with_marks_between_thousands_are_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    path.write_text("score;label\n0,5;1\n1.234,5;0\n9.007.199.254.740.993;1\n")
    with pytest.raises(sl.InvalidInput, match=f"{re.escape(LOST)}.*spreadsheet row 4"):
        sl.calibrate_table(path, score="score", label="label", target=TARGET)


def test_large_whole_numbers_among_other_scores_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    rows = [f"0.{n:02},{n},{n % 2}" for n in range(39)]
    path.write_text("\n".join(["a,b,label", *rows, "0.5,9007199254740993,1\n"]))
    with pytest.raises(sl.InvalidInput, match=f"column 'b': {re.escape(LOST)}"):
        sl.calibrate_table(path, score=["a", "b"], label="label", target=TARGET)
