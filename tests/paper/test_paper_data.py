"""People from files in the Census Bureau's format, and made-up people."""

from __future__ import annotations

import zipfile

import duckdb
import numpy as np
import pytest

import surelist as sl
from paper import data, reproduce, synthetic
from tests.helpers.pums_sample import HEADER, PEOPLE


def write(path, lines=(HEADER, *PEOPLE)):
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_person_file_as_published(tmp_path):
    people = data.load([write(tmp_path / "psam_p10.csv")])
    assert people.names == data.FEATURES
    assert people.source == "psam_p10.csv"
    assert people.qualified.tolist() == [False, True, False]  # ESR 6, 1, blank
    assert people.minority.tolist() == [True, False, False]
    child = dict(zip(people.names, people.features[2].tolist(), strict=True))
    assert child["AGEP"] == 4  # leading zeros are no octal
    assert child["MIL"] == child["DREM"] == 0  # blanks
    assert child["RELP"] == 2
    assert not people.synthetic


def test_zipped_states_are_read_one_after_another(tmp_path):
    write(tmp_path / "psam_p10.csv")
    with zipfile.ZipFile(tmp_path / "csv_pde.zip", "w") as archive:
        archive.write(tmp_path / "psam_p10.csv", "psam_p10.csv")
        archive.writestr("ACS2018_PUMS_README.pdf", "not a table")
    both = data.load([tmp_path / "csv_pde.zip", tmp_path / "psam_p10.csv"])
    assert both.qualified.tolist() == [False, True, False] * 2
    assert len(reproduce.people([str(tmp_path)], None, 0)) == 6  # a folder of files


def test_parquet_with_marks_for_blanks(tmp_path):
    path = tmp_path / "people.parquet"
    columns = ", ".join(
        f"{value} AS {name}" for name, value in zip(data.FEATURES, [40, *[-1] * 14, 2], strict=True)
    )
    duckdb.execute(f"COPY (SELECT {columns}, 1 AS ESR) TO '{path}'")
    people = data.load([path])
    assert people.features.tolist() == [[40, *[0] * 14, 2]]


def test_fewer_features_are_told(tmp_path):
    header, *rows = (HEADER, *PEOPLE)
    people = data.load(
        [write(tmp_path / "psam_p10.csv", [header.replace("ANC", "X").replace("MIG", "Y"), *rows])]
    )
    assert people.absent == ("MIG", "ANC")
    assert people.features.shape == (3, 14)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["RT,SERIALNO,NP", "H,1,2"], "expected the columns AGEP, RAC1P, ESR, found RT, SERIALNO, NP"),
        (
            [HEADER, PEOPLE[0], PEOPLE[1].replace(",18,1,1,", ",eighteen,1,1,")],
            "column AGEP: .*'eighteen' at row 1",
        ),
        ([HEADER], "no people in"),
        (["<html><body>503</body></html>"], "not a PUMS person file"),
    ],
)
def test_other_files_are_refused(tmp_path, lines, message):
    with pytest.raises(sl.InvalidInput, match=message):
        data.load([write(tmp_path / "psam_p10.csv", lines)])


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(sl.InvalidInput, match="no such file"):
        data.load([tmp_path / "nowhere.csv"])
    (tmp_path / "half.zip").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(sl.InvalidInput, match="not a complete ZIP"):
        data.load([tmp_path / "half.zip"])
    write(tmp_path / "psam_p10.csv")
    write(tmp_path / "psam_p15.csv", [HEADER.replace("ANC", "X"), *PEOPLE])
    with pytest.raises(sl.InvalidInput, match="files of the same years together"):
        data.load([tmp_path / "psam_p10.csv", tmp_path / "psam_p15.csv"])


def test_synthetic_people_have_the_published_margins():
    people = synthetic.make(300_000, seed=1)
    assert people.synthetic
    assert "synthetic" in people.source
    column = {name: people.features[:, place] for place, name in enumerate(people.names)}
    assert abs(people.qualified.mean() - 0.454) < 0.015
    assert abs(people.minority.mean() - 0.175) < 0.005
    man = column["SEX"] == 1
    for band, (low, high) in enumerate(zip(synthetic.AGE_FROM, synthetic.AGE_TO, strict=True)):
        inside = (column["AGEP"] >= low) & (column["AGEP"] <= high)
        assert abs(inside.mean() - synthetic.AGE_SHARE[band]) < 0.005
        assert abs(people.qualified[inside & man].mean() - synthetic.EMPLOYED_MEN[band]) < 0.04
        assert abs(people.qualified[inside & ~man].mean() - synthetic.EMPLOYED_WOMEN[band]) < 0.04
        assert abs((column["DIS"][inside] == 1).mean() - synthetic.DISABLED[band]) < 0.01
    assert not people.qualified[column["AGEP"] < 16].any()
    again = synthetic.make(300_000, seed=1)
    assert again.fingerprint() == people.fingerprint()
    assert synthetic.make(1000, seed=2).fingerprint() != synthetic.make(1000, seed=1).fingerprint()
    assert people.first(10).features.shape == (10, 16)
    assert np.array_equal(people.first(10).qualified, people.qualified[:10])
