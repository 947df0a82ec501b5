"""A report vouches for no policy that its rows do not give, and for no label that nobody has seen."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from surelist import (
    Expected,
    Groups,
    Hash,
    InvalidInput,
    PerPool,
    Recall,
    calibrate,
    calibrate_table,
    examples,
)
from surelist.cli import run
from surelist.reports import audit, report
from surelist.reports.report import summarise
from surelist.workflows import summaries

pytestmark = pytest.mark.slow


@pytest.fixture
def past(tmp_path):
    scores, labels = examples.population(np.random.default_rng(0), 2000)
    lines = ["score,qualified,sex,id"]
    for row, (score, label) in enumerate(zip(scores.round(3), labels, strict=True)):
        lines.append(f"{'' if row % 97 == 0 else score},{label:d},{'fm'[row % 2]},{row}")
    (tmp_path / "past.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "past.csv"


def made(past, **options):
    target = options.pop("target", Expected(5, 100))
    columns = {"score": "score", "label": "qualified", "target": target, "on_bad_rows": "drop"}
    policy = calibrate_table(past, **{**columns, **options})
    assert policy.dropped_rows == 21
    policy.save(past.with_name("policy.json"))
    return past.with_name("policy.json")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rule": "simultaneous", "alpha": 0.2},
        {"target": PerPool(5, (100, 140)), "rule": "pac", "calibration_share": 0.7},
        {"target": Recall(0.8)},
        {"ties": Hash("id")},
        {"target": {"f": Expected(2, 50), "m": Expected(2, 50)}, "groups": Groups("sex", "a test")},
        {"target": {"f": Expected(2, 100), "m": Expected(2, 100)}, "groups": Groups("sex", "a test", rows="all")},
    ],
    ids=["exact", "simultaneous", "per pool", "recall", "ties", "groups", "groups of all rows"],
)  # fmt: skip
def test_a_report_is_made_from_the_file_its_policy_came_from_when_rows_were_dropped(past, options):
    summaries.write(made(past, **options), past.with_name("report.json"), past=past)
    summary = json.loads(past.with_name("report.json").read_text())
    assert summary["evidence"]["recomputed"] is True
    summaries.write(past.with_name("policy.json"), past.with_name("report.html"), past=past)
    assert "were worked out anew from the calibration file" in past.with_name("report.html").read_text()


def test_a_forged_threshold_is_refused(past, capsys):
    path = made(past)
    forged = json.loads(path.read_text())
    forged["cutoffs"][0]["steps"][0]["threshold"] += 0.05
    path.write_text(json.dumps(forged))
    code = run(["report", str(path), "--past", str(past), "-o", str(past.with_name("report.html"))])
    assert code == 2
    assert "it says thresholds" in capsys.readouterr().err
    assert not past.with_name("report.html").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cutoff: cutoff["steps"][0].update(share=0.01, share_untied=0.01), "shares shortlisted 0.01"),
        (lambda cutoff: cutoff["scores"].update(auc=0.99), "AUC 0.99"),
        (lambda cutoff: cutoff["scores"].update(highest=7.5), "lowest and highest score"),
        (lambda cutoff: cutoff["scores"]["scores"].__setitem__(1, 1e-9), "sketch of scores"),
    ],
    ids=["share", "auc", "range", "sketch"],
)
def test_a_forged_list_length_auc_or_sketch_is_refused(past, change, message):
    path = made(past)
    forged = json.loads(path.read_text())
    change(forged["cutoffs"][0])
    path.write_text(json.dumps(forged))
    with pytest.raises(InvalidInput, match=f"not calibrated on these rows.*{message}"):
        summaries.write(path, past.with_name("report.json"), past=past)


def test_groups_calibrated_as_arrays_are_known_again_in_their_file(tmp_path):
    rng = np.random.default_rng(5)
    scores, groups = rng.normal(size=3000) * 1000, rng.choice(["a", "b"], 3000)
    labels = rng.random(3000) < 1 / (1 + np.exp(-scores / 1000))
    target = {"a": Expected(3, 60), "b": Expected(3, 60)}
    policy = calibrate(scores, labels, target, groups=Groups(groups, "a test"))
    rows = [f"{s!r},{int(y)},{g}" for s, y, g in zip(scores.tolist(), labels, groups, strict=True)]
    (tmp_path / "past.csv").write_text("\n".join(["score,label,group", *rows]))
    path = tmp_path / "p.json"
    policy.with_columns(score="score", label="label", group="group").save(path)
    summaries.write(path, tmp_path / "report.json", past=tmp_path / "past.csv")
    forged = json.loads(path.read_text())
    rows = forged["cutoffs"][1]["scores"]["rows"]
    rows[0], rows[40] = rows[0] + 20, rows[40] - 20
    path.write_text(json.dumps(forged))
    with pytest.raises(InvalidInput, match=r"not calibrated on these rows.*share at or above"):
        summaries.write(path, tmp_path / "other.json", past=tmp_path / "past.csv")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",1,f,", ",0,f,", "qualified rows"),
        (",0,f,", ",1,f,", "qualified rows"),
        ("\n,", "\n0.1,", "dropped rows"),
        ("0.1", "0.2", "fingerprint|thresholds"),
    ],
)
def test_other_rows_are_refused(past, old, new, message):
    path = made(past)
    past.write_text(past.read_text().replace(old, new, 7))
    with pytest.raises(InvalidInput, match=f"not calibrated on these rows.*({message})"):
        summaries.write(path, past.with_name("report.json"), past=past)


def test_score_bins_are_those_of_labelled_rows_and_cover_with_a_third_of_labels_missing():
    """Each bin's interval against the share among all of its rows, labels missing at random."""
    rng, runs, wrong, bins = np.random.default_rng(3), 60, 0, 0
    for _ in range(runs):
        scores = rng.random(900)
        labels = (rng.random(900) < scores).astype(float)
        labels[rng.random(900) < 0.3] = np.nan
        for each in audit.score_bins(scores, labels, missing_labels="unqualified"):
            truth = (each.low + each.high) / 2
            wrong, bins = wrong + (not each.share_low <= truth <= each.share_high), bins + 1
    assert binom.sf(wrong - 1, bins, 0.05) > 1e-6
    labelled = int(np.count_nonzero(~np.isnan(labels)))
    assert (
        sum(each.rows for each in audit.score_bins(scores, labels, missing_labels="unqualified")) == labelled
    )
    assert audit.score_bins(scores[:3], [None] * 3, missing_labels="unqualified") == ()


def test_the_report_says_that_unlabelled_rows_are_left_out(tmp_path):
    scores, labels = examples.population(np.random.default_rng(0), 2000)
    lines = [
        f"{score},{'' if row % 3 == 0 else int(label)}"
        for row, (score, label) in enumerate(zip(scores, labels, strict=True))
    ]
    past = tmp_path / "past.csv"
    past.write_text("score,qualified\n" + "\n".join(lines) + "\n")
    policy = calibrate_table(
        past, score="score", label="qualified", target=Expected(2, 100), missing_labels="unqualified"
    )
    policy.save(tmp_path / "policy.json")
    summaries.write(tmp_path / "policy.json", tmp_path / "report.html", past=past)
    assert "667 rows without a label are left out here" in (tmp_path / "report.html").read_text()
    summaries.write(tmp_path / "policy.json", tmp_path / "report.json", past=past)
    evidence = json.loads((tmp_path / "report.json").read_text())["evidence"]
    assert sum(each["rows"] for each in evidence["bins"]) == 2000 - 667
    assert sum(each["qualified"] for each in evidence["bins"]) == sum(each.endswith(",1") for each in lines)


def test_after_looking_the_report_shows_the_papers_bound_on_the_excess_only(tmp_path):
    scores, labels = examples.population(np.random.default_rng(0), 2000)
    past = tmp_path / "past.csv"
    past.write_text(
        "score,qualified\n" + "\n".join(f"{s},{int(y)}" for s, y in zip(scores, labels, strict=True)) + "\n"
    )
    for rule in ("exact", "simultaneous", "dkw"):
        policy = calibrate_table(past, score="score", label="qualified", target=Expected(5, 100), rule=rule)
        bound = policy.excess_bound[None]
        wanted = bound.count if rule == "exact" else bound.paper
        excess: Any = summarise(policy)["excess"]
        assert [each["count"] for each in excess] == [wanted]
        assert "with the same confidence" not in report.render(summarise(policy))
