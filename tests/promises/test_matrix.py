"""Every set of conditions that a kind declares has a section and is taken; others are refused in a sentence."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from msgspec.structs import asdict

import surelist as sl
from surelist.promises import kinds
from surelist.promises.conditions import WORDS, Conditions, proof_of, require_proof
from surelist.promises.promise import Promise

STATISTICS = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
ONE_OF_EACH: list[Promise] = [
    sl.Expected(5, 100), sl.PerPool(3, 100), sl.Recall(0.8), sl.Precision(0.5), sl.Budget(10, 100), sl.NextPool(k=2),
    sl.NextPool(recall=0.8), sl.PoolAverage(2), sl.Value(100, 100), sl.FalseShare(0.4),
]  # fmt: skip
VALUES = {name: get_args(hint) for name, hint in get_type_hints(Conditions).items() if name != "rule"}


def named(promise: Promise) -> str:
    return promise.describe()


def test_every_kind_that_declares_a_set_is_walked():
    declaring = {each for each in kinds.classes() if each.proved_with}
    assert declaring == {type(each) for each in ONE_OF_EACH}


@pytest.mark.parametrize("promise", ONE_OF_EACH, ids=named)
def test_every_declared_set_names_a_section_of_the_statistics(promise):
    for each in promise.proved_with:
        assert f"{{#{each.section}}}" in STATISTICS, each.section


@pytest.mark.parametrize("promise", ONE_OF_EACH, ids=named)
def test_every_declared_set_is_taken(promise):
    taken = 0
    for each in promise.proved_with:
        for asked in each.sets():
            if promise.others == "needed" and asked.others == "none":
                continue
            require_proof(promise, asked)
            taken += 1
    assert taken


@pytest.mark.parametrize("promise", ONE_OF_EACH, ids=named)
def test_every_set_that_is_not_declared_is_refused_in_a_sentence_that_names_what_does_not_go_together(
    promise,
):
    """A sample of all sets: those without a proof name two things, of which one may be the promise."""
    every = [Conditions(promise.rules[0], *values) for values in product(*VALUES.values())]
    given = "given" if promise.others == "needed" else None
    refused = 0
    for asked in random.Random(21).sample(every, 400):
        missing_only = promise.every_label and asked.labels == "missing"  # the rows decide
        if proof_of(promise, asked) is not None or missing_only or (given and asked.others != given):
            continue
        with pytest.raises(sl.InvalidInput) as caught:
            require_proof(promise, asked)
        said = str(caught.value)
        beside = [WORDS[pair] for pair in asdict(asked).items() if pair in WORDS]
        things = [type(promise).__name__, *beside]
        assert sum(each in said for each in things) >= 2, said
        assert re.search(r"no proof|do not go together", said), said
        refused += 1
    assert refused > 50
