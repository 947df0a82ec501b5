"""The audit report: its numbers against independent ones, its law-shaped tables, its self-containment."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from scipy import stats

from surelist import Expected, Groups, Hash, bounds, calibrate, examples
from surelist.cli import run
from surelist.drawing import charts
from surelist.errors import InvalidInput
from surelist.reports import audit, report
from surelist.reports.report import summarise
from surelist.workflows import tables as workflows
from surelist.workflows.files import escape_cell
from tests.helpers.service import csv_text


@pytest.mark.parametrize(("n", "count"), [(10, 0), (10, 10), (50, 7), (1000, 3), (1, 1)])
def test_intervals_are_those_of_scipy(n, count):
    low, high = bounds.exact_interval(n, count, 0.05)
    wanted = stats.binomtest(count, n).proportion_ci(0.95, method="exact")
    assert low == pytest.approx(wanted.low, abs=1e-7)
    assert high == pytest.approx(wanted.high, abs=1e-7)


def test_intervals_cover_at_every_rate():
    """By enumeration: no rate is missed more often than alpha."""
    n, alpha = 40, 0.1
    intervals = [bounds.exact_interval(n, count, alpha) for count in range(n + 1)]
    for rate in np.linspace(0.001, 0.999, 199):
        missed = [count for count, (low, high) in enumerate(intervals) if not low <= rate <= high]
        assert stats.binom.pmf(missed, n, rate).sum() <= alpha


def test_ratio_intervals_cover_together_with_their_reference():
    """By enumeration over two categories: the true ratio lies in its interval as often as it says."""
    n, alpha, rates = 25, 0.05, (0.3, 0.5)
    missed = 0.0
    for a in range(n + 1):
        for b in range(n + 1):
            table = audit.impact_table(("x",), {("a",): (n, a), ("b",): (n, b)}, 1 - alpha)
            true = dict(zip("ab", rates, strict=True))
            best = next((c for c in table.categories if c.reference), None)
            for each in table.categories:
                if best is None or each.reference:
                    continue
                wanted = true[each.names[0]] / true[best.names[0]]
                high = np.inf if each.ratio_high is None else each.ratio_high
                if not each.ratio_low <= wanted <= high:
                    missed += stats.binom.pmf(a, n, rates[0]) * stats.binom.pmf(b, n, rates[1])
    assert missed <= alpha


def test_the_table_follows_local_law_144():
    counts: dict[tuple[str, ...], tuple[int, int]] = {
        ("f",): (400, 40), ("m",): (500, 100), ("x",): (10, 9), ("unknown",): (90, 5),
    }  # fmt: skip
    table = audit.impact_table(("sex",), counts)
    rows = {each.names[0]: each for each in table.categories}
    assert [each.names[0] for each in table.categories][-1] == "unknown"
    assert rows["m"].reference  # x was selected more often, but is under 2 %
    assert rows["x"].small
    assert not rows["f"].small
    assert rows["f"].ratio == pytest.approx(0.1 / 0.2)
    assert rows["m"].ratio == 1.0
    assert rows["unknown"].ratio is None
    assert rows["unknown"].candidates == 90
    assert sum(each.candidates for each in table.categories) == 1000


def test_two_percent_is_not_under_two_percent():
    table = audit.impact_table(("g",), {("a",): (20, 1), ("b",): (980, 1)})
    assert [each.small for each in table.categories] == [False, False]
    table = audit.impact_table(("g",), {("a",): (19, 1), ("b",): (981, 1)})
    assert [each.small for each in table.categories] == [True, False]


def test_nobody_selected_has_no_reference():
    table = audit.impact_table(("g",), {("a",): (20, 0), ("b",): (30, 0)})
    assert not any(each.reference for each in table.categories)
    assert audit.impact_table(("g",), {}).categories == ()
    with pytest.raises(InvalidInput):
        audit.impact_table(("g",), {("a",): (1, 2)})


def test_score_bins_hold_every_row_once_and_keep_ties_together():
    scores, labels = examples.population(np.random.default_rng(0), 1000)
    bins = audit.score_bins(scores.round(2), labels)
    assert sum(each.rows for each in bins) == 1000
    assert sum(each.qualified for each in bins) == labels.sum()
    assert all(a.high < b.low for a, b in itertools.pairwise(bins))
    one = audit.score_bins(np.full(7, 0.5), np.array([1, 0, 0, 1, 0, 0, 0]))
    assert [(each.rows, each.qualified) for each in one] == [(7, 2)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "past.csv").write_text(csv_text(2000, labelled=True))
    (folder / "pool.csv").write_text(csv_text(300, labelled=False, seed=1))
    policy = workflows.calibrate(
        folder / "past.csv", score="score", label="qualified", target=Expected(5, 100)
    )
    policy.save(folder / "policy.json")
    return folder


@pytest.mark.slow
def test_the_command_writes_a_self_contained_report(files, tmp_path):
    output = tmp_path / "report.html"
    arguments = [
        "report",
        str(files / "policy.json"),
        "--past",
        str(files / "past.csv"),
        "--pool",
        str(files / "pool.csv"),
    ]
    assert run([*arguments, "--attribute", "site", "--attribute", "age", "-o", str(output)]) == 0
    html = output.read_text()
    assert not re.search(r"<script|<link[^>]*stylesheet|src=|@import|url\(", html)
    for part in ("The promise", "Selection rates by site", "Selection rates by site × age", "Impact ratio",
                 "Guarantee curve", "Calibration curve", "SHA-256", "independent auditor"):  # fmt: skip
        assert part in html
    assert not re.search(r"\b(pass(ed)?|compliant|four-fifths)\b", html.replace("passes or fails", ""), re.I)
    assert run([*arguments, "-o", str(tmp_path / "report.json")]) == 0
    assert run([*arguments, "-o", str(tmp_path / "report.txt")]) == 2
    assert run([*arguments, "--attribute", "nothing", "-o", str(output)]) == 2


@pytest.mark.slow
def test_the_report_as_pdf(files, tmp_path):
    output = tmp_path / "report.pdf"
    assert (
        run(["report", str(files / "policy.json"), "--past", str(files / "past.csv"), "-o", str(output)]) == 0
    )
    assert output.read_bytes().startswith(b"%PDF")


def test_names_and_groups_are_escaped():
    scores, labels = examples.population(np.random.default_rng(0), 2000)
    bad = "<img src=x onerror=alert(1)>"
    policy = calibrate(scores, labels, {bad: Expected(5, 100)}, groups=Groups([bad] * 2000, bad))
    html = report.render(summarise(policy, name=bad))
    assert bad not in html
    assert "&lt;img src=x" in html


def test_the_curve_is_drawn_as_steps_never_interpolated():
    line = charts.Line("exact", "a", [10, 20, 40], [1, 2, 4])
    path = re.search(r' d="([^"]*)"', charts.guarantee_chart([line], 100)).group(1)
    assert set(re.findall("[A-Z]", path)) == {"M", "H", "V"}
    frame = charts.Frame(100, 4)
    assert f"H{frame.x(20):.1f}V{frame.y(2):.1f}" in path


def test_pictures_have_a_text_alternative():
    svg = charts.guarantee_chart([charts.Line("a rule", "a", [1, 2], [0.5, 1.5])], 10, (2, 1.5))
    assert 'role="img"' in svg
    assert "1.5 on a list of 2" in svg
    assert charts.guarantee_chart([charts.Line("none", "a", [], [])], 10)


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+1", "'=1+1"), ("+cmd", "'+cmd"), ("-cmd", "'-cmd"), ("@sum", "'@sum"), ("\tx", "'\tx"), ("\r=1", "'\r=1"),
     ("-1.5", "-1.5"), ("+2e3", "+2e3"), ("plain", "plain"), ("", ""), ("a=b", "a=b")],
)  # fmt: skip
def test_spreadsheet_cells(cell, safe):
    assert escape_cell(cell) == safe


def test_a_report_shows_the_score_certified_with_its_range_and_auc_and_both_counts_of_tied_scores():
    scores, labels = examples.population(np.random.default_rng(6), 2000)
    tied = calibrate(scores.round(1), labels, Expected(5, 100))
    text = report.render(summarise(tied))
    step, about = tied.cutoffs[0].steps[0], tied.cutoffs[0].scores
    assert f"{about.lowest:.6g} to {about.highest:.6g} on the calibration rows, AUC {about.auc:.2f}" in text
    assert f"{step.reached} of {labels.sum()} qualified calibration rows" in text
    assert f"and {step.critical_count} were needed" in text
    assert "Ties at the threshold let in" in text
    wrong_way = report.render(summarise(calibrate(-scores, labels, Expected(5, 100))))
    assert "is it the right score column" in wrong_way


def test_nothing_says_that_everyone_at_the_threshold_of_a_hash_policy_is_shortlisted():
    scores, labels = examples.population(np.random.default_rng(6), 2000)
    policy = calibrate(scores.round(1), labels, Expected(5, 100), ties=Hash(np.arange(2000)))
    threshold = policy.cutoffs[0].steps[0].threshold
    for text in (report.render(summarise(policy)), repr(policy), policy._repr_html_(), policy.describe()):
        assert f"score >= {threshold:g}" not in text.replace("&gt;", ">")
        assert "the score is at or above the threshold" not in text
        assert "hash of the" in text
