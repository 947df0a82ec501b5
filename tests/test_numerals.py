"""Numbers as people write them: no exponent, thousands apart, never more than is promised."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from surelist._numerals import about, at_least, floored, number, of_every, one_in, percent, plain


@pytest.mark.parametrize(
    ("value", "text"),
    [(7.2, "7"), (6.52, "6.5"), (7.7, "8"), (42.3, "42"), (1318, "1,320"), (1_320_000, "1,320,000"), (0.42, "0.4"),
     (5.3, "5.3"), (0, "0"), (99.96, "100"), (0.0123, "0.012")],
)  # fmt: skip
def test_an_estimate_has_no_digits_that_mean_nothing(value, text):
    assert about(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1,000,000"), (1320.4, "1,320"), (1.2e-7, "0.00000012"), (0.84, "0.84"), (-3.5, "-3.5"), (None, "–"),
     (1e21, "1,000,000,000,000,000,000,000"), (0, "0"), (8.68e23, "868,000,000,000,000,000,000,000")],
)  # fmt: skip
def test_a_number_has_thousands_apart_and_no_exponent(value, text):
    assert number(value) == text


def test_no_number_has_an_exponent_and_forms_read_what_is_written():
    draw = random.Random(1)
    for _ in range(2_000):
        value = draw.uniform(-1, 1) * 10 ** draw.randint(-9, 12)
        shown = (number(value), about(abs(value)), percent(value), plain(value))
        assert not any("e" in each for each in shown)
        assert float(plain(value)) == pytest.approx(value, rel=1e-9)


def test_what_is_promised_is_never_said_too_large_nor_errors_too_rare():
    draw = random.Random(2)
    for _ in range(2_000):
        value = draw.uniform(0, 1) * 10 ** draw.randint(-3, 6)
        assert 0.9 * value <= floored(value) <= value
        share = draw.uniform(1e-5, 1)
        text = one_in(share, "time").replace(",", "").split()
        assert Fraction(int(text[0]), int(text[-1])) >= Fraction(repr(share))
    assert floored(6.799) == 6.7
    assert of_every(0.95) == "95 of every 100"
    assert of_every(0.975) == "975 of every 1,000"


@pytest.mark.parametrize(
    ("rows", "text"),
    [(1, "1"), (34, "34"), (99, "99"), (100, "100"), (231, "240"), (4816, "4,900"), (9901, "10,000")],
)
def test_rows_to_gather_are_rounded_upwards(rows, text):
    assert at_least(rows) == text
