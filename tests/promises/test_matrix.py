"""Every set of conditions that a kind declares is taken; others are refused in a sentence."""

from __future__ import annotations

import random
import re
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import asdict

import surelist as sl
from surelist.promises import kinds
from surelist.promises.conditions import WORDS, Conditions
from surelist.promises.promise import Promise
from surelist.promises.proved import proof_of, require_proof

ONE_OF_EACH: list[Promise] = [
    sl.Expected(5, 100), sl.PerPool(3, 100), sl.Recall(0.8), sl.Precision(0.5), sl.Triage(0.9, reject_recall=0.9), sl.Budget(10, 100), sl.NextPool(k=2),
    sl.NextPool(recall=0.8), sl.PoolAverage(2), sl.Value(100, 100), sl.FalseShare(0.4), sl.ThisList(5), sl.AtLeast(5),
]  # fmt: skip
VALUES = {name: get_args(hint) for name, hint in get_type_hints(Conditions).items() if name != "rule"}


def named(promise: Promise) -> str:
    return promise.describe()


def test_every_kind_that_declares_a_set_is_walked():
    declaring = {each for each in kinds.classes() if each.proved_with}
    assert declaring == {type(each) for each in ONE_OF_EACH}, "a kind is missing in ONE_OF_EACH, above"


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
    given = "given" if promise.others == "needed" else None
    refused, draw = 0, random.Random(21)
    for _ in range(600):
        asked = Conditions(promise.rules[0], **{name: draw.choice(values) for name, values in VALUES.items()})
        if asked.split != "even" and asked.groups == "none":
            continue  # nobody can ask for that
        missing_only = promise.every_label and asked.labels == "missing"  # the rows decide
        if proof_of(promise, asked) is not None or missing_only or (given and asked.others != given):
            continue
        with pytest.raises(sl.InvalidInput) as caught:
            require_proof(promise, asked)
        said = str(caught.value)
        things = [type(promise).__name__, *(WORDS[pair] for pair in asdict(asked).items() if pair in WORDS)]
        assert sum(each in said for each in things) >= 2, said
        assert re.search(r"no proof|do not go together", said), said
        refused += 1
    assert refused > 50


def test_pools_beside_rows_and_dropped_rows_are_conditions_like_any_other():
    """What a table's front end leaves to the declarations: no list of its own."""
    rows = pd.DataFrame({"score": [0.1, 0.5, np.nan, 0.7], "label": [0, 1, 1, 1], "pool": [1, 1, 2, 2]})
    asked = {"score": "score", "label": "label", "on_bad_rows": "drop", "alpha": 0.4}
    kept = sl.calibrate_table(rows, target=sl.Expected(1, 4), pool="pool", **asked)
    assert kept.dropped_rows == 1
    with pytest.raises(
        sl.InvalidInput, match="on_bad_rows: Precision and dropped rows have no proof together"
    ):
        sl.calibrate_table(rows, target=sl.Precision(0.5), unlabelled=[0.1, 0.2], **asked)
    two = [sl.Expected(1, 4), sl.Recall(0.1)]
    with pytest.raises(
        sl.InvalidInput, match="several promises of one list and dropped rows do not go together"
    ):
        sl.calibrate_table(rows, target=two, **asked)
    drawn = sl.SampledLabels([0, 1, np.nan, 1], probability=0.5)
    with pytest.raises(
        sl.InvalidInput,
        match=r"pools: labels drawn .* and pools beside rows do not go together: labels of some",
    ):
        sl.calibrate([1, 2, 3, 4], drawn, sl.Expected(1, 4), pools=[1, 1, 2, 2])


def test_sidak_is_for_disjoint_groups_with_rows_of_their_own():
    for promise in ONE_OF_EACH:
        for groups in ("none", "overlapping", "all", "all overlapping"):
            assert proof_of(promise, Conditions(groups=groups, split="sidak")) is None  # type: ignore[arg-type]
    assert proof_of(ONE_OF_EACH[0], Conditions(groups="own", split="sidak")) is not None


def test_a_labelling_and_a_campaign_take_what_is_declared_for_them():
    scores, labels = np.linspace(0, 1, 200), np.arange(200) % 2
    for promise in ONE_OF_EACH:
        for evidence, start in (
            ("labelling", lambda: sl.Labelling(scores, promise, labels=100)),  # noqa: B023
            ("campaign", lambda: sl.Campaign(scores, labels, promise)),  # noqa: B023
        ):
            if proof_of(promise, Conditions(evidence=evidence)) is not None:  # type: ignore[arg-type]
                start()
            else:
                with pytest.raises(sl.InvalidInput, match=f"has no proof from a {evidence}, only from"):
                    start()
