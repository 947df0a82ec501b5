"""Reports of promises that rest on more than counts, and the order of candidates within groups."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import surelist as sl
from surelist.examples import population
from surelist.reports.audit import orders_within_groups, score_bins
from surelist.workflows import summaries

pytestmark = pytest.mark.slow

ROWS = 1500


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    rng = np.random.default_rng(5)
    scores, labels = population(rng, ROWS)
    pools = rng.integers(0, 40, ROWS)
    lines = ["score,second,qualified,pool"]
    noisy = scores + 0.05 * rng.random(ROWS)
    for row in zip(scores.tolist(), noisy.tolist(), labels.astype(int).tolist(), pools.tolist(), strict=True):
        lines.append(",".join(map(str, row)))
    path = tmp_path_factory.mktemp("past") / "past.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


OTHERS = population(np.random.default_rng(6), 3000)[0]
KINDS: dict[str, tuple[dict[str, Any], str | None]] = {
    "next pool": ({"target": sl.NextPool(k=2), "pool": "pool"}, None),
    "pool recall": ({"target": sl.NextPool(recall=0.6), "pool": "pool", "alpha": 0.2}, None),
    "two promises": ({"target": [sl.Expected(5, 100), sl.Recall(0.5)]}, None),
    "average": ({"target": sl.PoolAverage(3), "pool": "pool"}, "random numbers drawn once"),
    "precision": ({"target": sl.Precision(0.4, start=0.1), "unlabelled": OTHERS}, "scores of other candidates"),
    "false share": (
        {"target": sl.FalseShare(0.5), "unlabelled": OTHERS}, "scores of other candidates"
    ),
    "budget": ({"target": sl.Budget(10, 100), "unlabelled": OTHERS}, "scores of other candidates"),
    "chain": ({"target": sl.Expected(5, 100), "unlabelled": OTHERS}, "scores of other candidates"),
    "best of": ({"target": sl.Expected(5, 100), "score": ["score", "second"]}, "the other scores"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_special_policies_are_worked_out_anew_or_say_why_not(past, tmp_path, kind):
    asked, beyond = KINDS[kind]
    policy = sl.calibrate_table(past, **{"score": "score", "label": "qualified", **asked})
    policy.save(tmp_path / "p.json")
    summaries.write(tmp_path / "p.json", tmp_path / "r.json", past=past)
    shown = json.loads((tmp_path / "r.json").read_text())["evidence"]
    assert shown["recomputed"] is (beyond is None)
    assert beyond is None or beyond in shown["beyond"]
    assert not shown["curves"]  # of counts at the whole alpha: not of a share, a choice, or several promises
    assert bool(shown["bins"]) is not policy.of_pools  # their intervals take rows for independent draws
    assert ("own" in shown) is (kind in ("precision", "budget") or policy.of_pools)
    summaries.write(tmp_path / "p.json", tmp_path / "r.html", past=past)
    text = (tmp_path / "r.html").read_text()
    assert ("worked out anew from the calibration file" in text) is (beyond is None)
    assert beyond is None or f"they rest on {beyond}" in text

    lines = past.read_text().splitlines()
    changed = lines[1].split(",")
    changed[2] = "10"[int(changed[2])]
    other = tmp_path / "other.csv"
    other.write_text("\n".join([lines[0], ",".join(changed), *lines[2:]]) + "\n")
    with pytest.raises(sl.InvalidInput, match="not calibrated on these rows"):
        summaries.write(tmp_path / "p.json", tmp_path / "no.json", past=other)
    assert not (tmp_path / "no.json").exists()


def test_amounts_are_refused_in_a_report(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "past.csv"
    path.write_text("score,worth\n" + "".join(f"{s},{9 * s * (s > 0.5)}\n" for s in rng.random(400)))
    policy = sl.calibrate_table(path, score="score", label="worth", target=sl.Value(20, 100))
    policy.save(tmp_path / "p.json")
    with pytest.raises(sl.InvalidInput, match="labels of this policy are amounts"):
        summaries.write(tmp_path / "p.json", tmp_path / "r.json", past=path)


def grouped_rows(rows=2400):
    """In group b the lower half of scores is the better one; over all rows the score is monotone."""
    rng = np.random.default_rng(11)
    scores = rng.random(rows)
    groups = np.where(rng.random(rows) < 0.8, "a", "b")
    chance = np.where(groups == "a", scores, np.where(scores < 0.5, 0.6, 0.2))
    return scores, (rng.random(rows) < chance).astype(float), groups


def test_a_group_in_the_wrong_order_is_noticed_and_only_that_one():
    scores, labels, groups = grouped_rows()
    one, two = orders_within_groups(scores, labels, groups, {None: 0.5})
    assert (one.group, one.better) == ("a", None)
    assert "No sign of it" in one.describe()
    assert two.better.high < 0.5 <= two.worse.low
    assert two.better.share_low > two.worse.share_high
    assert two.passed_over
    assert "is left out while the second is shortlisted" in two.describe()
    shared = 0.05 / (one.bins + two.bins)  # all intervals hold together
    assert two.better in score_bins(scores[groups == "b"], labels[groups == "b"], two.bins, alpha=shared)
    other = orders_within_groups(scores, labels, groups, {None: 0.01})[1]
    assert other.better is not None
    assert not other.passed_over
    assert "the threshold does not lie between them" in other.describe()


def test_monotone_groups_are_seldom_accused_and_few_rows_say_so():
    rng = np.random.default_rng(2)
    accused = 0
    for _ in range(200):
        scores = rng.random(1200)
        groups = np.where(rng.random(1200) < 0.5, "a", None)
        labels = (rng.random(1200) < 0.3).astype(float)  # level: the hardest monotone case
        labels[:10] = np.nan
        accused += any(each.better for each in orders_within_groups(scores, labels, groups, {None: 0.5}))
    assert accused <= 10  # 5 % of 200; intervals that do not overlap are far rarer
    few = orders_within_groups(np.arange(60.0), np.ones(60), np.full(60, "x"), {None: 5.0})
    assert "too few to tell" in few[0].describe()


def test_the_report_shows_the_order_within_groups_of_policy_and_attribute(tmp_path):
    scores, labels, groups = grouped_rows()
    path = tmp_path / "past.csv"
    rows = zip(scores.tolist(), labels.astype(int).tolist(), groups.tolist(), strict=True)
    path.write_text("score,qualified,region\n" + "".join(f"{s},{y},{g}\n" for s, y, g in rows))
    policy = sl.calibrate_table(path, score="score", label="qualified", target=sl.Expected(25, 100))
    policy.save(tmp_path / "p.json")
    summaries.write(tmp_path / "p.json", tmp_path / "plain.html", past=path)
    assert "Order within groups" not in (tmp_path / "plain.html").read_text()
    summaries.write(tmp_path / "p.json", tmp_path / "r.html", past=path, attributes=("region",))
    text = (tmp_path / "r.html").read_text()
    assert "Order within groups" in text
    assert "No sign of it" in text
    assert "are qualified, of those scoring" in text
