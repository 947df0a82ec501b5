"""``surelist list``: how many of this very pool's list are qualified."""

from __future__ import annotations

import json
import warnings

import numpy as np
import polars as pl
import pytest

import surelist as sl
from surelist.cli import run
from surelist.examples import population


@pytest.fixture
def files(tmp_path, monkeypatch):
    rng = np.random.default_rng(6)
    (scores, labels), (pool, _) = population(rng, 1_000), population(rng, 500)
    pl.DataFrame({"score": scores, "qualified": labels.astype(int)}).write_csv(tmp_path / "past.csv")
    pl.DataFrame({"score": pool}).write_csv(tmp_path / "pool.csv")
    monkeypatch.chdir(tmp_path)
    return scores, labels, pool


def test_every_length_or_one_is_answered_as_in_python(files, capsys):
    curve = sl.list_curve(*files)
    assert run(["list", "pool.csv", "--rows", "past.csv", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [each["at_least"] for each in said["points"]] == curve.at_least.tolist()
    assert [each["at_most"] for each in said["points"]] == curve.at_most.tolist()
    assert run(["list", "pool.csv", "--rows", "past.csv", "--size", "50"]) == 0
    assert "at least 31 qualified candidates are among them" in capsys.readouterr().out
    assert run(["list", "pool.csv", "--rows", "past.csv", "--size", "50", "--share", "0.9"]) == 3
    assert run(["list", "pool.csv", "--rows", "past.csv", "--share", "0.9"]) == 2


def test_the_pool_is_named_as_the_argument_that_it_is(files, capsys):
    for more in ([], ["--size", "50"]):
        assert run(["list", "past.csv", "--rows", "past.csv", *more]) == 2
        assert capsys.readouterr().err.startswith(
            "error: POOL: these scores hold some of the calibration rows"
        )


def test_a_pool_by_another_score_is_pointed_out(files, capsys):
    pl.DataFrame({"score": 100 * files[2]}).write_csv("percent.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run(["list", "percent.csv", "--rows", "past.csv"]) == 0
    assert "do not look like candidates of one population" in capsys.readouterr().err
