"""How a column of text writes its numbers: decimal comma or point, thousands, percent. Pure; no table.

What could be read in two ways ("1,234") is decided by the rest of the column. Where nothing in the column
decides, ``Ambiguous`` says what was seen: nobody guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

SPACES = " \u00a0\u202f\u2009"  # as spreadsheets write them between thousands
_SEPARATORS = {"": "", ".": "[.]", ",": "[,]", " ": f"[{SPACES}]", "'": "['\u2019]"}
_BLANK = f"[{SPACES}\\t]*"
_SIGN = "[+\u2212-]?"
BLANK_PATTERN = f"^{_BLANK}$"


class NumberStyle(Struct, frozen=True):
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


class Seen(Struct, frozen=True):
    """How often a shape occurs, and one text that has it."""

    count: int
    example: str


class Ambiguous(Exception):
    """A column that can be read in two ways; the message is the fact, without the column's name."""


class Decision(Struct, frozen=True):
    """How a column is to be read, with an example of it, and how many texts are no numbers."""

    style: NumberStyle
    example: str | None = None
    value: float | None = None
    numbers: int = 0
    others: int = 0


SHAPE_DIGIT, SHAPE_ZERO = "[0-9]", f"^{_BLANK}{_SIGN}0[.,]"
_EITHER = re.compile(f"^{_SIGN}9{{1,3}}([.,])999$")
_PLAIN = re.compile(NumberStyle().pattern)
_STYLES = [
    NumberStyle(decimal, thousands, percent)
    for decimal, others in ((".", ("", ",", " ", "'")), (",", ("", ".", " ", "'")))
    for thousands in others
    for percent in (False, True)
]


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


def is_clearly_plain(texts: list[str]) -> bool:
    """Whether a sample needs no further look: plain numbers, some of which only a decimal point explains."""
    shapes = {shape_of(text) for text in texts}
    if not all(_PLAIN.match(shape.text) for shape in shapes):
        return False
    rest = {shape.text.partition(".")[2] for shape in shapes}
    if any(each and each == "9" * len(each) != "999" for each in rest):  # thousands are three digits
        return True
    return any({style.decimal for style in _fitting(shape)} == {"."} for shape in shapes)


def _fitting(shape: Shape) -> list[NumberStyle]:
    """The styles that write numbers so; a leading zero is followed by no thousands."""
    first = re.search("[.,]", shape.text) if shape.zero else None
    grouped = None if first is None else first.group()
    return [each for each in _STYLES if each.thousands != grouped and re.match(each.pattern, shape.text)]


def decide(seen: Mapping[Shape, Seen], decimal: str | None = None) -> Decision:
    """One style for a whole column, from all its shapes; raises ``Ambiguous``."""
    ordered = sorted(seen.items(), key=lambda item: (-item[1].count, item[0]))  # engines answer in any order
    filled = {shape: each for shape, each in ordered if not re.match(BLANK_PATTERN, shape.text)}
    fits = {shape: _fitting(shape) for shape in filled}
    mark = decimal or _decimal_from(filled, fits)
    fits = {shape: [each for each in styles if each.decimal == mark] for shape, styles in fits.items()}
    read = {shape: filled[shape] for shape, styles in fits.items() if styles}
    votes = dict.fromkeys(("", ".", ",", " ", "'"), 0)  # what most values have between thousands, if any has
    for shape, each in read.items():
        marks = {style.thousands for style in fits[shape]}
        votes |= {one: votes[one] + each.count for one in marks if "" not in marks}
    style = NumberStyle(mark, max(votes, key=lambda one: votes[one]), _percent(read))
    fitting = {shape: each for shape, each in read.items() if style in fits[shape]}

    def telling(item: tuple[Shape, Seen]) -> tuple[bool, int]:
        """An example should show what is not plain."""
        shape, each = item
        return ("." in shape.text if style.plain else not _PLAIN.match(shape.text)), each.count

    example = max(fitting.items(), key=telling, default=None)
    text = example[1].example if example else None
    count, everyone = sum(e.count for e in fitting.values()), sum(e.count for e in filled.values())
    return Decision(style, text, style.value(text) if text else None, count, everyone - count)


def _decimal_from(filled: Mapping[Shape, Seen], fits: Mapping[Shape, Sequence[NumberStyle]]) -> str:
    votes = {".": 0, ",": 0}
    examples: dict[str, str] = {}
    either: Seen | None = None
    for shape, each in filled.items():
        marks = {style.decimal for style in fits[shape]}
        if len(marks) == 1:
            mark = marks.pop()
            votes[mark] += each.count
            examples.setdefault(mark, each.example)
        elif marks and not shape.zero and _EITHER.match(_bare(shape.text)):
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
