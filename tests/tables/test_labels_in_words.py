"""Labels in words: several may mean qualified, and a word that nobody named is never counted in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import surelist as sl
from surelist.cli import run as command_line
from tests.helpers.engines import Engine, arrow

SCORES = [n / 200 for n in range(200)]
WORDS = ["Hired" if n % 3 == 0 else "Offer declined" if n % 3 == 1 else "Rejected" for n in range(200)]
LABELS = [int(word != "Rejected") for word in WORDS]
TARGET = sl.Expected(5, 100)
BOTH = ("Hired", "offer declined ")


def made(engine: Engine, words: list[str | None]) -> object:
    return engine.table(arrow({"score": SCORES, "label": words}, label=pa.string()))


def calibrate(table: object, **how: Any) -> sl.Policy:
    return sl.calibrate_table(table, score="score", label="label", target=TARGET, read=sl.Read(**how))


def test_several_labels_may_mean_qualified(any_engine: Engine) -> None:
    policy = calibrate(made(any_engine, WORDS), pos_label=BOTH, engine=any_engine.reader)
    assert policy.threshold == sl.calibrate(SCORES, LABELS, TARGET).threshold
    assert policy.cutoffs[0].qualified == sum(LABELS)
    assert policy.reading[-1] == (
        "label: 'Hired' and 'offer declined' mean qualified (134 rows); not qualified: 'Rejected' (66 rows)."
    )


def test_words_that_nobody_named_are_an_error_that_lists_them_with_counts(engine: Engine) -> None:
    words = ["yes" if n == 1 else "vielleicht" if n in (2, 5) else w for n, w in enumerate(WORDS)]
    table = made(engine, words)
    others = r"'Rejected' \(64 rows\), 'vielleicht' \(2 rows\), 'yes' \(1 row\)"
    with pytest.raises(sl.InvalidInput, match=rf"pos_label: .* also holds {others}\. .*neg_label="):
        calibrate(table, pos_label=BOTH, engine=engine.reader)
    with pytest.raises(sl.InvalidInput, match=r"also holds 'yes' \(1 row\)\."):
        calibrate(table, pos_label=BOTH, neg_label=["Rejected", "VIELLEICHT"], engine=engine.reader)
    policy = calibrate(
        table, pos_label=[*BOTH, "yes"], neg_label=["Rejected", "vielleicht", "never"], engine=engine.reader
    )
    assert policy.cutoffs[0].qualified == 134


def test_numbers_are_labels_too(tmp_path: Path) -> None:
    numbers = [{"Hired": 2, "Offer declined": 3, "Rejected": 1}[word] for word in WORDS]
    path = tmp_path / "past.csv"
    path.write_text("score,label\n" + "".join(f"{s},{n}.0\n" for s, n in zip(SCORES, numbers, strict=True)))
    for table in (pa.table({"score": SCORES, "label": numbers}), path):
        assert calibrate(table, pos_label=(2, 3)).cutoffs[0].qualified == sum(LABELS)
        with pytest.raises(sl.InvalidInput, match=r"also holds"):
            calibrate(table, pos_label=2)


def test_a_policy_remembers_all_its_labels(tmp_path: Path) -> None:
    table = pa.table({"score": SCORES, "label": WORDS})
    policy = calibrate(table, pos_label=BOTH, neg_label="Rejected")
    policy.save(tmp_path / "policy.json")
    again = sl.Policy.load(tmp_path / "policy.json")
    later = pa.table({"score": [each + 0.001 for each in SCORES], "label": WORDS})
    assert (
        sl.evaluate_table(later, again).to_dict()
        == sl.evaluate_table(later, again, read=sl.Read(pos_label=BOTH, neg_label=["Rejected"])).to_dict()
    )
    strange = pa.table({"score": SCORES[:3], "label": ["Hired", "Offer declined", "Pending"]})
    with pytest.raises(sl.InvalidInput, match="'Pending'"):
        sl.evaluate_table(strange, again)


def test_each_label_that_was_named_is_there() -> None:
    with pytest.raises(sl.InvalidInput, match="no row of column 'label' has 'Hird'"):
        calibrate(pa.table({"score": SCORES, "label": WORDS}), pos_label=("Offer declined", "Hird"))


def test_what_cannot_be_meant_is_refused() -> None:
    table = pa.table({"score": SCORES, "label": WORDS})
    with pytest.raises(sl.InvalidInput, match="neg_label: 'Hired' was said to mean qualified too"):
        calibrate(table, pos_label=BOTH, neg_label="hired")
    with pytest.raises(sl.InvalidInput, match="neg_label: goes with pos_label="):
        calibrate(table, neg_label="Rejected")
    with pytest.raises(sl.InvalidInput, match="pos_label: expected the value that means qualified, got None"):
        calibrate(table, pos_label=["Hired", None])


def test_a_word_for_no_label_is_a_label_where_it_is_named() -> None:
    words = ["n/a" if word == "Rejected" else word for word in WORDS]
    table = pa.table({"score": SCORES, "label": words})
    with pytest.raises(sl.InvalidInput, match="missing labels"):
        calibrate(table, pos_label=BOTH)
    assert calibrate(table, pos_label=BOTH, neg_label="n/a").threshold is not None


def test_a_second_pos_label_does_not_replace_the_first(tmp_path: Path, capsys) -> None:
    path, output = tmp_path / "past.csv", tmp_path / "policy.json"
    path.write_text("score,label\n" + "".join(f"{s},{w}\n" for s, w in zip(SCORES, WORDS, strict=True)))
    asked = [
        "calibrate",
        str(path),
        "--label",
        "label",
        "--expect",
        "5",
        "--pool-size",
        "100",
        "-o",
        str(output),
    ]
    assert command_line([*asked, "--pos-label", "Hired"]) == 2
    said = capsys.readouterr().err
    assert "'Offer declined' (67 rows), 'Rejected' (66 rows)" in said
    assert "--pos-label" in said
    assert "--neg-label" in said
    assert not output.exists()
    assert command_line([*asked, "--pos-label", "Hired", "--pos-label", "Offer declined"]) == 0
    assert sl.Policy.load(output).cutoffs[0].qualified == sum(LABELS)
    again = ["evaluate", str(path), "--policy", str(output)]
    assert command_line([*again, "--pos-label", "Hired", "--neg-label", "Rejected"]) == 2
