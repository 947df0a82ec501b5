"""Groups are named as they came: 0 and 1 stay whole numbers; all groups that fall short are named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import surelist as sl
from surelist.cli import run
from surelist.errors import error_body
from surelist.examples import population

SCORES, LABELS = population(np.random.default_rng(6), 2_000)
GROUPS = np.arange(2_000) % 2
TARGETS = {0: sl.Expected(2, 50), 1: sl.Expected(2, 50)}


@pytest.mark.parametrize(
    ("groups", "keys"),
    [
        (GROUPS, [0, 1]),
        (GROUPS.tolist(), [np.int64(0), np.int64(1)]),
        (GROUPS - 1, [-1, 0]),
        (GROUPS == 1, [False, True]),
        (np.where(GROUPS, "b", "a"), ["a", "b"]),
        (GROUPS.astype(str), ["0", "1"]),
    ],
)
def test_groups_keep_their_keys_also_in_the_file(groups, keys, tmp_path):
    targets = {key: sl.Expected(2, 50) for key in keys}
    made = sl.calibrate(SCORES, LABELS, targets, groups=sl.Groups(groups, purpose="test"))
    made.save(tmp_path / "policy.json")
    for policy in (made, sl.Policy.load(tmp_path / "policy.json")):
        assert list(policy.thresholds) == keys
        assert [type(key) for key in policy.thresholds] == [
            type(getattr(key, "item", lambda k=key: k)()) for key in keys
        ]
        assert list(policy.excess_bound) == keys
        limits = [policy.thresholds[key] for key in keys]
        members = [np.asarray(groups) == key for key in keys]
        np.testing.assert_array_equal(
            policy.select(SCORES, groups=groups),
            (limits[0] <= SCORES) & members[0] | (limits[1] <= SCORES) & members[1],
        )
    assert sl.evaluate(made, SCORES, LABELS, groups=groups).kept[1].group == str(keys[0])


def test_a_table_with_whole_numbers_as_groups_keeps_them_too(tmp_path):
    table = pl.DataFrame({"score": SCORES, "qualified": LABELS, "sex": GROUPS})
    policy = sl.calibrate_table(
        table, score="score", label="qualified", target=TARGETS, groups=sl.Groups("sex", purpose="test")
    )
    assert list(policy.thresholds) == [0, 1]
    assert (
        policy.thresholds
        == sl.calibrate(SCORES, LABELS, TARGETS, groups=sl.Groups(GROUPS, purpose="test")).thresholds
    )
    assert sl.select_table(table, policy).groups.keys() == {"0", "1"}


def test_targets_by_equal_opportunity_keep_the_keys_of_the_pool_sizes():
    targets = sl.equal_opportunity(LABELS[:500], GROUPS[:500], 5, {0: 50, 1: 50})
    assert set(targets) == {0, 1}
    assert list(
        sl.calibrate(SCORES, LABELS, targets, groups=sl.Groups(GROUPS, purpose="test")).thresholds
    ) == [0, 1]


@pytest.mark.parametrize("change", [{"group_keys": "whole numbers"}, {"group_keys": "true or false"}])
def test_a_file_whose_groups_are_not_named_as_it_says_is_refused(change, tmp_path):
    path = tmp_path / "policy.json"
    groups = np.where(GROUPS, "b", "a")
    targets = {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}
    sl.calibrate(SCORES, LABELS, targets, groups=sl.Groups(groups, purpose="test")).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(sl.PolicyFileError, match="its groups are not named as it says"):
        sl.Policy.load(path)
    sl.calibrate(SCORES, LABELS, sl.Expected(5, 100)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(sl.PolicyFileError):
        sl.Policy.load(path)


def test_all_groups_that_fall_short_are_named():
    groups = np.array(["a", "b", "c", "d"])[np.arange(2_000) % 4]
    asked = {
        "a": sl.Expected(1, 50),
        "b": sl.Expected(20, 50),
        "c": sl.Expected(2, 50),
        "d": sl.Expected(30, 50),
    }
    with pytest.raises(sl.NotCertifiable) as caught:
        sl.calibrate(SCORES, LABELS, asked, groups=sl.Groups(groups, purpose="test"))
    said = str(caught.value)
    assert said.startswith("Not certifiable for group 'b': ")
    assert "Nor for group 'd': " in said
    assert "group 'a'" not in said
    assert "group 'c'" not in said
    assert caught.value.group == "b"
    body = error_body(caught.value)
    (other,) = json.loads(json.dumps(body))["others"]
    assert (other["group"], other["rows"]) == ("d", 500)


def test_all_groups_that_fall_short_are_named_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"score": SCORES, "qualified": LABELS, "sex": GROUPS}).write_csv("past.csv")
    words = ["calibrate", "past.csv", "--group", "sex", "--purpose", "test", "-o", "policy.json"]
    assert run([*words, "--target", "0=40/50", "--target", "1=40/50"]) == 3
    said = capsys.readouterr().err
    assert "for group '0'" in said
    assert "Nor for group '1'" in said
    assert not Path("policy.json").exists()
