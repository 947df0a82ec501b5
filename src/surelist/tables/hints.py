"""``Hints``: what a person says about a file that the file does not say by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, get_args

from msgspec import Struct, field
from msgspec.structs import force_setattr

from surelist import _check as check
from surelist._check import DecimalMark
from surelist._names import option
from surelist.errors import InvalidInput

LABELS = ("pos_label", "neg_label")
REMEMBERED = ("sheet", "decimal", *LABELS)


class Hints(Struct, frozen=True):
    """Which sheet to read, how decimals are written, and which labels mean qualified and not qualified.

    ``pos_label`` and ``neg_label`` are given as a value or a sequence of values, and kept as texts;
    ``header_row`` is the row with the column names, as a spreadsheet counts it.
    """

    sheet: str | None = None
    decimal: DecimalMark = "auto"
    pos_label: Any = ()
    neg_label: Any = ()
    header_row: int | None = None

    def __post_init__(self) -> None:
        if self.header_row is not None and self.header_row < 1:
            raise InvalidInput("header_row", expected="a row from 1 on", got=f"{self.header_row}")
        check.as_choice(self.decimal, get_args(DecimalMark), "decimal")
        for name, meaning in (("pos_label", "qualified"), ("neg_label", "not qualified")):
            force_setattr(self, name, _labels(getattr(self, name), name, meaning))
        if self.neg_label and not self.pos_label:
            raise InvalidInput(
                "neg_label", f"goes with {option('pos_label')}, the values that mean qualified."
            )

    def remembered(self) -> dict[str, str | None]:
        """What was said, for a policy to remember; several labels as a JSON list."""
        return {
            "pos_label": _joined(self.pos_label), "neg_label": _joined(self.neg_label), "sheet": self.sheet,
            "decimal": None if self.decimal == "auto" else self.decimal,
        }  # fmt: skip

    @classmethod
    def of(cls, remembered: Mapping[str, str], names: Sequence[str] = REMEMBERED) -> Hints:
        """What a policy remembers."""
        known: dict[str, Any] = {name: remembered[name] for name in names if name in remembered}
        for name in LABELS:
            if str(known.get(name, "")).startswith("["):
                known[name] = json.loads(known[name])
        return cls(**known)

    @property
    def mark(self) -> str | None:
        """The decimal mark, where it was said."""
        return None if self.decimal == "auto" else self.decimal


def _labels(given: Any, name: str, meaning: str) -> tuple[str, ...]:
    """One value or several, as texts."""
    if given is None:
        return ()
    several = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    values = list(given) if several else [given]
    for each in values:
        if not isinstance(each, (str, Real)):
            raise InvalidInput(name, expected=f"the value that means {meaning}", got=check.shown(each))
        if not str(each).strip():
            raise InvalidInput(name, expected=f"the value that means {meaning}", got="nothing")
    return tuple(dict.fromkeys(str(check.plain(each)).strip() for each in values))


def _joined(labels: Sequence[str]) -> str | None:
    if len(labels) == 1 and not labels[0].startswith("["):
        return labels[0]
    return json.dumps(labels, ensure_ascii=False) if labels else None


NO_HINTS = Hints()
NESTED = "a list or an object"
SHORT = 60  # letters of a title that are shown


class Origin(Struct, frozen=True):
    """What a table was before it was one: the sheet or the text, and where its rows are there.

    ``header`` is the spreadsheet row of the names; ``skipped`` are rows after it that hold nothing; ``above``
    is what stands over the row of names. ``not_numbers``, of JSON: what columns hold that are no numbers.
    """

    form: str  # csv, excel, json or parquet; of no file: table
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    encoding: str = "utf-8"
    delimiter: str = ","
    header: int = 1
    skipped: tuple[int, ...] = ()
    above: tuple[str, ...] = ()
    marked: bool = False  # of a CSV: the mark of UTF-8 at its start, and lines that end in CR LF
    crlf: bool = False
    torn: bool = False  # its lines end so, and its names hold an LF alone
    not_numbers: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)  # of a workbook: how columns show numbers

    @classmethod
    def of(cls, form: str, delimiter: str = ",") -> Origin:
        """Of a file that nobody looked into."""
        return cls(form, delimiter=delimiter, header=int(form == "csv"))

    @property
    def plain(self) -> bool:
        """Whether engines read the file as it is."""
        return self.form == "csv" and self.encoding == "utf-8" and self.header == 1 and not self.torn

    def row(self, number: int) -> int:
        """The spreadsheet row of a data row (from 0); where there is no row of names its row, from 1."""
        row = self.header + 1 + number
        for each in self.skipped:
            if each > row:
                break
            row += 1
        return row

    def describe(self) -> str | None:
        """In a sentence, where it is not what every tool reads."""
        below = f" below {_short(self.above[0])!r}" if self.above else ""
        names = [f"column names in row {self.header}{below}"]
        if self.form == "excel":
            more = f" (of {len(self.sheets)} sheets)" if len(self.sheets) > 1 else ""
            parts = [f"sheet {self.sheet!r}{more}"] + (names if self.header > 1 else [])
            parts += [f"{rows_in_words(len(self.skipped), 'empty ')} skipped"] if self.skipped else []
            return ", ".join(parts)
        parts = [] if self.encoding == "utf-8" else [f"text in {NAMES.get(self.encoding, self.encoding)}"]
        if self.delimiter != ",":
            known = {"\t": "tabs", ";": "semicolons"}
            parts.append(f"values between {known.get(self.delimiter, repr(self.delimiter))}")
        return ", ".join(parts + (names if self.above else [])) or None


NOT_A_FILE = Origin.of("table")


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def rows_in_words(count: int, what: str = "") -> str:
    """``1 row``, ``2 hidden rows``."""
    return f"1 {what}row" if count == 1 else f"{count:,} {what}rows"


NAMES = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16",
         "cp1252": "Windows-1252"}  # fmt: skip
