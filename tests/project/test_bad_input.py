"""Bad values to every public function and command: a one-line error that names what is wrong."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import surelist as sl
from surelist import bounds
from surelist.cli import run

GOOD = np.linspace(0, 1, 200)
LABELS = (np.arange(200) % 2).tolist()
TARGET = sl.Expected(5, 100)
POLICY = sl.calibrate(GOOD, LABELS, TARGET)
GROUPS = np.repeat(["a", "b"], 100)
SIZES = {"a": 50, "b": 50}
GROUPED = sl.calibrate(
    GOOD, LABELS, {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}, groups=sl.Groups(GROUPS, "a test")
)


def put(value, at=3):
    column = GOOD.tolist()
    column[at] = value
    return column


def calibrate(**changes):
    options = {"scores": GOOD, "labels": LABELS, "target": TARGET, **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.GroupCutoffWarning)
        return sl.calibrate(options.pop("scores"), options.pop("labels"), options.pop("target"), **options)


def labels_with(value):
    return [value, *LABELS[1:]]


BAD_SCORES = [
    (put(float("nan")), "nan at position 3"),
    (put(float("inf")), "inf at position 3"),
    (put(float("-inf")), "-inf at position 3"),
    (put("high"), "'high'"),
    (put(None), "nan at position 3"),
    (np.zeros((200, 2)), r"shape \(200, 2\)"),
    ("scores.csv", "'scores.csv'"),
    (None, "None"),
    (3.0, r"shape \(\)"),
    (np.array(["2020-01-01"] * 200, dtype="datetime64[D]"), "datetime64"),
    (np.full(200, 2**60), "2\\^53"),
    (np.full(200, 1j), "complex"),
]

CASES = [
    *[(lambda s=s: calibrate(scores=s), "scores", found) for s, found in BAD_SCORES],
    *[(lambda s=s: POLICY.select(s), "scores", found) for s, found in BAD_SCORES],
    *[(lambda s=s: GROUPED.select(s, groups=GROUPS), "scores", found) for s, found in BAD_SCORES],
    *[(lambda s=s: sl.guarantee_curve(s, LABELS), "scores", found) for s, found in BAD_SCORES],
    (lambda: calibrate(scores=[], labels=[]), "scores", "got none"),
    (lambda: sl.guarantee_curve([], []), "scores", "got none"),
    (lambda: sl.equal_opportunity(LABELS, GROUPS, 5, 100), "pool_sizes", "mapping"),
    (lambda: sl.equal_opportunity(LABELS, GROUPS, 5, {"a": 50}), "pool_sizes", "expected the groups"),
    (lambda: sl.equal_opportunity([], [], 5, SIZES), "labels", "got none"),
    (lambda: calibrate(labels=LABELS[:-1]), "labels", "expected 200 values, one per score, got 199"),
    (lambda: sl.guarantee_curve(GOOD, LABELS[:-1]), "labels", "got 199"),
    (lambda: sl.equal_opportunity(LABELS, GROUPS[:-1], 5, SIZES), "groups", "got 199"),
    *[(lambda v=v: calibrate(labels=labels_with(v)), "labels", found) for v, found in
      [(2, "got 2 at position 0|got 2.0 at position 0"), (-1, "got -1"), (0.5, "got 0.5 at position 0"), ("yes", "'yes'|yes"), (None, "missing label")]],
    (lambda: calibrate(labels=np.where(np.arange(200) % 2, 2, 0)), "labels", "got 2 at position 1"),
    (lambda: sl.guarantee_curve(GOOD, labels_with(2)), "labels", "got 2 at position 0"),
    (lambda: sl.equal_opportunity(labels_with(2), GROUPS, 5, SIZES), "labels", "got 2 at position 0"),
    *[(lambda a=a: calibrate(alpha=a), "alpha", "got") for a in (0, 1, 1.7, -0.1, "0.1", None, float("nan"), True)],
    *[(lambda a=a: sl.guarantee_curve(GOOD, LABELS, alpha=a), "alpha", "got") for a in (0, 1, 1.7)],
    *[(lambda a=a: bounds.critical_count(10, 0.1, a), "alpha", "got") for a in (0, 1, 1.7)],
    *[(lambda a=a: bounds.pool_critical_count(10, 1, 10, a), "alpha", "got") for a in (0, 1)],
    *[(lambda f=f: f(5, 1.5), "alpha", "got 1.5") for f in (bounds.bernstein_k, bounds.bernstein_worst)],
    (lambda: bounds.pac_rate(1, 10, 0), "alpha", "got 0"),
    *[(lambda k=k: sl.Expected(k, 100), "k", "got") for k in (0, -1, "5", None, float("nan"), float("inf"), 101)],
    *[(lambda m=m: sl.Expected(5, m), "pool_size", "got") for m in (0, -3, "100", float("inf"))],
    *[(lambda k=k: sl.PerPool(k, 100), "k", "got") for k in (0, -1, 2.5, 5.0, "5", 101, True)],
    *[(lambda m=m: sl.PerPool(5, m), "pool_size", "got") for m in (0, 9.5, "9", (200, 50), (50,), (0, 9))],
    *[(lambda r=r: sl.Recall(r), "share", "got") for r in (0, 1, 1.2, -1, "0.9", None)],
    (lambda: sl.equal_opportunity(LABELS, GROUPS, 0, SIZES), "k", "got 0"),
    (lambda: sl.equal_opportunity(np.zeros(200), GROUPS, 5, SIZES), "labels", "got none"),
    (lambda: sl.equal_opportunity(GROUPS == "a", GROUPS, 5, SIZES), "groups", "'b' has no qualified rows"),
    (lambda: sl.equal_opportunity([1] * 10 + [1, *[0] * 89], ["a"] * 10 + ["b"] * 90, 50, {"a": 10, "b": 90}), "k", "group 'a'"),
    (lambda: sl.equal_opportunity(LABELS, ["a", float("nan"), *GROUPS[2:]], 5, SIZES), "groups", "missing group at position 1"),
    (lambda: calibrate(ties=sl.Hash(["a", float("nan"), *map(str, range(198))])), "ids", "missing candidate id at position 1"),
    (lambda: calibrate(ties=sl.Hash(["\ud800", *map(str, range(199))])), "ids", "UTF-8"),
    (lambda: calibrate(target={"a": TARGET, "b": TARGET}, groups=sl.Groups(GROUPS, "\ud800")), "purpose", "UTF-8"),
    (lambda: calibrate(purpose="x"), "purpose", r"purpose= is now groups=Groups\(names, purpose=\.\.\.\)"),
    (lambda: calibrate(group_purpose="x"), "group_purpose", r"is now groups=Groups\(names, purpose=\.\.\.\)"),
    (lambda: calibrate(target={"1": TARGET}, groups=sl.Groups({1: GROUPS == "a", "1": GROUPS == "b"})), "groups", "appears twice"),
    (lambda: calibrate(shift=sl.DensityRatio(GOOD, 1.0, exact="no")), "exact", "got 'no'"),
    (lambda: sl.Expected(10**400, 10**401), "k", "float can hold"),
    (lambda: calibrate(scores=[10**400, *GOOD[1:]]), "scores", "float can hold"),
    *[(lambda n=n: calibrate(scores=[n, *GOOD[1:]]), "scores", f"beyond 2\\^53 lose their order as floats, got {n}") for n in (2**53 + 1, -(2**53) - 1, 2**64)],
    (lambda: calibrate(scores=np.array([2**70, *GOOD[1:]], dtype=object)), "scores", "beyond 2\\^53"),
    (lambda: bounds.critical_count(10**400, 0.1, 0.1), "n", "at most 2\\^53"),
    (lambda: bounds.largest_rate(10, 20, 0.1), "count", "at most n=10, got 20"),
    (lambda: bounds.largest_rate(10, "a", 0.1), "count", "got 'a'"),
    (lambda: bounds.binomial_tail(10, 1.7, 3), "rate", "got 1.7"),
    (lambda: bounds.pool_tail(10, 5, 3, 3), "k", "at most the pool size, 3"),
    (lambda: bounds.excess_paper(0, 5, 0.1), "n", "got 0"),
    (lambda: bounds.excess_count(10, 20, 1, 5, 0.1), "count", "got 20"),
    (lambda: sl.guarantee_curve(GOOD, LABELS, missing_labels="drop"), "missing_labels", "got 'drop'"),
    (lambda: sl.guarantee_curve(GOOD, LABELS, pool_size=1e-300), "pool_size", "at least 1"),
    (lambda: sl.Policy.load("a\0b"), "policy", "cannot read"),
    *[(lambda n=n: bounds.critical_count(n, 0.1, 0.1), "n", "got") for n in (0, -5, 2.5, "10", True)],
    *[(lambda p=p: bounds.critical_count(10, p, 0.1), "rate", "got") for p in (0, -0.1, 1.1, "x", float("nan"))],
    (lambda: bounds.critical_count(10, 0.1, 0.1, "dwk"), "rule", "got 'dwk'. Did you mean 'dkw'"),
    (lambda: calibrate(rule="exakt"), "rule", "got 'exakt'. Did you mean 'exact'"),
    (lambda: calibrate(rule="pac"), "rule", "'exact', 'dkw', 'simultaneous' for Expected, got 'pac'"),
    (lambda: calibrate(target=sl.PerPool(5, 100), rule="dkw"), "rule", "'exact', 'pac', 'bernstein' for PerPool, got 'dkw'"),
    (lambda: calibrate(target=sl.Recall(0.9), rule="dkw"), "rule", "got 'dkw'"),
    (lambda: sl.guarantee_curve(GOOD, LABELS, rule="exact"), "rule", "got 'exact'"),
    (lambda: sl.guarantee_curve(GOOD, LABELS, pool_size=0), "pool_size", "got 0"),
    (lambda: calibrate(target=5), "target", "got 5"),
    (lambda: calibrate(target={"a": TARGET}), "groups", "needs groups="),
    (lambda: calibrate(groups=sl.Groups(GROUPS)), "target", "mapping of group to target"),
    (lambda: calibrate(target={}, groups=sl.Groups(GROUPS)), "target", "empty mapping"),
    (lambda: calibrate(target={"a": TARGET}, groups=sl.Groups(GROUPS)), "groups", "unknown group 'b'; known groups: 'a'"),
    (lambda: calibrate(target={"a": TARGET, "b": TARGET, "c": TARGET}, groups=sl.Groups(GROUPS)), "groups", "'c' has a target but no calibration rows"),
    (lambda: calibrate(target={"a": TARGET, "b": sl.Recall(0.5)}, groups=sl.Groups(GROUPS)), "target", "same kind"),
    (lambda: calibrate(target={"a": TARGET, "b": TARGET}, groups=sl.Groups([*GROUPS[:-1], None])), "groups", "missing group at position 199"),
    (lambda: calibrate(target={"a": TARGET}, groups=sl.Groups({"a": GOOD})), "groups", "boolean mask"),
    (lambda: calibrate(target={"a": TARGET, "b": TARGET}, groups=sl.Groups(GROUPS, purpose=" ")), "purpose", "got ' '"),
    (lambda: calibrate(target={"a": TARGET, "b": TARGET}, groups=sl.Groups(GROUPS, split="holm")), "group_split", "got 'holm'"),
    (lambda: calibrate(target={"a": TARGET, "b": TARGET}, groups=sl.Groups(GROUPS, split="sidak", rows="all")), "groups", "Šidák's rule do not go together"),
    (lambda: calibrate(target={"a": sl.Recall(0.5), "b": sl.Recall(0.5)}, groups=sl.Groups(GROUPS, rows="all")), "groups", "Recall"),
    (lambda: calibrate(calibration_share=1.0), "calibration_share", "got 1.0"),
    (lambda: calibrate(ties="random"), "ties", "got 'random'"),
    (lambda: calibrate(ties="hash"), "ties", "Hash"),
    (lambda: calibrate(ids=range(200)), "ids", r"ids= is now ties=Hash\(ids\)"),
    (lambda: calibrate(ties=sl.Hash([0, 0, *range(198)])), "ids", "'0' at positions 0 and 1"),
    (lambda: calibrate(ties=sl.Hash([None, *range(199)])), "ids", "missing candidate id at position 0"),
    (lambda: calibrate(ties=sl.Hash(GOOD)), "ids", "got 0.0"),
    (lambda: calibrate(ties=sl.Hash(range(199))), "ids", "got 199"),
    (lambda: calibrate(target=sl.NextPool(k=1), pools=[*map(str, range(199)), None]), "pools", "missing pool at position 199 .*Every candidate is in one"),
    (lambda: calibrate(weights=GOOD), "weights", r"is now shift=DensityRatio\(ratios, bound\)"),
    (lambda: calibrate(weight_bound=2.0), "weight_bound", r"is now shift=DensityRatio\(ratios, bound\)"),
    (lambda: calibrate(shift=GOOD), "shift", "DensityRatio"),
    (lambda: calibrate(shift=sl.DensityRatio(GOOD, 0.5)), "ratios", "at most the bound, 0.5"),
    (lambda: calibrate(shift=sl.DensityRatio(-GOOD, 0.5)), "ratios", "at least 0"),
    (lambda: calibrate(shift=sl.DensityRatio(put(float("nan")), 1)), "ratios", "nan at position 3"),
    (lambda: calibrate(shift=sl.DensityRatio(GOOD, 0)), "bound", "got 0"),
    (lambda: calibrate(shift=sl.DensityRatio(GOOD, 1.0, seed=-1)), "seed", "got -1"),
    (lambda: calibrate(missing_labels="drop"), "missing_labels", "got 'drop'"),
    (lambda: POLICY.select(GOOD, groups=GROUPS), "groups", "one cutoff for everybody"),
    (lambda: GROUPED.select(GOOD), "groups", "'a', 'b'"),
    (lambda: GROUPED.select(GOOD, groups=["c", *GROUPS[1:]]), "groups", "unknown group 'c'; known groups: 'a', 'b'"),
    (lambda: GROUPED.select(GOOD, groups=[None, *GROUPS[1:]]), "groups", "missing group at position 0"),
    (lambda: GROUPED.select(GOOD, groups=GROUPS[:-1]), "groups", "got 199"),
    (lambda: GROUPED.select(GOOD, groups={"a": GROUPS == "a"}), "groups", "one group name per candidate"),
    (lambda: GROUPED.threshold, "threshold", "several"),
    (lambda: sl.Policy.load("/nowhere/policy.json"), "policy", "cannot read /nowhere/policy.json"),
    (lambda: POLICY.save("/nowhere/policy.json"), "output", "cannot write /nowhere/policy.json"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name", "found"), CASES)
def test_error_names_the_argument_and_the_value(call, name, found):
    with pytest.raises(sl.InvalidInput, match=found) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(name)
    assert "\n" not in message


def test_empty_pools_are_legal():
    with pytest.warns(sl.PoolWarning, match="the pool is empty"):
        assert POLICY.select([]).tolist() == []
    with pytest.warns(sl.PoolWarning, match="the pool is empty"):
        assert GROUPED.select([], groups=[]).tolist() == []
    masks = {"a": GROUPS == "a", "b": GROUPS == "b"}
    policy = calibrate(target={"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}, groups=sl.Groups(masks))
    with pytest.warns(sl.PoolWarning, match="the pool is empty"):
        assert policy.select([], groups={"a": [], "b": []}).tolist() == []


def test_groups_without_purpose_warn_plainly():
    targets = {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}
    with pytest.warns(sl.GroupCutoffWarning, match=r"Title VII.*703\(l\).*not legal advice") as caught:
        policy = sl.calibrate(GOOD, LABELS, targets, groups=sl.Groups(GROUPS))
    assert caught[0].filename == __file__
    assert "Recorded purpose: none" in policy.conditions[-1]
    assert "Recorded purpose: a test" in GROUPED.conditions[-1]


# --- policy files -----------------------------------------------------------------------------


def edited(**changes):
    """The policy's JSON with some fields changed; a callable edits the whole."""
    from surelist.promises import policy_file

    raw = json.loads(json.dumps(policy_file.to_dict(POLICY)))
    for key, value in changes.items():
        if callable(value):
            value(raw)
        elif value is ...:
            del raw[key]
        else:
            raw[key] = value
    return json.dumps(raw)


def step(raw):
    return raw["cutoffs"][0]["steps"][0]


DAMAGED = [
    ("", "not valid JSON"),
    ("{", "not valid JSON"),
    ("[]", "no format version"),
    ("{}", "no format version"),
    (edited(format=3), "format version 3; this surelist reads version 1"),
    (edited(format="1"), "format version '1'"),
    (edited(extra=1), "unknown field `extra`"),
    (edited(rule=...), "missing required field `rule`"),
    (edited(alpha="0.1"), r"Expected `float`, got `str` - at `\$\.alpha`"),
    (edited().replace('"alpha": 0.1', '"alpha": NaN', 1), "not valid JSON"),
    (edited().replace('"alpha": 0.1', '"alpha": 1e999', 1), "Number out of range"),
    (edited(alpha=0.2), "contradicts itself"),
    (edited(x=lambda raw: step(raw).update(critical_count=1)), "critical count 1 is less than"),
    (edited(x=lambda raw: step(raw).update(threshold=float("1e400"))), "not valid JSON"),
    (edited(x=lambda raw: step(raw).update(tie_break=5)), "salt"),
    (edited(x=lambda raw: step(raw).update(pool_size=7)), "smallest pool"),
    (edited(x=lambda raw: raw["cutoffs"][0].update(qualified=3)), "too few qualified"),
    (edited(x=lambda raw: raw["cutoffs"][0].update(qualified=500)), "impossible"),
    (edited(x=lambda raw: raw["cutoffs"][0].update(rows=150)), "impossible|promise|sketch"),
    (edited(x=lambda raw: raw["cutoffs"][0].update(fingerprint="zz")), "fingerprint"),
    (edited(missing_labels=-5), "missing_labels"),
    (edited(overlapping=True), "overlap"),
    (edited(format=True), "format version True"),
    ("[" * 100_000, "not valid JSON"),
    (edited(x=lambda raw: raw["cutoffs"][0].update(group="a")), "groups"),
    (edited(x=lambda raw: raw["cutoffs"].append(raw["cutoffs"][0])), "appears twice"),
    (edited(x=lambda raw: raw["cutoffs"][0]["target"].update(k=50.0)), "is less than"),
    (edited(x=lambda raw: raw["cutoffs"][0]["target"].update(k=-5.0)), "k: expected"),
    (edited(x=lambda raw: raw["cutoffs"][0]["target"].update(kind="maximum")), "unknown kind 'maximum'"),
    (edited(rule="bernstein"), "contradicts itself: its cutoffs have another rule"),
    (edited(x=lambda raw: raw["cutoffs"][0]["level"].update(rule="bernstein"), rule="bernstein"), "rule"),
    (edited(cutoffs=[]), "cutoffs"),
]  # fmt: skip


def test_a_sentence_edited_in_a_policy_file_is_not_believed(tmp_path):
    (tmp_path / "policy.json").write_text(edited(promise="Everything is fine."))
    assert sl.Policy.load(tmp_path / "policy.json").promise == POLICY.promise


@pytest.mark.parametrize(("text", "found"), DAMAGED)
def test_damaged_policy_files_are_rejected(tmp_path, text, found, capsys):
    path = tmp_path / "policy.json"
    text = text.replace('"x": null, ', "")
    path.write_text(text)
    with pytest.raises(sl.PolicyFileError, match=found) as caught:
        sl.Policy.load(path)
    assert "\n" not in str(caught.value)
    (tmp_path / "new.csv").write_text("score\n0.5\n")
    for command in (
        ["show", str(path)],
        ["select", str(tmp_path / "new.csv"), "--policy", str(path), "-o", str(tmp_path / "out.csv")],
    ):
        assert run(command) == 2
    assert not (tmp_path / "out.csv").exists()


# --- commands ---------------------------------------------------------------------------------


def write(path, scores=None, labels=None, groups=None):
    scores = [f"{s:.3f}" for s in GOOD] if scores is None else scores
    labels = LABELS if labels is None else labels
    groups = GROUPS if groups is None else groups
    rows = [f"{s},{y},{g}" for s, y, g in zip(scores, labels, groups, strict=True)]
    path.write_text("\n".join(["score,qualified,group", *rows]) + "\n")


def texts(value, at=3):
    column = [f"{s:.3f}" for s in GOOD]
    column[at] = value
    return column


BASE = ["--expect", "5", "--pool-size", "100"]
COMMANDS = [
    ({}, [*BASE, "--score", "scroe"], "scroe"),
    ({}, [*BASE, "--label", "y"], "'y'"),
    ({"scores": texts("nan")}, BASE, "'score'"),
    ({"scores": texts("inf")}, BASE, "inf"),
    ({"scores": texts("")}, BASE, "'score'"),
    ({"scores": texts("high")}, BASE, "'high'"),
    ({"labels": [2, *LABELS[1:]]}, BASE, "qualified"),
    ({"labels": ["", *LABELS[1:]]}, BASE, "qualified"),
    ({"labels": ["maybe", *LABELS[1:]]}, BASE, "'maybe'"),
    ({"scores": [], "labels": [], "groups": []}, BASE, "row"),
    ({}, ["--expect", "5"], "--pool-size"),
    ({}, ["--pool-size", "100"], "--expect"),
    ({}, [*BASE, "--recall", "0.9"], "--recall"),
    ({}, ["--expect", "0", "--pool-size", "100"], "--expect: expected"),
    ({}, ["--expect", "101", "--pool-size", "100"], "--expect: expected at most the pool size, 100"),
    ({}, ["--expect", "5", "--pool-size", "many"], "'many'"),
    ({}, ["--per-pool", "2.5", "--pool-size", "100"], "2.5"),
    ({}, ["--per-pool", "5", "--pool-size", "200-50"], "--pool-size"),
    ({}, ["--recall", "1.5"], "--recall: expected"),
    ({}, ["--recall", "0.9", "--pool-size", "100"], "--pool-size"),
    ({}, ["--per-pool", "5", "--pool-size", "-5"], "-5"),
    ({}, [*BASE, "--purpose", "x"], "purpose"),
    ({}, [*BASE, "--missing-labels", "drop"], "--missing-labels"),
    ({}, [*BASE, "--alpha", "1.7"], "alpha"),
    ({}, [*BASE, "--alpha", "x"], "alpha"),
    ({}, [*BASE, "--rule", "dwk"], "rule"),
    ({}, ["--group", "group", "--target", "a=2/50", "--target", "b=2/50"], "--purpose"),
    ({}, ["--group", "group", "--target", "a=2/50", "--purpose", "x"], "'b'"),
    ({}, ["--group", "group", "--purpose", "x"], "--target"),
    ({}, ["--group", "group", "--target", "a", "--purpose", "x"], "'a'"),
    ({}, ["--group", "race", "--target", "a=2/50", "--purpose", "x"], "'race'"),
    ({"groups": ["", *GROUPS[1:]]}, ["--group", "group", "--target", "a=2/50", "--target", "b=2/50", "--purpose", "x"], "group"),
    ({}, [*BASE, "--ties", "hash"], "id"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "arguments", "found"), COMMANDS)
def test_calibrate_command_reports_and_writes_nothing(tmp_path, capsys, table, arguments, found):
    write(tmp_path / "past.csv", **table)
    before = sorted(tmp_path.iterdir())
    code = run(["calibrate", str(tmp_path / "past.csv"), *arguments, "-o", str(tmp_path / "policy.json")])
    printed = capsys.readouterr()
    assert code == 2, printed
    assert found in printed.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ({"scores": texts("nan")}, "'score'"),
        ({"scores": texts("")}, "'score'"),
        ({"scores": texts("high")}, "'high'"),
        ({"groups": ["c", *GROUPS[1:]]}, "'c'"),
        ({"groups": ["", *GROUPS[1:]]}, "group"),
    ],
)
def test_select_command_reports_and_writes_nothing(tmp_path, capsys, table, found):
    GROUPED.with_columns(score="score", group="group").save(tmp_path / "policy.json")
    write(tmp_path / "new.csv", **table)
    before = sorted(tmp_path.iterdir())
    code = run(
        [
            "select",
            str(tmp_path / "new.csv"),
            "--policy",
            str(tmp_path / "policy.json"),
            "-o",
            str(tmp_path / "s.csv"),
        ]
    )
    printed = capsys.readouterr()
    assert code == 2, printed
    assert found in printed.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [["calibrate", "none.csv", *BASE, "-o", "p.json"], ["curve", "none.csv"], ["select", "none.csv", "--policy", "p", "-o", "s.csv"],
     ["show", "none.json"], ["nonsense"], ["calibrate", "past.txt", *BASE, "-o", "p.json"], ["curve", "none.csv", "--alpha", "2"]],
)  # fmt: skip
def test_missing_files_and_unknown_commands(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "past.txt").write_text("x")
    assert run(arguments) == 2
    assert capsys.readouterr().err.strip()
    assert [p.name for p in tmp_path.iterdir()] == ["past.txt"]
