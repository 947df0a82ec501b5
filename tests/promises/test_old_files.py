"""Policy files of earlier versions load and mean what they meant."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import surelist as sl

FILES = Path(__file__).parent / "files"
MEANING = json.loads((FILES / "meaning.json").read_text())


@pytest.mark.parametrize("name", MEANING["policies"])
def test_a_policy_file_of_the_first_format_means_the_same(name):
    policy, meant = sl.Policy.load(FILES / f"{name}.json"), MEANING["policies"][name]
    assert policy.promise == meant["promise"]
    assert {group or "": value for group, value in policy.thresholds.items()} == meant["thresholds"]
    scores = np.round(MEANING["pool"], 1) if policy.salt_hash else np.asarray(MEANING["pool"])
    extra = {"groups": MEANING["groups"]} if policy.grouped else {}
    if policy.salt_hash:
        extra["ids"] = [f"p{row}" for row in range(len(scores))]
    assert np.flatnonzero(policy.select(scores, **extra)).tolist() == meant["shortlisted"]


@pytest.mark.parametrize("name", MEANING["policies"])
def test_a_policy_file_of_the_first_format_says_everything_or_is_refused(name):
    raw = json.loads((FILES / f"{name}.json").read_text())
    for key in [key for key in raw if key not in ("looks", "withdrawn")]:
        with pytest.raises(sl.PolicyFileError, match=key):
            sl.Policy.loads(json.dumps({k: v for k, v in raw.items() if k != key}))
    step = raw["cutoffs"][0]["steps"][0]
    del step["tie_break"]
    with pytest.raises(sl.PolicyFileError, match=r"cutoffs\.0\.steps\.0\.tie_break"):
        sl.Policy.loads(json.dumps(raw))
    step["tie_break"], step["more"] = None, 1
    with pytest.raises(sl.PolicyFileError, match="more"):
        sl.Policy.loads(json.dumps(raw))
