"""Objects draw and describe themselves: the numbers in a picture are those of the object."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surelist as sl
from surelist.promises.curve import curve_by
from tests.helpers.simulated_pools import pools


@pytest.fixture(scope="module")
def rows():
    return next(pools(np.random.default_rng(2), 1, 1000))


def test_a_curve_draws_its_points_and_describes_them(rows, tmp_path):
    curve = sl.guarantee_curve(*rows)
    axes = curve.plot(path=tmp_path / "curve.svg")
    assert b"</svg>" in (tmp_path / "curve.svg").read_bytes()
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), curve.list_size)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), curve.qualified)
    assert axes.get_title(loc="left").startswith("All points hold at once")
    lines = curve.describe(most=7).splitlines()
    assert lines[0].startswith("Every line holds at once")
    assert len(lines) == 3 + 7
    assert float(lines[-1].split()[0]) == pytest.approx(curve.list_size[-1], abs=0.05)


def test_a_pointwise_curve_does_not_claim_to_hold_at_once(rows):
    curve = curve_by("exact", *rows)
    assert "holds by itself" in curve.describe()
    assert curve.plot().get_title(loc="left").startswith("Each point holds by itself")


def test_a_campaign_draws_its_lists_and_its_alarm(rows, tmp_path):
    scores, labels = rows
    campaign = sl.Campaign(scores, labels, sl.Expected(5, 100), schedule=(2, 9))
    rng = np.random.default_rng(3)
    while not campaign.alarm:
        listed = campaign.screen(rng.normal(size=100))
        campaign.review(campaign.pools, np.zeros(int(listed.sum())))
    axes: Any = campaign.plot(path=tmp_path / "campaign.png")
    assert (tmp_path / "campaign.png").stat().st_size > 5000
    assert [line.get_ydata()[0] for line in axes.lines[1::2]][: len(campaign.updates)] == pytest.approx(
        [update.floor for update in campaign.updates]
    )
    assert axes.lines[-1].get_xdata()[0] == campaign.monitor.raised.pools
    assert "ALARM" in campaign.describe()
    assert campaign.describe().splitlines()[0].split()[:2] == ["from", "pool"]


def test_a_monitor_draws_its_intervals_beside_the_promise(rows, tmp_path):
    scores, labels = rows
    monitor = sl.Monitor(sl.calibrate(scores, labels, sl.Expected(5, 100)))
    monitor.observe(qualified=6, pool_size=100)
    axes: Any = monitor.plot(path=tmp_path / "monitor.pdf")
    assert (tmp_path / "monitor.pdf").read_bytes().startswith(b"%PDF")
    (segment,) = axes.collections[0].get_segments()
    assert segment[:, 1].tolist() == pytest.approx(list(monitor.interval))
    assert axes.collections[1].get_offsets()[0][1] == pytest.approx(0.05)


def test_drift_draws_both_shares(rows):
    scores, _ = rows
    shift = sl.drift(scores, scores[:200] + 1)
    bars: Any = shift.plot().patches
    assert [bar.get_height() for bar in bars] == pytest.approx([shift.share_before, shift.share_now])


def test_a_picture_of_an_unknown_kind_is_refused(rows, tmp_path):
    with pytest.raises(sl.InvalidInput, match=r"\.png, \.svg or \.pdf"):
        sl.guarantee_curve(*rows).plot(path=tmp_path / "curve.bmp")
    assert not list(tmp_path.iterdir())


def test_a_picture_for_no_file_is_one_that_notebooks_show(rows, tmp_path):
    from matplotlib import pyplot

    curve = sl.guarantee_curve(*rows)
    curve.plot(path=tmp_path / "curve.svg")
    assert pyplot.get_fignums() == []
    assert curve.plot().figure is pyplot.gcf()
