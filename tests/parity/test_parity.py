"""What surelist certifies for 77 recorded requests over every kind of promise and condition stays what it is."""

from __future__ import annotations

import json

import pytest

from tests.parity.requests_as_calls import ANSWERS, REQUESTS, answer

RECORDED = json.loads(ANSWERS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", REQUESTS)
def test_thresholds_counts_levels_and_lists_are_as_recorded(name):
    assert json.loads(json.dumps(answer(REQUESTS[name]))) == RECORDED[name]


def test_every_request_has_an_answer():
    assert list(RECORDED) == list(REQUESTS)
