"""Policies survive a round trip, files appear whole, the salt stays in a file of its own."""

from __future__ import annotations

import json
import os
import pickle
import stat
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import surelist as sl
from surelist._files import writing
from surelist.promises import kinds, policy_file
from tests.helpers.promise_kinds import KINDS, policy_of

rng = np.random.default_rng(0)
SCORES = rng.random(2_000)
LABELS = rng.random(2_000) < SCORES
GROUPS = np.where(rng.random(2_000) < 0.5, "a", "b")
POOL = rng.random(200)
POOL_GROUPS = np.where(rng.random(200) < 0.5, "a", "b")
PAIR = {"a": sl.Expected(2.5, 50), "b": sl.Expected(1, 50)}

MADE = {
    "expected": lambda: sl.calibrate(SCORES, LABELS, sl.Expected(5, 100)),
    "dkw": lambda: sl.calibrate(SCORES, LABELS, sl.Expected(5.5, 100.5), rule="dkw", alpha=0.05),
    "simultaneous": lambda: sl.calibrate(SCORES, LABELS, sl.Expected(5, 100), rule="simultaneous"),
    "per pool": lambda: sl.calibrate(SCORES, LABELS, sl.PerPool(5, 100)),
    "pac": lambda: sl.calibrate(SCORES, LABELS, sl.PerPool(5, 100), rule="pac", calibration_share=0.3),
    "range": lambda: sl.calibrate(SCORES, LABELS, sl.PerPool(5, (50, 300))),
    "recall": lambda: sl.calibrate(SCORES, LABELS, sl.Recall(0.95)),
    "groups": lambda: sl.calibrate(SCORES, LABELS, PAIR, groups=sl.Groups(GROUPS, purpose="outreach")),
    "sidak": lambda: sl.calibrate(SCORES, LABELS, PAIR, groups=sl.Groups(GROUPS, purpose="x", split="sidak")),
    "all rows": lambda: sl.calibrate(SCORES, LABELS, PAIR, groups=sl.Groups(GROUPS, purpose="x", rows="all")),
    "weights": lambda: sl.calibrate(
        SCORES, LABELS, sl.Expected(5, 100), shift=sl.DensityRatio(1 - SCORES, 1.0, seed=4)
    ),
    "ties": lambda: sl.calibrate(
        np.round(SCORES, 1), LABELS, sl.Expected(5, 100), ties=sl.Hash(range(2_000))
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_round_trip(tmp_path, name):
    policy = MADE[name]()
    path = tmp_path / "policy.json"
    policy.save(path)
    again = sl.Policy.load(path)
    assert again == policy
    assert again.promise == policy.promise
    assert again.conditions == policy.conditions
    extra: dict[str, object] = {"groups": POOL_GROUPS} if policy.grouped else {}
    if name == "ties":
        extra["ids"] = [f"n{i}" for i in range(200)]
    np.testing.assert_array_equal(
        again.select(np.round(POOL, 1), **extra), policy.select(np.round(POOL, 1), **extra)
    )
    again.save(tmp_path / "second.json")
    assert (tmp_path / "second.json").read_bytes() == path.read_bytes()


def test_overlapping_groups_round_trip(tmp_path):
    masks = {"x": SCORES < 0.8, "y": SCORES > 0.2}
    policy = sl.calibrate(
        SCORES,
        LABELS,
        {"x": sl.Expected(3, 80), "y": sl.Expected(3, 80)},
        groups=sl.Groups(masks, purpose="x"),
    )
    policy.save(tmp_path / "p.json")
    again = sl.Policy.load(tmp_path / "p.json")
    pool = {"x": POOL < 0.8, "y": POOL > 0.2}
    np.testing.assert_array_equal(again.select(POOL, groups=pool), policy.select(POOL, groups=pool))
    nobody = {"x": np.zeros(200, bool), "y": np.zeros(200, bool)}
    assert not again.select(POOL, groups=nobody).any()


def test_the_salt_lives_in_a_secret_file_of_its_own(tmp_path):
    policy = MADE["ties"]()
    policy.save(tmp_path / "p.json")
    secret = tmp_path / "p.json.salt"
    assert policy.salt.key not in (tmp_path / "p.json").read_text()
    assert json.loads((tmp_path / "p.json").read_text())["salt_hash"] == policy.salt.hash
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    secret.rename(tmp_path / "hidden")
    without = sl.Policy.load(tmp_path / "p.json")
    with pytest.raises(sl.InvalidInput, match="salt is missing"):
        without.select([0.5], ids=["a"])
    MADE["ties"]().save(tmp_path / "q.json")
    os.replace(tmp_path / "q.json.salt", secret)
    with pytest.raises(sl.PolicyFileError, match="belongs to another policy"):
        sl.Policy.load(tmp_path / "p.json")
    secret.write_text("{}")
    with pytest.raises(sl.PolicyFileError, match="damaged"):
        sl.Policy.load(tmp_path / "p.json")


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_what_was_there(tmp_path, failure):
    path = tmp_path / "out.csv"
    path.write_text("before")

    def interrupted():
        with writing(path) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_written_files_have_ordinary_permissions(tmp_path):
    MADE["expected"]().save(tmp_path / "p.json")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "p.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_promises_are_single_sentences_with_the_numbers():
    for make in MADE.values():
        promise = make().promise
        assert promise.count(". ") == 0
        assert promise.endswith(".")
    assert MADE["expected"]().promise == (
        "The shortlist holds at least 5 qualified candidates on average over pools of 100 candidates; this "
        "statement is wrong with probability at most 10% over the draw of the 2,000 calibration rows."
    )


def test_conditions_name_what_the_promise_rests_on():
    for name, words in {
        "expected": [
            "independently of, the calibration rows",
            "One look",
            "same population",
            "its label is missing",
        ],
        "dkw": ["chosen after looking"],
        "simultaneous": ["chosen after looking"],
        "per pool": ["of samples the long-run rate", "does not depend on how good"],
        "recall": ["about half the time"],
        "groups": ["known, not estimated", "not legal advice", "outreach"],
        "sidak": ["disjoint"],
        "weights": ["estimated weights"],
        "ties": ["secret salt", "unique"],
    }.items():
        text = " ".join(MADE[name]().conditions)
        for word in words:
            assert word in text, (name, word)


def test_a_failed_save_leaves_policy_and_salt_as_they_were(tmp_path):
    first = MADE["ties"]()
    first.save(tmp_path / "p.json")
    broken = replace(MADE["ties"](), columns={"score": float("nan")})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="not JSON compliant"):
        broken.save(tmp_path / "p.json")
    assert sl.Policy.load(tmp_path / "p.json") == first
    MADE["expected"]().save(tmp_path / "p.json")
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]  # no stale secret


def test_a_larger_count_than_needed_is_valid(tmp_path):
    """Another version of a rule may have asked for more: such a file still loads."""
    raw = policy_file.to_dict(MADE["simultaneous"]())
    raw["cutoffs"][0]["steps"][0]["critical_count"] += 1
    raw["cutoffs"][0]["steps"][0]["reached"] += 1
    assert sl.Policy.loads(json.dumps(raw)).rule == "simultaneous"
    raw["cutoffs"][0]["steps"][0]["critical_count"] -= 2
    with pytest.raises(sl.PolicyFileError, match="less than the"):
        sl.Policy.loads(json.dumps(raw))


def test_saving_to_a_folder_is_a_plain_error(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(sl.InvalidInput, match=r"is a folder"):
        MADE["expected"]().save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        # one more than the largest that calibration writes: a loader without the limit fails soon, too
        (lambda raw: raw["cutoffs"][0].update(steps=raw["cutoffs"][0]["steps"] * 2_002), "length <= 2001"),
        (lambda raw: raw["cutoffs"][0].update(rows=2 * 10**9 + 1), "more than can be checked"),
        (lambda raw: raw.update(cutoffs=raw["cutoffs"] * 10_001), "length <= 10000"),
    ],
)
def test_a_file_that_would_stall_the_loader_is_refused_before_any_work(tmp_path, change, words):
    scores = np.random.default_rng(0).random(500)
    sl.calibrate(scores, scores > 0.5, sl.Expected(5, 100)).save(tmp_path / "policy.json")
    raw = json.loads((tmp_path / "policy.json").read_text())
    change(raw)
    (tmp_path / "evil.json").write_text(json.dumps(raw))
    with pytest.raises(sl.PolicyFileError, match=words):
        sl.Policy.load(tmp_path / "evil.json")


def test_a_recall_by_group_says_whose_and_a_sentence_edited_in_the_file_is_not_repeated(tmp_path):
    both = {"a": sl.Recall(0.8), "b": sl.Recall(0.8)}
    policy = sl.calibrate(SCORES, LABELS, both, groups=sl.Groups(GROUPS, purpose="a test"))
    assert (
        "For group 'a' the shortlist keeps at least 80% of all qualified candidates of the group;"
        in policy.promise
    )
    policy.save(tmp_path / "policy.json")
    text = (tmp_path / "policy.json").read_text()
    (tmp_path / "edited.json").write_text(text.replace("80% of all qualified", "90% of all qualified"))
    assert sl.Policy.load(tmp_path / "edited.json").promise == policy.promise


def parts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of a file, however deep; of a list the first two."""
    named = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for key, inner in named:
        if isinstance(value, dict):
            yield (*path, key)
        yield from parts(inner, (*path, key))


def test_every_kind_and_every_proof_has_a_policy_to_test_files_with():
    cutoffs = [cutoff for kind in KINDS for cutoff in policy_of(kind).cutoffs]
    missing = (kinds.KINDS.keys() - {each.target.kind for each in cutoffs}) | (
        kinds.PROOFS.keys() - {each.proof.kind for each in cutoffs}
    )
    assert not missing, "add a policy of it to KINDS in tests/helpers/promise_kinds.py"


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_is_cut_from_a_file_is_missed_or_changes_nothing_that_is_said(kind):
    """Cut, `withdrawn` gave the promise back, and `shift` or `thinning` took its conditions away."""
    policy = policy_of(kind)
    whole = policy_file.to_dict(policy)
    assert sl.Policy.loads(json.dumps(whole)) == replace(policy, salt=None)
    for *path, last in parts(whole):
        cut = json.loads(json.dumps(whole))
        inner = cut
        for key in path:
            inner = inner[key]
        del inner[last]
        try:
            read = sl.Policy.loads(json.dumps(cut))
        except sl.PolicyFileError:
            continue
        assert (read.promise, read.conditions) == (policy.promise, policy.conditions)


def test_policies_are_compared_by_what_they_know_and_travel():
    scores = np.linspace(0, 1, 400)
    policy = sl.calibrate(scores, scores > 0.6, sl.Expected(5, 100))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert sl.Expected(5, 100) == sl.Expected(5, 100) != sl.Expected(6, 100)
    assert len({sl.Expected(5, 100), sl.Expected(5, 100), sl.Recall(0.9)}) == 2
    assert policy != policy.withdraw("a test")


def test_a_digest_in_a_policy_file_is_64_digits_and_nothing_else():
    scores = np.random.default_rng(17).random(500)
    policy = sl.calibrate(scores, (scores > 0.5) * 3.0, sl.Value(30, pool_size=100))
    text = policy_file.dumps(policy)
    cutoff = json.loads(text)["cutoffs"][0]
    for digest in (cutoff["fingerprint"], cutoff["proof"]["draw"]):
        for wrong in (digest[:-1], digest + "\\n"):
            with pytest.raises(sl.PolicyFileError, match="regex"):
                sl.Policy.loads(text.replace(digest, wrong))


EDITED = {  # a list that is longer, or of more candidates, than the labels carry
    "collection, recall of rare ones": [("collection", 2), ("begin", 0.5)],
    "collection, precision": [("listed", 1.02)],
    "collection, triage": [("accepted.listed", 1.02), ("rejected.collection", 2)],
}


@pytest.mark.parametrize(
    ("kind", "name", "times"), [(kind, *each) for kind, edits in EDITED.items() for each in edits]
)
def test_a_list_edited_to_hold_more_than_was_labelled_for_is_refused(tmp_path, kind, name, times):
    """Twice the collection of two draws, or a list of a few more, was read as if it had been proved."""
    policy_of(kind).save(tmp_path / "policy.json")
    raw = json.loads((tmp_path / "policy.json").read_text())
    proof = raw["cutoffs"][0]["proof"]
    *inside, last = name.split(".")
    part = proof[inside[0]] if inside else proof
    if last == "collection":  # every part says so
        for each in filter(lambda each: isinstance(each, dict), (proof, *proof.values())):
            each["collection"] = round(times * policy_of(kind).cutoffs[0].proof.collection_size or 0)
    else:
        part[last] = round(times * part[last])
    with pytest.raises(sl.PolicyFileError, match=r"these labels carry|in no draw"):
        sl.Policy.loads(json.dumps(raw))


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("groups, own rows", {"group_rows": "all"}, "do not count among all rows"),
        ("groups, all rows", {"rows": 1_999}, "do not count among all rows"),
        ("next pool", {"by": "rank"}, "ends at no rank"),
    ],
)
def test_counts_edited_to_be_of_other_rows_or_ranks_are_refused(kind, change, words):
    """Own rows read as all rows promised of every pool what was proved of the group's own candidates."""
    raw = json.loads(policy_file.dumps(policy_of(kind)))
    raw |= {name: value for name, value in change.items() if name == "group_rows"}
    raw["cutoffs"][0] |= {name: value for name, value in change.items() if name == "rows"}
    raw["cutoffs"][0]["target"] |= {name: value for name, value in change.items() if name == "by"}
    with pytest.raises(sl.PolicyFileError, match=words):
        sl.Policy.loads(json.dumps(raw))
