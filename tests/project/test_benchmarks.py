"""The table of limits, and attacks: what is broken is said and fails the command; the page holds a table."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def limits(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("limits")


@pytest.fixture
def attack(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("attack")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_attack_runs_through_the_public_interface(attack):
    for each in (*attack.DRAWN, *attack.NEW):
        assert 0 <= each.false(1, seed=1) <= 1, each.name


def test_an_attack_that_breaks_the_joint_bound_is_said_and_fails(attack, monkeypatch, capsys):
    def kept(rng):
        return lambda: 0.0

    def breaks(rng):
        return lambda: 1.0

    for last, code in ((kept, 0), (breaks, 1)):
        monkeypatch.setattr(attack, "DRAWN", (attack.Attack("a", kept), attack.Attack("b", last)))
        monkeypatch.setattr(attack, "NEW", ())
        monkeypatch.setattr("sys.argv", ["attack.py", "--runs", "20"])
        with pytest.raises(SystemExit) as ended:
            attack.main()
        assert ended.value.code == code
        assert ("broken by breaks" in capsys.readouterr().out) == bool(code)


def test_a_broken_limit_is_said_and_fails(limits, monkeypatch, capsys):
    figure = limits.Figure
    kept = [figure("a", "here", 1.2, 1.2), figure("b", "there", 7.0)]
    for figures, code in ((kept, 0), ([*kept, figure("c", "here", 1.21, 1.2)], 1)):
        monkeypatch.setattr(limits, "measured", lambda large, figures=figures: figures)
        monkeypatch.setattr("sys.argv", ["limits.py"])
        with pytest.raises(SystemExit) as ended:
            limits.main()
        assert bool(ended.value.code) == bool(code)
        assert capsys.readouterr().out.count("broken") == code


def test_the_page_is_written_with_table_and_plot(limits, monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "DOCS", tmp_path)
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{limits.BEGIN}\nold\n{limits.END}\nafter\n")
    limits.write([limits.Figure("a", "here", 1.3, 1.2), limits.Figure("b", "there", 1.0, 2)], "make bench")
    text = page.read_text()
    assert "| a | here | 1.30 | 1.2 | **broken** |" in text
    assert "| b | there | 1.00 | 2 | kept |" in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "old" not in text
    assert (tmp_path / "performance.png").stat().st_size > 1000


def test_the_page_says_of_each_figure_whether_its_limit_is_kept():
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| [^|]+ \| [^|]+ \| ([0-9.,-]+) \| ([0-9.]+) \| (\S+) \|$", text, re.M)
    assert lines
    for value, limit, verdict in lines:
        assert verdict == ("**broken**" if float(value.replace(",", "")) > float(limit) else "kept")


@pytest.fixture
def budget_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("budget_page")


def test_the_page_of_label_budgets_shows_the_figures_that_are_kept(budget_page, tmp_path):
    """Made by `python benchmarks/budget_page.py`."""
    figures = budget_page.lines(budget_page.FIGURES.read_text(encoding="utf-8"))
    text = budget_page.PAGE.read_text(encoding="utf-8")
    shown = text.partition(budget_page.BEGIN)[2].partition(budget_page.END)[0]
    assert shown.strip() == budget_page.table(figures)
    assert all(0 <= each.false <= each.runs for each in figures)
    budget_page.draw(figures, tmp_path / "budget.png")
    assert (tmp_path / "budget.png").stat().st_size > 1000


def test_a_later_run_replaces_its_own_figures_of_a_label_budget_alone(budget_page):
    merged = importlib.import_module("budget").merged
    before = "set | promise | labels | rule | runs\na | recall | 5 | us | 40\na | recall | 5 | them | 6\n"
    said = "set | promise | labels | rule | runs\na | recall | 5 | us | 100\nb | recall | 5 | us | 100"
    assert merged("", said) == said + "\n"
    assert merged(before, said).splitlines()[1:] == [
        "a | recall | 5 | us | 100", "a | recall | 5 | them | 6", "b | recall | 5 | us | 100",
    ]  # fmt: skip


def test_two_workers_are_held_to_what_the_job_by_hand_gains(limits):
    spark = limits.spark_cluster
    counted = dict.fromkeys(spark.TOLD, 1.0)

    def turn(bare: float, ours: float) -> dict[str, dict[str, float]]:
        return {
            f"{job}, {who}": {**counted, "processor": 1.0, "seconds": seconds}
            for job in ("calibrate", "select")
            for who, seconds in (("bare", bare), ("ours", ours))
        }

    for two, broken in (((5, 5), 0), ((5, 6.3), 2), ((6.3, 9), 0)):
        turns = {spark.ONE: turn(10, 10), spark.TWO: turn(*two), spark.LOCAL: turn(1, 1)}
        figures = spark.compared(turns, "here")
        assert sum(each.broken for each in figures) == broken
        assert sum(each.limit is not None for each in figures) == (2 if two[0] == 5 else 0)


def test_pictures_of_promises_are_drawn_from_the_figures_that_are_kept(monkeypatch, tmp_path):
    """Made by `python benchmarks/promises_page.py`."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = importlib.import_module("promises_page")
    rows = page.read()
    assert all(0 <= each.false <= each.runs for each in rows)
    assert 7.0 < page.ideal() < 7.2
    for draw in (page.triage, page.common, page.noise):
        draw(rows, tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 1000
        (tmp_path / "picture.png").unlink()
