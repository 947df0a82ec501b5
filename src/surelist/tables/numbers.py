"""How a column of text writes its numbers: decimal comma or point, thousands, percent. Pure; no table.

What could be read in two ways ("1,234") is decided by the rest of the column. Where nothing in the column
decides, ``Ambiguous`` says what was seen: nobody guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from surelist._dataclasses import dataclass

SPACES = " \u00a0\u202f\u2009"  # as spreadsheets write them between thousands
_SEPARATORS = {"": "", ".": "[.]", ",": "[,]", " ": f"[{SPACES}]", "'": "['\u2019]"}
_BLANK = f"[{SPACES}\\t]*"
_SIGN = "[+\u2212-]?"
BLANK_PATTERN = f"^{_BLANK}$"


@dataclass(frozen=True)
class NumberStyle:
    """One way to write numbers. The default is what every engine reads by itself."""

    decimal: str = "."
    thousands: str = ""
    percent: bool = False

    @property
    def plain(self) -> bool:
        return self == NumberStyle()

    @property
    def pattern(self) -> str:
        """What a number looks like, in the regular expressions that all engines share."""
        whole = "[0-9]+"
        if self.thousands:
            whole = f"(?:[0-9]{{1,3}}(?:{_SEPARATORS[self.thousands]}[0-9]{{3}})+|[0-9]+)"
        point = _SEPARATORS[self.decimal]
        exponent = "" if self.percent else "(?:[eE][+-]?[0-9]+)?"
        sign = f"{_BLANK}%" if self.percent else ""
        return f"^{_BLANK}{_SIGN}(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+){exponent}{sign}{_BLANK}$"

    @property
    def noise(self) -> str:
        """What is left out of a text that looks like a number before it is one."""
        return "[^0-9eE+\u2212" + ("." if self.decimal == "." else ",") + "-]"

    def value(self, text: str) -> float | None:
        """The number in a text; None where it is written in another way."""
        if re.match(self.pattern, text) is None:
            return None
        bare = re.sub(self.noise, "", text).replace("\u2212", "-").replace(",", ".")
        return float(bare + ("e-2" if self.percent else ""))

    def describe(self) -> str:
        """What is not plain about it, in words."""
        parts = ["decimal comma"] if self.decimal == "," else []
        if self.thousands:
            name = {".": "points", ",": "commas", " ": "spaces", "'": "apostrophes"}[self.thousands]
            parts.append(f"{name} between thousands")
        return ", ".join(parts + (["percent"] if self.percent else []))


class Shape(NamedTuple):
    """How a text looks: its digits as 9, and whether it begins with a zero before the mark."""

    text: str
    zero: bool


@dataclass(frozen=True)
class Seen:
    """How often a shape occurs, and one text that has it."""

    count: int
    example: str


class Ambiguous(Exception):
    """A column that can be read in two ways; the message is the fact, without the column's name."""


@dataclass(frozen=True)
class Decision:
    """How a column is to be read, with an example of it, and how many texts are no numbers."""

    style: NumberStyle
    example: str | None = None
    value: float | None = None
    numbers: int = 0
    others: int = 0


SHAPE_DIGIT, SHAPE_ZERO = "[0-9]", f"^{_BLANK}{_SIGN}0[.,]"
WHOLE = f"^{_BLANK}[+-]?[0-9]*{_BLANK}$"
_EITHER = re.compile(f"^{_SIGN}9{{1,3}}([.,])999$")
_PLAIN = re.compile(NumberStyle().pattern)
_POINT = [NumberStyle(".", t, p) for t in ("", ",", " ", "'") for p in (False, True)]
_COMMA = [NumberStyle(",", t, p) for t in ("", ".", " ", "'") for p in (False, True)]


def shape_of(text: str) -> Shape:
    """The same as the engines work out for a whole column."""
    return Shape(re.sub(SHAPE_DIGIT, "9", text), re.match(SHAPE_ZERO, text) is not None)


def shapes_of(texts: Iterable[object]) -> dict[Shape, Seen]:
    """The shapes of the texts among these values."""
    shapes: dict[Shape, Seen] = {}
    for text in texts:
        if isinstance(text, str):
            shape = shape_of(text)
            shapes[shape] = Seen(shapes[shape].count + 1 if shape in shapes else 1, text)
    return shapes


def all_whole(texts: list[str]) -> bool:
    """Whether a sample holds whole numbers only, written plainly."""
    return bool(texts) and all(re.match(WHOLE, text) for text in texts)


def is_clearly_plain(texts: list[str]) -> bool:
    """Whether a sample needs no further look: plain numbers, some of which only a decimal point explains."""
    shapes = {shape_of(text) for text in texts}
    if not all(map(_is_plain, shapes)):
        return False
    return any(map(_is_fraction, shapes)) or any(_decimal_of(each) == "." for each in shapes)


def _is_plain(shape: Shape) -> bool:
    return _PLAIN.match(shape.text) is not None


def _is_fraction(shape: Shape) -> bool:
    """Whether a plain shape ends in a point and digits, not three of them: no comma explains that."""
    digits = shape.text.partition(".")[2]
    return digits.isdigit() and len(digits) != 3


def _fits(shape: Shape, styles: list[NumberStyle]) -> bool:
    """Whether one of these styles writes numbers so; a leading zero is followed by no thousands."""
    return any(
        re.match(style.pattern, shape.text) is not None and not (shape.zero and _grouped(shape, style))
        for style in styles
    )


def _grouped(shape: Shape, style: NumberStyle) -> bool:
    """Whether the mark after a leading zero would be one between thousands."""
    first = re.search("[.,]", shape.text)
    return first is not None and first.group() == style.thousands


def _decimal_of(shape: Shape) -> str | None:
    """The decimal mark this shape proves; None where it proves none."""
    point, comma = _fits(shape, _POINT), _fits(shape, _COMMA)
    return None if point == comma else "." if point else ","


def decide(seen: Mapping[Shape, Seen], decimal: str | None = None) -> Decision:
    """One style for a whole column, from all its shapes; raises ``Ambiguous``."""
    ordered = sorted(seen.items(), key=lambda item: (-item[1].count, item[0]))  # engines answer in any order
    filled = {shape: each for shape, each in ordered if not re.match(BLANK_PATTERN, shape.text)}
    numbers = {shape: each for shape, each in filled.items() if _fits(shape, _POINT + _COMMA)}
    mark = decimal or _decimal_from(numbers)
    styles = [each for each in _POINT + _COMMA if each.decimal == mark]
    read = {shape: each for shape, each in numbers.items() if _fits(shape, styles)}
    style = NumberStyle(mark, _thousands(read, mark), _percent(read))
    fitting = {shape: each for shape, each in read.items() if _fits(shape, [style])}
    example = max(
        fitting.items(), key=lambda item: (_is_telling(item[0], style), item[1].count), default=None
    )
    text = example[1].example if example else None
    count, everyone = sum(e.count for e in fitting.values()), sum(e.count for e in filled.values())
    return Decision(style, text, style.value(text) if text else None, count, everyone - count)


def _decimal_from(numbers: Mapping[Shape, Seen]) -> str:
    votes = {".": 0, ",": 0}
    examples: dict[str, str] = {}
    either: Seen | None = None
    for shape, each in numbers.items():
        mark = _decimal_of(shape)
        if mark is not None:
            votes[mark] += each.count
            examples.setdefault(mark, each.example)
        elif not shape.zero and _EITHER.match(_bare(shape.text)):
            either = either or each
    if either is not None and bool(votes["."]) == bool(votes[","]):
        text = _bare(either.example)
        whole, cut = text.replace(",", "").replace(".", ""), text.replace(",", ".")
        why = "and no other value decides"
        if examples:
            why = f"and other values go both ways ({examples['.'].strip()!r}, {examples[','].strip()!r})"
        raise Ambiguous(f"{text!r} can be {cut} or {whole}, {why}")
    return "," if votes[","] > votes["."] else "."


def _bare(text: str) -> str:
    return text.strip(SPACES + "%\t")


def _thousands(read: Mapping[Shape, Seen], decimal: str) -> str:
    """The mark between thousands that most values have, if any has one."""
    votes = {
        mark: sum(
            each.count
            for shape, each in read.items()
            if re.match(NumberStyle(decimal, mark).pattern, shape.text.rstrip(SPACES + "%"))
            and not re.match(NumberStyle(decimal).pattern, shape.text.rstrip(SPACES + "%"))
        )
        for mark in (".", ",", " ", "'")
        if mark != decimal
    }
    best = max(votes, key=lambda mark: votes[mark])
    return best if votes[best] else ""


def _percent(read: Mapping[Shape, Seen]) -> bool:
    signed = {shape: each for shape, each in read.items() if "%" in shape.text}
    if signed and len(signed) < len(read):
        bare = next(each.example for shape, each in read.items() if shape not in signed)
        some = next(iter(signed.values())).example
        raise Ambiguous(
            f"{sum(each.count for each in signed.values()):,} values have a percent sign ({some.strip()!r}) "
            f"and others none ({bare.strip()!r}); write them all in one way"
        )
    return bool(signed)


def _is_telling(shape: Shape, style: NumberStyle) -> bool:
    """An example should show what is not plain."""
    return not _is_plain(shape) if not style.plain else "." in shape.text
