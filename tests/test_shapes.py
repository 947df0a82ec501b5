"""What files hold is read strictly: every way of not fitting is an error that says where."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from surelist._shapes import MAY_BE_ABSENT, MisfitError, shaped


@dataclass(frozen=True)
class Round:
    kind: Literal["round"]
    radius: float


@dataclass(frozen=True)
class Square:
    kind: Literal["square"]
    side: int


@dataclass(frozen=True)
class Page:
    name: str
    number: int
    size: float
    draft: bool
    format: Literal[1, 2]
    note: str | None
    forms: tuple[Round | Square, ...]
    marks: list[float]
    words: dict[str, str]
    anything: dict[str, Any]
    first: Round | None = field(default=None, metadata=MAY_BE_ABSENT)


GOOD = {
    "name": "é", "number": 10**30, "size": 1, "draft": False, "format": 2, "note": None,
    "forms": [{"kind": "square", "side": 3}, {"kind": "round", "radius": 0.5}], "marks": [1, 2.5],
    "words": {"a": "b"}, "anything": {"x": [1, None]},
}  # fmt: skip


def test_what_fits_is_read_and_whole_numbers_stand_for_floats():
    page = shaped(Page, json.loads(json.dumps(GOOD)))
    assert page.forms == (Square("square", 3), Round("round", 0.5))
    assert (type(page.size), page.number, page.first) == (float, 10**30, None)
    assert [type(each) for each in page.marks] == [float, float]
    assert shaped(Page, {**GOOD, "first": {"kind": "round", "radius": 2}}).first == Round("round", 2.0)


@pytest.mark.parametrize(
    ("place", "value", "where"),
    [
        ("name", 3, "name"),
        ("name", "\ud800", "name"),
        ("number", 1.0, "number"),
        ("number", True, "number"),
        ("number", "1", "number"),
        ("size", float("inf"), "size"),
        ("size", float("nan"), "size"),
        ("size", 10**400, "size"),
        ("size", True, "size"),
        ("size", "1.0", "size"),
        ("draft", 0, "draft"),
        ("draft", None, "draft"),
        ("format", 3, "format"),
        ("format", True, "format"),
        ("format", 1.0, "format"),
        ("note", 1, "note"),
        ("forms", None, "forms"),
        ("forms", {}, "forms"),
        ("forms", [3], "forms.0"),
        ("forms", [{"kind": "oval"}], "forms.0"),
        ("forms", [{"kind": []}], "forms.0"),
        ("forms", [{"kind": "square", "side": 3}, {"kind": "round"}], "forms.1.radius"),
        ("forms", [{"kind": "square", "side": 3, "radius": 1}], "forms.0.radius"),
        ("forms", [{"kind": "square", "side": 3.5}], "forms.0.side"),
        ("marks", [1, "2"], "marks.1"),
        ("marks", "12", "marks"),
        ("words", {"a": 1}, "words.a"),
        ("words", {"\udfff": "a"}, "words"),
        ("words", [], "words"),
        ("anything", [], "anything"),
        ("first", [], "first"),
        ("more", 1, "more"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(place, value, where):
    with pytest.raises(MisfitError) as refused:
        shaped(Page, {**GOOD, place: value})
    assert str(refused.value).startswith(f"at {where!r}: ")


@pytest.mark.parametrize("name", GOOD)
def test_every_field_has_to_be_there(name):
    with pytest.raises(MisfitError, match="field required") as refused:
        shaped(Page, {key: value for key, value in GOOD.items() if key != name})
    assert refused.value.path == [name]


@pytest.mark.parametrize("raw", [None, [], "page", 3])
def test_a_file_is_an_object(raw):
    with pytest.raises(MisfitError, match="expected an object"):
        shaped(Page, raw)


def test_long_values_are_cut_in_errors():
    with pytest.raises(MisfitError) as refused:
        shaped(Page, {**GOOD, "number": "x" * 10_000})
    assert len(str(refused.value)) < 150
