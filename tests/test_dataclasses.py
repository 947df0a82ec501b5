"""Our dataclasses answer as those of the standard library do, and on the way to a list all are ours."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import surelist as sl
from surelist import _dataclasses as ours
from surelist.filters import Filter, GroupFilter, Threshold


def made_with(dataclass: Any) -> dict[str, Any]:
    """The same classes, made by either."""

    @dataclass(frozen=True)
    class Plain:
        a: int
        b: str = "x"
        c: tuple[int, ...] = ()

    @dataclass(frozen=True)
    class More(Plain):
        d: float = dataclasses.field(default=0.5, compare=False)
        e: list[int] = dataclasses.field(default_factory=list, repr=False, hash=False)

    @dataclass
    class Open:
        a: Any

    @dataclass(frozen=True, kw_only=True, repr=False, eq=False)
    class Bare:
        a: int

    @dataclass(frozen=True)
    class Special:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "special"

    return {each.__name__: each for each in (Plain, More, Open, Bare, Special)}


STANDARD, OURS = made_with(dataclasses.dataclass), made_with(ours.dataclass)


def values(classes: dict[str, Any]) -> list[Any]:
    plain, more, special = classes["Plain"], classes["More"], classes["Special"]
    return [
        plain(1), plain(1, "x"), plain(2), plain(1, c=(3,)), more(1), more(1, d=9.0), more(1, e=[4]),
        more(2), classes["Open"](1), classes["Open"](1), special(1), special(2),
    ]  # fmt: skip


def test_what_is_shown_compared_and_hashed_is_the_same():
    one, other = values(STANDARD), values(OURS)
    assert list(map(repr, one)) == list(map(repr, other))
    assert [[a == b for b in one] for a in one] == [[a == b for b in other] for a in other]
    assert [a != 1 for a in other] == [a != 1 for a in one]
    for a, b in zip(one, other, strict=True):
        try:
            wanted = hash(a)
        except TypeError:
            with pytest.raises(TypeError, match="unhashable"):
                hash(b)
        else:
            assert hash(b) == wanted


def test_classes_without_comparison_are_compared_by_identity():
    bare = OURS["Bare"](a=1)
    assert bare != OURS["Bare"](a=1)
    assert hash(bare) == object.__hash__(bare)
    assert repr(bare).startswith("<")
    with pytest.raises(TypeError):
        OURS["Bare"](1)


def test_frozen_ones_stay_frozen_and_signatures_stay():
    with pytest.raises(dataclasses.FrozenInstanceError):
        OURS["Plain"](1).a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del OURS["More"](1).a
    for name, each in OURS.items():
        assert inspect.signature(each) == inspect.signature(STANDARD[name])


def test_one_that_holds_itself_can_be_shown():
    open_ = OURS["Open"](None)
    open_.a = [open_]
    assert repr(open_).endswith("Open(a=[...])")


def test_policies_are_compared_by_what_they_know_and_travel():
    scores = np.linspace(0, 1, 400)
    policy = sl.calibrate(scores, scores > 0.6, sl.Expected(5, 100))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert sl.Expected(5, 100) == sl.Expected(5, 100) != sl.Expected(6, 100)
    assert len({sl.Expected(5, 100), sl.Expected(5, 100), sl.Recall(0.9)}) == 2
    assert policy != policy.withdraw("a test")


@pytest.mark.parametrize("each", [Filter, GroupFilter, Threshold])
def test_those_on_the_way_to_a_list_share_their_methods(each):
    assert each.__eq__ is ours._eq
    assert each.__hash__ is ours._hash
