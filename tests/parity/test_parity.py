"""What surelist certifies for recorded requests over every kind of promise and condition stays what it is."""

from __future__ import annotations

import json

import pytest

from surelist.promises.kinds import KINDS
from tests.parity.requests_as_calls import ANSWERS, REQUESTS, answer

RECORDED = json.loads(ANSWERS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", REQUESTS)
def test_thresholds_counts_levels_and_lists_are_as_recorded(name):
    assert json.loads(json.dumps(answer(REQUESTS[name]))) == RECORDED[name]


def test_every_request_has_an_answer():
    assert list(RECORDED) == list(REQUESTS), "python -m tests.parity.requests_as_calls writes answers.json"


def test_every_kind_has_a_request():
    """Its thresholds are recorded by that, and its sentences pinned in tests/golden."""
    text = json.dumps(list(REQUESTS.values()))
    missing = [kind for kind in KINDS if f'"kind": "{kind}"' not in text]
    assert not missing, (
        "add a line to requests.json, then python -m tests.parity.requests_as_calls, make golden"
    )
