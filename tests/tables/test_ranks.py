"""Who is at a rank: on every engine the rows of a plain sort, however scores are spread, tied or grouped."""

from __future__ import annotations

import numpy as np
import pytest

import surelist as sl
from surelist.tables import order_statistics, ranks
from surelist.tables.engines.base import Engine
from surelist.tables.engines.spark import Spark
from surelist.tables.sources import open_table
from surelist.workflows import label_tables

SIZE = 600


def spreads() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "even": rng.random(SIZE),
        "few values": rng.integers(0, 4, SIZE).astype(float),
        "one value": np.zeros(SIZE),
        "two decimals": np.round(rng.random(SIZE), 2),
        "an outlier": np.append(rng.random(SIZE - 1), 1e300),
        "all magnitudes": rng.standard_normal(SIZE) * 10.0 ** rng.integers(-300, 300, SIZE),
        "both ends": np.append(rng.random(SIZE - 2) * 1e-310, [1.7e308, -1.7e308]),
        "half tied": np.append(np.zeros(SIZE // 2), rng.standard_exponential(SIZE - SIZE // 2)),
    }


SPREADS = spreads()


@pytest.fixture
def tight(monkeypatch):
    """Bins and fetches so small that six hundred rows need every step."""
    monkeypatch.setattr(order_statistics, "LINES", 256)
    monkeypatch.setattr(order_statistics, "RANGES", 8)
    monkeypatch.setattr(order_statistics, "SPLITS", 3)
    monkeypatch.setattr(order_statistics, "DEPTH", 1 << 12)
    monkeypatch.setattr(Engine, "few", 30)
    monkeypatch.setattr(Spark, "few", 30)


def check(found: ranks.RankedRows, scores: np.ndarray, members: np.ndarray, asked: np.ndarray) -> None:
    order = members[np.lexsort((members, -scores[members]))]
    assert np.array_equal(found.scores, scores[order[asked]])
    assert found.reaching.tolist() == [(scores[members] >= each).sum() for each in found.scores]
    if found.rows is not None:
        assert np.array_equal(found.rows, order[asked])
    else:  # ties in an order of their own: other ranks, other rows
        assert found.ids is not None
        at = np.array([int(each) for each in found.ids])
        assert np.array_equal(scores[at], found.scores)
        assert len(set(at.tolist())) == len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("held", [0, 1 << 24])
def test_ranks_are_those_of_a_sort_however_scores_are_spread(spread, held, tight, monkeypatch):
    import duckdb
    import polars as pl

    scores = SPREADS[spread]
    frame, rng = pl.DataFrame({"score": scores}), np.random.default_rng(6)
    monkeypatch.setattr(label_tables, "MOST_HELD", held)
    for table in (frame.lazy(), duckdb.connect(":memory:").from_arrow(frame.to_arrow())):
        ranked = label_tables.TableCollection(open_table(table), "score", None, None)
        asked = rng.permutation(SIZE)[:90]
        check(ranked.at(None, asked), scores, np.arange(SIZE), asked)


@pytest.mark.parametrize("spread", ["even", "few values"])
def test_ranks_on_every_engine(any_engine, spread, tight):
    scores = SPREADS[spread]
    groups = np.where(np.arange(SIZE) % 3 == 0, "a", "b")
    data = {"id": list(range(SIZE)), "score": scores.tolist(), "group": groups.tolist()}
    table = open_table(any_engine.table(data), any_engine.reader)
    ranked = ranks.RankedTable(table, score="score", id="id", group="group")
    assert ranked.sizes == {"a": 200, "b": 400}
    asked = np.array([0, 7, 8, 9, 150, 199])
    found = ranked.at("b", asked)
    check(found, scores, np.flatnonzero(groups == "b"), asked)
    if found.rows is None:  # asking again and for more gives the same rows, and each rank another
        every = ranked.at("b", np.arange(400))
        assert every.ids is not None
        assert len(set(every.ids)) == 400
        assert [every.ids[rank] for rank in asked] == found.ids


def test_little_comes_back_from_many_rows(monkeypatch):
    """100,000 rows, 300 labels: what is gathered is a small part of the table."""
    import polars as pl

    from surelist.tables.engines.polars import Polars

    gathered: list[int] = []
    plain = Polars.columns

    def counting(self, frame, numbers):
        fetched = plain(self, frame, numbers)
        gathered.append(len(next(iter(fetched.values()))))
        return fetched

    monkeypatch.setattr(label_tables, "MOST_HELD", 0)
    monkeypatch.setattr(Polars, "few", 5000)
    monkeypatch.setattr(Polars, "columns", counting)
    scores = np.random.default_rng(7).standard_normal(100_000)
    work = sl.label_table(pl.LazyFrame({"score": scores}), sl.Expected(5, 100), score="score", labels=300)
    assert len(work.ask()) == 75
    assert len(gathered) >= 2
    assert gathered[-1] <= 5000


@pytest.mark.parametrize("held", [0, 1 << 24])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_what_is_gathered_comes_back_as_arrays(engine, held, tmp_path, monkeypatch):
    """Tuples of ten thousands of lines would take longer than the engine's passes."""
    import polars as pl

    from surelist.tables.engines.duckdb import DuckDB
    from surelist.tables.engines.polars import Polars

    kind = {"polars": Polars, "duckdb": DuckDB}[engine]
    lines, rows = [], kind.rows

    def counting(self, frame):
        lines.append(rows(self, frame))
        return lines[-1]

    monkeypatch.setattr(label_tables, "MOST_HELD", held)
    monkeypatch.setattr(kind, "rows", counting)
    scores = np.random.default_rng(8).random(50_000)
    pl.DataFrame({"score": scores}).write_parquet(tmp_path / "all.parquet")
    work = sl.label_table(tmp_path / "all.parquet", sl.AtLeast(50), score="score", labels=1200, engine=engine)
    assert len(work.drawn) > 1200
    assert sum(map(len, lines)) == 2  # how many rows there are, before and after


def test_bad_rows_are_named_before_anything_is_drawn():
    import polars as pl

    with pytest.raises(sl.InvalidInput, match="column 'score': expected a finite number in every row"):
        sl.label_table(pl.LazyFrame({"score": [0.5, None]}), sl.AtLeast(1), score="score", labels=1)
    with pytest.raises(sl.InvalidInput, match="has no rows"):
        sl.label_table(pl.LazyFrame({"score": [0.5]}).head(0), sl.AtLeast(1), score="score", labels=1)
    two = pl.DataFrame({"score": [0.5, 0.6], "id": ["x", "x"]})
    with pytest.raises(sl.InvalidInput, match="expected unique candidate ids, got 'x' twice"):
        sl.label_table(two, sl.AtLeast(1), score="score", id="id", labels=2)
    two = pl.DataFrame({"score": [0.5, 0.6], "id": ["x", None]})
    with pytest.raises(sl.InvalidInput, match="has no id; everyone needs one"):
        sl.label_table(two, sl.AtLeast(1), score="score", id="id", labels=2)


@pytest.mark.parametrize("target", [sl.Precision(0.7), sl.Triage(0.7, reject_recall=0.7)], ids=repr)
def test_scores_that_are_looked_at_before_the_draw_make_no_id_a_repeated_one(any_engine, target):
    data = {"id": list(range(SIZE)), "score": SPREADS["even"].tolist()}
    asked = {"score": "score", "id": "id", "labels": 120, "engine": any_engine.reader}
    work = sl.label_table(any_engine.table(data), target, **asked)
    names = work.ids(work.ask())
    assert len(set(names)) == len(names) > 0
    best = np.argsort(-SPREADS["even"], kind="stable")[:2]
    data["id"][best[1]] = data["id"][best[0]]  # both are looked at in any case
    with pytest.raises(sl.InvalidInput, match=f"'{best[0]}'"):
        sl.label_table(any_engine.table(data), target, **asked)


@pytest.mark.parametrize("held", [0, 1 << 24])
def test_a_table_that_changes_while_it_is_asked_is_noticed(tmp_path, held, monkeypatch):
    import polars as pl

    path = tmp_path / "all.csv"
    pl.DataFrame({"score": SPREADS["even"]}).write_csv(path)
    monkeypatch.setattr(label_tables, "MOST_HELD", held)
    ranked = label_tables.TableCollection(open_table(path), "score", None, None)
    pl.DataFrame({"score": SPREADS["even"][1:]}).write_csv(path)
    with pytest.raises(sl.InvalidInput, match="gave other rows when it was asked again"):
        ranked.at(None, np.arange(20))


def test_the_whole_way_on_spark(spark_session, tmp_path):
    """A Spark table from the first draw to a list with its control sample; rows are known by their ids."""
    rng = np.random.default_rng(8)
    scores, truth = _population(rng)
    names = [f"c{row}" for row in range(len(scores))]
    rows = list(zip(names, np.round(scores, 2).tolist(), strict=True))
    frame = spark_session.createDataFrame(rows, "name string, score double")
    with pytest.raises(sl.InvalidInput, match="has no row order, so drawn rows are known by their ids"):
        sl.label_table(frame, sl.AtLeast(20), score="score", labels=60)
    work = sl.label_table(frame, sl.AtLeast(20), score="score", id="name", labels=60)
    label = dict(zip(names, truth.tolist(), strict=True))
    asked: list[int] = []
    while len(new := work.ask()):
        asked += new.tolist()
        work.tell(new, [label[name] for name in work.ids(new)])
    assert len(asked) == len(set(work.ids(asked))) == 60
    listed = frame.filter(frame.score >= work.policy.threshold).collect()
    assert len(listed) >= 20
    path = tmp_path / "work.json"
    work.save(path)
    assert sl.Labelling.load(path).policy.threshold == work.policy.threshold


def _population(rng):
    from surelist import examples

    return examples.population(rng, 2000)


def test_spark_at_the_command_line(spark_session, tmp_path, monkeypatch, capsys):
    import csv

    from surelist import cli

    monkeypatch.chdir(tmp_path)
    scores, truth = _population(np.random.default_rng(9))
    groups = np.where(np.arange(2000) % 2 == 0, "a", "b")
    rows = list(zip(range(2000), scores.tolist(), groups.tolist(), strict=True))
    spark_session.createDataFrame(rows, "number long, score double, site string").write.parquet(
        (tmp_path / "all").as_uri()
    )
    start = [
        "label",
        "start",
        "all",
        "--engine",
        "spark",
        "--id",
        "number",
        "--recall",
        "0.5",
        "--labels",
        "400",
    ]
    assert cli.run([*start, "--group", "site", "--purpose", "a test", "-o", "work.json"]) == 0
    labelled = []
    while len(sl.Labelling.load("work.json").ask()):
        assert cli.run(["label", "next", "work.json", "-o", "sheet.csv"]) == 0
        with open("sheet.csv", newline="") as file:
            sheet = list(csv.DictReader(file))
        for row in sheet:
            row["label"] = str(int(truth[int(row["number"])]))
        with open("sheet.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, sheet[0].keys())
            writer.writeheader()
            writer.writerows(sheet)
        assert cli.run(["label", "record", "work.json", "sheet.csv"]) == 0
        labelled += sheet
    assert len(labelled) == 400
    assert cli.run(["label", "status", "work.json", "--shortlist", "list.parquet"]) == 0, capsys.readouterr()
    listed = {
        row.number for row in spark_session.read.parquet((tmp_path / "list.parquet").as_uri()).collect()
    }
    work = sl.Labelling.load("work.json")
    above = {row for row in range(2000) if scores[row] >= work.policy.thresholds[groups[row]]}
    on, off = ({int(row["number"]) for row in labelled if row["label"] == label} for label in "10")
    assert listed == (above | on) - off
