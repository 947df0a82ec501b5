"""Rows in a JSON body: the columns that are read agree with the rows as plain values, and rows stay as sent."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surelist._check import as_codes
from surelist.errors import InvalidInput
from surelist.service.sent_rows import SentRows, parse, rows_in
from surelist.workflows.selection import select_columns
from tests.promises.test_pool_checks import POLICY, grouped_policy

NAMES = {"score": "score", "group": "group", "id": "id"}
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
SCORES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70))
ROWS = st.lists(
    st.fixed_dictionaries(
        {"score": SCORES | PLAIN, "group": VALUES, "id": PLAIN}, optional={"other": VALUES, "ähm": VALUES}
    ),
    max_size=6,
)


def outcome(job) -> Any:
    try:
        return job()
    except InvalidInput as refused:
        return str(refused)


def body_of(rows: Any) -> bytes:
    return json.dumps({"rows": rows}).encode()


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(ROWS, st.booleans())
def test_columns_agree_with_the_rows_as_plain_values(rows, ascii):
    body = json.dumps({"rows": rows}, ensure_ascii=ascii).encode(errors="surrogatepass")
    quick = outcome(lambda: SentRows(body).columns(NAMES))
    wrong = [
        number
        for number, row in enumerate(rows, 1)
        if type(row["score"]) not in (int, float)
        or (isinstance(row["score"], int) and abs(row["score"]) > 2**53)
    ]
    if isinstance(quick, str):
        assert "body: expected JSON" in quick or f" in row {wrong[0]}" in quick
        return
    assert not wrong
    assert quick["group"] == [row["group"] for row in rows]
    assert quick["id"] == [row["id"] for row in rows]
    assert [type(each) for each in quick["id"]] == [type(row["id"]) for row in rows]
    assert quick["score"].tolist() == [float(row["score"]) for row in rows]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=12), st.integers(0, 40))
def test_whatever_is_no_json_is_refused_where_it_is_skipped_too(noise, at):
    body = body_of([{"score": 0.5, "text": "a b", "more": [1, {"x": None}]}] * 2)
    body = body[:at] + noise + body[at:]
    plain = outcome(lambda: rows_in(parse(body), "rows"))
    if isinstance(plain, str):
        assert isinstance(outcome(lambda: SentRows(body).columns({"score": "score"})), str), body


@pytest.mark.parametrize(
    "value",
    [b"01", b"1.", b"-", b"NaN", b"nul", b"[1,]", b'{"a":}', b"{1:2}", b'"\\q"', b'"\\u12"', b'"\\ud800"', b'"\t"', b'"\xff"',
     b'"\xed\xa0\x80"', b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000],
)  # fmt: skip
def test_a_column_that_is_not_needed_must_be_json(value):
    with pytest.raises(InvalidInput, match="body: expected JSON"):
        SentRows(b'{"rows": [{"score": 1, "other": ' + value + b"}]}").columns({"score": "score"})


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"5",
        b"null",
        b"{}",
        b'{"rows": 5}',
        b'{"rows": null}',
        b'{"rows": [5]}',
        b'{"rows": [{"score": 1}, []]}',
    ],
)
def test_rows_are_a_list_of_objects(body):
    with pytest.raises(InvalidInput, match=r'body: expected \{"rows"'):
        SentRows(body).columns({"score": "score"})


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("0.5", "column 'score': expected a number, got '0.5' in row 2"),
        (None, "expected a number, got None in row 2"),
        (True, "expected a number, got True in row 2"),
        (2**53 + 2, "beyond 2\\^53 .*in row 2"),
        ([1], r"expected a number, got \[1\] in row 2"),
    ],
)
def test_a_score_that_is_none_is_refused_in_its_row(score, said):
    rows = [{"score": 1}, {"score": score}]
    with pytest.raises(InvalidInput, match=said):
        select_columns(SentRows(body_of(rows)).columns({"score": "score"}), POLICY)


def test_rows_with_the_same_columns_or_others_in_any_order_are_read_alike():
    even = [{"score": n / 4, "at": "12:30", "c0": None} for n in range(5)]
    mixed = [{"c0": None, "score": row["score"], "at": "12:30"} for row in even]
    uneven = [row if n else {**row, "more": {"score": 7}} for n, row in enumerate(even)]
    for rows in (even, mixed, [*even[:1], *mixed[1:]], uneven, uneven[::-1][:-1] + uneven[:1]):
        columns = SentRows(body_of(rows)).columns({"score": "score", "id": "at", "group": "c0"})
        assert columns["score"].tolist() == [row["score"] for row in rows]
        assert columns["id"] == ["12:30"] * 5
        assert columns["group"] == [None] * 5


def test_a_row_without_the_column_is_named():
    with pytest.raises(InvalidInput, match=r"score: row 2 has no 'score'; it has 'x'"):
        SentRows(body_of([{"score": 1}, {"x": 1}])).columns({"score": "score"})
    with pytest.raises(InvalidInput, match=r"score: row 1 has no 'score'; it has 'x', 'y'\."):
        SentRows(body_of([{"x": 1, "y": 2}] * 2)).columns({"score": "score"})
    with pytest.raises(InvalidInput, match=r"score: row 1 has no 'score'; it has no columns\."):
        SentRows(body_of([{}])).columns({"score": "score"})


def test_one_column_in_two_roles_is_read_as_it_was_sent():
    columns = SentRows(body_of([{"score": 1}, {"score": 2}])).columns({"score": "score", "id": "score"})
    assert [type(each) for each in columns["id"]] == [int, int]


def test_rows_come_back_letter_for_letter():
    row = b'{ "score":1.50, "n": 123456789012345678901234567890, "t": "\\u00e4 \xc3\xa4" }'
    sent = SentRows(b'{"rows": [' + row + b"]}")
    assert sent.at([0]) == b"[" + row + b"]"
    assert sent.columns({"score": "score"})["score"].tolist() == [1.5]
    assert sent.has("n")
    assert not sent.has("x")
    even = [b'{"score" : 1.50}', b'{ "score":2,\n"n":[ ] }', b'{"score":3}']
    for others in (
        [],
        [b'{"score":1, "n":"}{"}'],
        [b'{"score":1, "n":"{"}', b'{"score":1, "n":"}"}'],
        [b'{"score":1,"n":{}}'],
    ):
        rows = [*others, *even]
        sent = SentRows(b' {"rows": [' + b" , ".join(rows) + b"] } ")
        assert [sent.at([number]) for number in range(len(rows))] == [b"[" + row + b"]" for row in rows]
        assert sent.at(range(len(rows))) == b"[" + b",".join(rows) + b"]"
        assert sent.at([]) == b"[]"


def test_column_names_may_be_anything():
    for name in ("", "a b", "ä", '"', "score\n", "__class__", "rows"):
        columns = SentRows(body_of([{name: 0.25}])).columns({"score": name})
        np.testing.assert_array_equal(columns["score"], [0.25])


@pytest.mark.parametrize("number", [b"1e400", b"9" * 5000])
def test_a_number_that_no_float_holds_is_json_and_is_refused_as_a_number(number):
    with pytest.raises(InvalidInput, match="body: expected JSON with numbers and depth that can be read"):
        SentRows(b'{"rows": [{"score": ' + number + b"}]}").columns({"score": "score"})


@pytest.mark.parametrize("role", ["score", "group", "pool"])
@pytest.mark.parametrize("nested", [False, True])
def test_one_long_text_takes_the_memory_of_one(role, nested):
    """NumPy's arrays of text have rows as long as the longest."""
    policy = grouped_policy() if role == "group" else POLICY
    row = {"score": 0.5, "group": "a", "pool": "p"}
    long = {**row, role: ["x" * 20_000] if nested else "x" * 20_000}
    plain = {**row, role: [row[role]] if nested else row[role]}
    names = {each: each for each in row if each != "group" or role == "group"}
    sent = SentRows(body_of([plain] * 2_000 + [long]))
    tracemalloc.start()
    try:
        said = outcome(lambda: select_columns(sent.columns(names), policy))
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
    assert (role == "pool" and not nested) or len(said) < 300


def test_a_name_that_ends_in_a_nul_is_another_name():
    columns = {"score": [0.1, 0.2], "group": ["a", "b\0"]}
    assert "unknown group 'b\\x00'" in outcome(lambda: select_columns(columns, grouped_policy()))
    assert as_codes(["p", "p\0", "p"], 3)[1] == 2


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": [{"score": 1, "score": 2}]}',
        b'{"rows": [{"score": 1, "x": 1}, {"score" : 1, "x": 2, "x": 3}]}',
        b'{"rows": [{"score": 1, "x": "{", "x": 2}]}',
        b'{"rows": [{"score": 1, "x": {"y": 1, "y": 2}}]}',
        b'{"rows": [{"score": 1, "\\u0078": 1, "x": 2}]}',
        b'{"rows": ["ab", {"x": {"y": 1, "y": 2}}]}',
        b'{"rows": [{"score": 1}], "rows": [{"score": 1}]}',
        b'{"rows": [{"score": 1, "x": 1}, {"score": 1, "score": 2, "x": 1}]}',
        b'{"rows": [{"score": 1, "x": 1}, {"score": 1, "score": 2}]}',
        b'{"rows": [{"score": 1, "x": 1}, {"score": 1}, {"score": 1, "x": 2, "x": 3}]}',
        b'{"rows": [{"score": 1, "x": "12:30"}, {"score": 1, "x": 1, "x": "2"}]}',
        b'{"rows": [{"score": 1, "x": "12:30"}, {"score": 1, "x": "1", "x" :"2"}]}',
    ],
)
def test_a_key_said_twice_is_found_wherever_it_is(body):
    with pytest.raises(InvalidInput, match="twice"):
        SentRows(body)


def test_keys_in_texts_are_no_keys():
    SentRows(body_of([{"score": 1, "note": 'says "score": 2 and {"score":3}'}]))
