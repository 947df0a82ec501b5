"""The promise in two lines: for every kind there is, true of the case, short, and free of insiders' words."""

from __future__ import annotations

import re

import pytest

import surelist as sl
from surelist._numerals import about
from surelist.promises import policy_file
from tests.helpers.promise_kinds import GROUPS, KINDS, LABELS, SCORES, TARGET, made, policy_of

INSIDERS = re.compile(
    r"\b(simultaneous|DKW|dkw|pac|bernstein|alpha|the paper|exact rule|e-value|conformal|looked at|on_bad_rows)\b"
)
CALIBRATION = "How sure: at most 1 calibration in 10 ends in a false promise."
TOGETHER = "How sure: over calibrations and pools together, a list falls short at most 1 time in 10."
WORDS = {
    "expected": ("On average at least 5 of about 7 candidates listed per 100 will be qualified.", CALIBRATION),
    "expected over whole pools": (
        "On average the list of a pool will hold at least 5 qualified candidates.", CALIBRATION
    ),
    "per pool": (
        "The list of a pool of 100 or more candidates will hold at least 5 qualified candidates, of about 11 listed "
        "per 100.",
        TOGETHER,
    ),
    "per pool, two levels": (
        "The list of a pool of 100 or more candidates will hold at least 5 qualified candidates, of about 17 listed "
        "per 100.",
        "How sure: at most 1 calibration in 20 misleads; after any other, a list falls short in at most 1 pool in 20.",
    ),
    "next pool by rank": (
        "The list of the next pool, its best 8 candidates, will hold at least 2 qualified candidates.", TOGETHER
    ),
    "recall": (
        "In the long run the list, about 62 of 100 candidates, will keep at least 95 of every 100 qualified "
        "candidates.",
        CALIBRATION,
    ),
    "precision": (
        "In the long run at least 60 of every 100 candidates listed will be qualified, with about 14 listed per 100.",
        CALIBRATION,
    ),
    "average false share": (
        "On lists made in this way at most 40 of every 100 candidates are not qualified, on average.",
        "How sure: it is true on average over calibrations and pools, and says nothing about this one list.",
    ),
    "budget": (
        "On average at least 5.9 of about 10 candidates listed per 100 will be qualified.", CALIBRATION
    ),
    "collection, recall": (
        "The list, with everyone labelled qualified on it, keeps at least 80 of every 100 qualified candidates among "
        "these 2,000.",
        "How sure: at most 1 labelling in 10 ends in a false promise.",
    ),
    "campaign": (
        "On average at least 5 of about 7 candidates listed per 100 will be qualified.",
        "How sure: at most 1 campaign in 10 ever makes a false promise.",
    ),
    "withdrawn": ("Nothing is promised any more.", "Why: the alarm of the monitor was raised"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_two_lines_and_what_they_mean(kind):
    policy = policy_of(kind)
    lines = policy.two_lines
    if kind in WORDS:
        assert (lines.what, lines.sure) == WORDS[kind]
    text = " ".join((lines.what, lines.sure, *lines.meaning))
    assert INSIDERS.search(text) is None, text
    assert "e+" not in text
    assert "None" not in text
    if kind != "withdrawn":
        assert lines.what.endswith(".")
        assert lines.sure.startswith("How sure: ")
        assert lines.meaning
        longest = 170 if not policy.grouped and len(policy.cutoffs) == 1 else 340
        assert len(lines.what) < longest
    shown = policy._repr_html_()
    assert shown.count(lines.what.replace("'", "&#x27;")) == 1
    assert "What this means" in shown or kind == "withdrawn"


@pytest.mark.parametrize("kind", ["two promises", "two counts"])
def test_several_promises_are_all_said_and_hold_at_once(kind):
    lines = policy_of(kind).two_lines
    assert ", and " in lines.what
    assert "at least 5" in lines.what
    assert lines.sure == "How sure: at most 1 calibration in 10 ends with one of its promises false."
    assert "All of it holds at once" in " ".join(lines.meaning)


def test_groups_are_named_and_their_numbers_are_their_own():
    lines = policy_of("groups, own rows").two_lines
    assert lines.what.startswith("For group 'north', on average at least 5 of about ")
    assert "; for group 'south', on average at least 3 of about " in lines.what
    assert "false for some group" in lines.sure
    shared = policy_of("groups, all rows").two_lines
    assert "about" not in shared.what, "whose list how long is, is not known"
    many = {f"g{at}": sl.Expected(1, 100) for at in range(5)}
    policy = sl.calibrate(
        SCORES, LABELS, many, groups=sl.Groups([f"g{at % 5}" for at in range(2_000)], purpose="a test")
    )
    assert policy.two_lines.what.endswith("; and so on for 2 more.")
    assert len(set(GROUPS)) == 2


@pytest.mark.parametrize(
    ("alpha", "often"),
    [(0.1, "1 calibration in 10"), (0.05, "1 calibration in 20"), (0.15, "15 calibrations in 100"),
     (0.025, "1 calibration in 40"), (0.001, "1 calibration in 1,000")],
)  # fmt: skip
def test_how_often_it_may_be_false_is_never_said_too_small(alpha, often):
    assert f"at most {often} ends" in made(TARGET, alpha=alpha).two_lines.sure.replace(" end ", " ends ")


def test_best_of_several_says_that_one_was_taken():
    assert "Of 2 scores" in " ".join(policy_of("best of several").two_lines.meaning)


def test_large_pools_have_numbers_as_people_write_them():
    policy = made(sl.Expected(50_000, 1_000_000))
    assert "at least 50,000 of about 7" in policy.two_lines.what
    assert "listed per 1,000,000 will" in policy.two_lines.what
    said = [policy.describe(), repr(policy), *(each.message for each in policy.check_pool(SCORES[:500]))]
    assert not any("e+" in each for each in said)
    assert sl.Budget(5_000, 2_000_000).describe() == "what a list of 5,000 of 2,000,000 candidates holds"


LENGTHS = {  # kinds whose threshold more than a count decides: what they say of the list
    "precision": "will be qualified, with about {} listed per 100.",
    "two promises": "will be qualified, with about {} listed per 100.",
    "expected with other scores": "On average at least 5 of about {} candidates listed per 100 will be qualified.",
    "labels above and an audit": "On average at least 5 of about {} candidates listed per 100 will be qualified.",
    "value": "On average the list of a pool of 100 candidates, about {} of them, will be worth at least 400.",
    "few labels, expected": "On average at least 5 of about {} candidates listed per 100 will be qualified.",
    "few labels, per pool": "at least 3 qualified candidates, of about {} listed per 100.",
}


@pytest.mark.parametrize("kind", LENGTHS)
def test_the_length_of_the_list_is_that_of_the_rows_at_hand(kind):
    policy = policy_of(kind)
    rows = SCORES[:300] if kind in ("two promises", "expected with other scores") else SCORES
    listed = 100 * float((rows >= policy.thresholds[None]).mean())
    assert policy.two_lines.what.endswith(LENGTHS[kind].format(about(listed)))
    assert any("“About” is an estimate" in each for each in policy.two_lines.meaning)
    again = sl.Policy.loads(policy_file.dumps(policy))
    assert again.two_lines == policy.two_lines


def test_a_list_of_the_candidates_in_hand_says_how_many_are_on_it():
    policy = policy_of("collection, at least")
    listed = int((policy.thresholds[None] <= SCORES).sum())
    assert policy.two_lines.what == (
        f"The list, about {listed} of these 2,000 candidates, holds at least 100 qualified ones."
    )
    assert "“About” is an estimate" not in " ".join(policy.two_lines.meaning)


@pytest.mark.parametrize("kind", ["collection, precision", "collection, triage"])
def test_who_is_on_a_list_by_name_is_not_said_to_follow_from_the_score(kind):
    """“Whoever scores as much as the last one on the list is on it too”: not one who was labelled not qualified."""
    assert "“About”" not in " ".join(policy_of(kind).two_lines.meaning)


@pytest.mark.parametrize(
    "kind", ["next pool", "average false share", "expected over whole pools", "collection, recall"]
)
def test_where_the_length_of_the_list_is_not_known_none_is_said(kind):
    assert "about" not in policy_of(kind).two_lines.what


@pytest.mark.parametrize("kind", ["next pool", "next pool by rank", "expected over whole pools"])
def test_what_was_worked_out_from_pools_is_about_pools_that_come_as_they_came(kind):
    """Pools are the draws: a candidate who comes alone, or in a pool of another kind, is not covered."""
    meaning = policy_of(kind).two_lines.meaning
    assert (
        "It is about pools that come as those of the calibration rows came, with the same score." in meaning
    )
    assert not any("It is about candidates who come" in each for each in meaning)
