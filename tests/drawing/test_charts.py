"""Pictures as SVG text: what their axes say, and what is marked."""

from __future__ import annotations

import re
from pathlib import Path

import surelist as sl
from surelist.drawing.charts import (
    HEIGHT,
    RIGHT,
    Line,
    guarantee_chart,
    linear_chart,
    logarithmic_chart,
    reliability_chart,
)
from surelist.reports import pictures
from surelist.reports.evidence import CurvePoints, OwnCurve, RowsEvidence

TITLES = {"name": "n", "title": "t", "x_title": "Pools", "y_title": "Share"}
PROMISES = (
    sl.Expected(5, 100), sl.PerPool(5, 100), sl.Recall(0.9), sl.Precision(0.5), sl.Budget(10, 100), sl.NextPool(k=2),
    sl.NextPool(recall=0.5), sl.PoolAverage(3), sl.PoolAverage(3, of="value"), sl.Value(30, 100), sl.FalseShare(0.5),
)  # fmt: skip
UNDER = rf'<text class="tick" x="[\d.]+" y="{HEIGHT - 76 + 4}" dy="1em"[^>]*>([^<]+)<'


def test_pools_are_counted_in_whole_numbers():
    for pools, ticks in ((1, ["0", "1"]), (2, ["0", "1", "2"]), (12, ["0", "3", "6", "9", "12"])):
        drawn = [
            linear_chart([5.0] * pools, **TITLES),
            logarithmic_chart([1.5] * pools, 20.0, line_name="Alarm", **TITLES),
        ]
        for svg in drawn:
            assert re.findall(UNDER, svg) == ticks
            assert " 1 pools" not in svg


def test_the_last_tick_has_room_on_a_phone():
    """Letters are 31 units high there, and about .6 of that wide; the last tick is centred on the edge."""
    assert RIGHT + 1 > 5 * 0.56 * 31 / 2  # 1,000


def test_what_stands_beside_an_axis_has_room_on_a_phone():
    """Turned by a right angle and centred on the plot, it has 324 units for letters of 31."""
    point = {"list_size": [1.0], "value": [0.5], "threshold": [0.5], "per": 10.0, "chosen": (1.0, 0.5)}
    said = [dict(zip(("title", "axis", "share"), each.certified, strict=True)) for each in PROMISES]
    curves = [OwnCurve(**point, **each, of_pools=False) for each in said]
    drawn = [pictures.promise_chart(RowsEvidence(0, 10.0, {}, [], own=each)).svg for each in curves]
    drawn += [pictures.evidence([1.0], 20.0), pictures.lengths([5.0]), pictures.drifts([1.0])]
    drawn += [reliability_chart([])]
    for svg in drawn:
        assert len(re.search(r"rotate\(-90\)[^>]*>([^<]+)<", svg)[1]) <= 324 / (31 * 0.52)


def test_large_numbers_are_written_out_and_every_value_can_be_read_out():
    svg = linear_chart([1234567.0, 2345678.0], **TITLES)
    assert "e+" not in svg
    assert "data-points=" in svg
    assert 'class="hover"' in svg


def test_the_start_of_the_evidence_is_no_pool():
    svg = logarithmic_chart([3.0, 30.0], 20.0, line_name="Alarm", **TITLES)
    assert svg.count('class="mark"') == 2


def test_each_policy_side_by_side_is_ringed_at_its_promise():
    curve = CurvePoints([1.0, 2.0, 4.0], [0.5, 1.0, 2.0], [0.3, 0.2, 0.1])
    known = RowsEvidence(0, 50.0, {"exact": curve}, [])
    svg = pictures.curves([("one", known, (2.0, 1.0)), ("two", known, None)])
    assert svg.count('class="ring') == 1
    assert "one: 1 on a list of 2" in svg  # per 100
    assert "marked at 2 on 4" in svg
    assert "ring" not in guarantee_chart([Line("x", "a", [1.0], [1.0])], 10.0)


def test_a_phone_shows_every_third_bin_by_name():
    """Ten names of five letters would lie over one another; the style sheet hides those between."""
    bins = [{"high": i / 10, "share": 0.1, "share_low": 0.0, "share_high": 0.2} for i in range(1, 11)]
    svg = reliability_chart(bins)
    assert svg.count('class="tick between"') == 6
    for sheet in ("service/static/app.css", "reports/templates/report.css"):
        assert ".between { display: none; }" in (Path(sl.__file__).parent / sheet).read_text()
