"""Every sentence about a promise, pinned once: for the requests of the parity fixture, a file per kind of sentence.

`make golden` writes the files anew; the change is then read in the diff. Other tests assert fields and numbers.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import surelist as sl
from surelist._names import PYTHON
from surelist.cli.options import flag_names
from surelist.service.errors import PAGE, PARAMETERS
from tests.golden.faults import FAULTS
from tests.parity.requests_as_calls import REQUESTS, policy_of

HERE = Path(__file__).parent


@functools.cache
def made() -> dict[str, sl.Policy | sl.NotCertifiable]:
    return {name: policy_of(request) for name, request in REQUESTS.items()}


def policies() -> dict[str, sl.Policy]:
    return {name: each for name, each in made().items() if isinstance(each, sl.Policy)}


def by_request(said: dict[str, list[str]]) -> str:
    return "\n".join(f"{name}\n" + "".join(f"    {each}\n" for each in lines) for name, lines in said.items())


def by_sentence(said: dict[str, list[str]]) -> str:
    """Each sentence once, and who says it: a change of words is one line."""
    who: dict[str, list[str]] = {}
    for name, sentences in said.items():
        for each in sentences:
            who.setdefault(each, []).append(name)
    return "\n".join(f"{each}\n    {'; '.join(names)}\n" for each, names in who.items())


def promise() -> str:
    return by_request({name: [each.promise] for name, each in policies().items()})


def two_lines() -> str:
    return by_request({name: [each.two_lines.what, each.two_lines.sure] for name, each in policies().items()})


def meaning() -> str:
    return by_sentence({name: list(each.two_lines.meaning) for name, each in policies().items()})


def conditions() -> str:
    return by_sentence({name: list(each.conditions) for name, each in policies().items()})


def evidence() -> str:
    return by_request(
        {
            name: [cutoff.proof.evidence(cutoff) for cutoff in each.cutoffs]
            for name, each in policies().items()
        }
    )


def warnings() -> str:
    return by_sentence({name: list(each.warnings) for name, each in policies().items()})


def refusal() -> str:
    return by_request(
        {name: [str(each)] for name, each in made().items() if isinstance(each, sl.NotCertifiable)}
    )


def describe() -> str:
    """One whole description: how its parts stand together. The day of making is left out."""
    lines = policies()["expected"].describe().splitlines()
    return "\n".join(each for each in lines if not each.startswith("  made ")) + "\n"


def errors() -> str:
    """Errors in the words of Python, the command line, the page and the API."""
    fronts = {"Python": PYTHON, "flags": flag_names(), "page": PAGE, "API": PARAMETERS}
    said = {}
    for name, call in FAULTS.items():
        with pytest.raises(sl.SurelistError) as caught:
            call()
        said[name] = [f"{front}: {caught.value.said(names)}" for front, names in fronts.items()]
    return by_request(said)


@pytest.mark.parametrize(
    "kind", [promise, two_lines, meaning, conditions, evidence, warnings, refusal, describe, errors]
)
def test_sentences_are_as_pinned(kind, renew):
    path = HERE / f"{kind.__name__}.txt"
    if renew:
        path.write_text(kind(), encoding="utf-8")
    assert kind() == path.read_text(encoding="utf-8"), "if this is meant: make golden, and read the diff"


def test_no_reference_stays_marked():
    for path in HERE.glob("*.txt"):
        assert not set("\ue000\ue001\ue002") & set(path.read_text(encoding="utf-8")), path.name
