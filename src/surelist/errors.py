"""Everything that can go wrong, as types. Nothing here computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Self

from msgspec import Struct
from msgspec.structs import asdict, replace

from surelist._names import PYTHON, OptionNames, option
from surelist._numerals import floored


class SurelistError(Exception):
    """Base of every error that surelist raises on purpose; ``status`` is its HTTP status.

    Examples
    --------
    >>> import surelist as sl
    >>> try:
    ...     sl.calibrate([0.5], [2], sl.Expected(5, 100))
    ... except sl.SurelistError as error:
    ...     type(error).__name__
    'InvalidInput'
    """

    status: ClassVar[int] = 400
    names: OptionNames = PYTHON  # of the front end that was called

    def said(self, names: OptionNames) -> str:
        """The message in the words of a front end."""
        return names.said(super().__str__())

    def changed(self, change: Callable[[str], str]) -> Self:
        """A copy with its texts changed."""
        told = type(self).__new__(type(self))
        told.__dict__.update(self.__dict__)
        told.args = tuple(change(each) if isinstance(each, str) else each for each in self.args)
        return told

    def __str__(self) -> str:
        return self.said(self.names)


class InvalidInput(SurelistError, ValueError):
    """An argument, column or file does not fit: which one, what was expected, what was found, what to do.

    Parameters
    ----------
    field : str
        What does not fit, by its name in Python; each front end has its own names. Empty where nothing that a
        caller names is wrong.
    problem : str
        What is wrong, in a sentence. Made of ``expected`` and ``got`` where they are given.
    expected, got : str
        What would fit, and what was found instead.
    row : int, optional
        Where it was found first, counted from 0.
    in_all : int
        In how many rows it was found.
    remedy : str
        What to do about it.

    Examples
    --------
    >>> import surelist as sl
    >>> try:
    ...     sl.Expected(-1, 100)
    ... except sl.InvalidInput as error:
    ...     print(error)
    ...     print((error.field, error.expected, error.got))
    k: expected a number above 0, got -1.
    ('k', 'a number above 0', '-1')
    """

    def __init__(
        self, field: str, problem: str = "", *, expected: str = "", got: str = "", row: int | None = None,
        in_all: int = 1, remedy: str = "",
    ) -> None:  # fmt: skip
        super().__init__(field, problem)
        self.field, self.problem, self.remedy = field, problem, remedy
        self.expected, self.got, self.row, self.in_all = expected, got, row, in_all

    def said(self, names: OptionNames) -> str:
        """The message in the words of a front end."""
        field = f"{names.field(self.field)}: " if self.field else ""
        fact, remedy = self.problem, names.said(self.remedy)
        if self.expected:
            at = "" if self.row is None else f" at position {self.row}"
            more = f" ({self.in_all:,} in all)" if self.in_all > 1 else ""
            fact = f"expected {self.expected}, got {self.got}{at}{more}."
        return f"{field}{names.said(fact)}{' ' if remedy else ''}{remedy}"

    def parts(self, names: OptionNames) -> dict[str, object]:
        """What it knows, as plain values; None for what it does not."""
        said = {"expected": self.expected, "got": self.got, "remedy": self.remedy}
        shown = {name: names.said(text) or None for name, text in said.items()}
        return {"field": names.field(self.field) or None, **shown, "row": self.row}

    def changed(self, change: Callable[[str], str]) -> Self:
        """A copy with its texts changed."""
        told = super().changed(change)
        for name in ("field", "problem", "expected", "got", "remedy"):
            setattr(told, name, change(getattr(self, name)))
        return told


class PolicyFileError(InvalidInput):
    """A policy file is corrupted, of an unknown format version, or contradicts itself.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Policy.loads("{}")
    Traceback (most recent call last):
    ...
    surelist.errors.PolicyFileError: ...
    """


class MissingDependency(SurelistError, ImportError):
    """An optional package is needed; the message says which extra installs it.

    Examples
    --------
    >>> import surelist as sl
    >>> issubclass(sl.MissingDependency, ImportError)
    True
    """

    status = 501


class SurelistWarning(UserWarning):
    """Base of the warnings below.

    Examples
    --------
    >>> import surelist as sl
    >>> issubclass(sl.ScoreWarning, UserWarning)
    True
    """

    def said(self, names: OptionNames) -> str:
        """The message in the words of a front end."""
        return names.said(super().__str__())

    def __str__(self) -> str:
        return self.said(PYTHON)


class GroupCutoffWarning(SurelistWarning):
    """Cutoffs per group were calibrated without recording what they are for.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> import warnings
    >>> groups = np.where(np.arange(1_000) % 2, "a", "b")
    >>> targets = {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sl.GroupCutoffWarning)
    ...     policy = sl.calibrate(scores, labels, targets, groups=sl.Groups(groups, purpose="an example"))
    """


class NestedFitWarning(SurelistWarning):
    """A ``ShortlistClassifier`` was fitted inside something that has seen its calibration rows.

    Examples
    --------
    >>> import surelist as sl
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> inner = sl.ShortlistClassifier(LogisticRegression(), target=sl.Expected(5, 100))
    >>> nested = make_pipeline(SelectKBest(), inner)  # fitting this warns
    >>> type(sl.ShortlistClassifier.outermost(nested)).__name__  # the way out
    'ShortlistClassifier'
    """


class PoolWarning(SurelistWarning):
    """A pool is empty, or rows were treated as units although candidates of one pool resemble one another.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import surelist as sl
    >>> rng = np.random.default_rng(1)
    >>> clinic = np.repeat(np.arange(50), 20)
    >>> labels = rng.random(1_000) < np.repeat(rng.random(50), 20)  # clinics differ
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     policy = sl.calibrate(rng.random(1_000), labels, sl.Expected(5, 20), pools=clinic)
    >>> caught[0].category.__name__
    'PoolWarning'
    """


class ScoreWarning(SurelistWarning):
    """Qualified calibration rows score lower than the others: perhaps the wrong column, or its wrong end.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import surelist as sl
    >>> scores = np.linspace(0, 1, 1_000)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     policy = sl.calibrate(scores, scores < 0.3, sl.Expected(5, 100))
    >>> caught[0].category.__name__
    'ScoreWarning'
    """


class TableWarning(SurelistWarning):
    """Rows of a table were dropped on request, or ids occur more than once.

    Examples
    --------
    >>> import warnings
    >>> import polars as pl
    >>> import surelist as sl
    >>> risk, ill = [None, *range(500)], [i > 300 for i in range(501)]
    >>> past = pl.DataFrame({"risk": risk, "ill": ill})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     policy = sl.calibrate_table(
    ...         past, score="risk", label="ill", target=sl.Expected(5, 100), on_bad_rows="drop"
    ...     )
    >>> policy.dropped_rows
    1
    """


class UnreviewedWarning(SurelistWarning):
    """A pool was closed before all its reviews came; the message says how many are missing."""


class Shortfall(Struct, frozen=True):
    """Why a target is not certifiable, in numbers.

    ``largest_k`` is the largest k these rows could have certified if everyone were
    shortlisted (for a recall target ``largest_share``); ``rows_needed`` is an estimate,
    at the share of qualified rows seen here, or None where no number of rows would do. With
    weights ``rows`` are those that the thinning kept of ``rows_before``, and ``rows_needed`` counts
    rows before it.
    """

    target: str
    rows: int
    qualified_available: int
    critical_count: int
    largest_k: float | None
    largest_share: float | None
    rows_needed: int | None
    group: str | None = None
    simultaneous_rule: bool = False
    reason: str | None = None  # of rules that count something else than qualified rows
    rows_before: int | None = None
    others: tuple[Shortfall, ...] = ()  # of the other groups that fall short

    def thinned_from(self, rows_before: int) -> Shortfall:
        """A copy where these rows are what thinning by weights kept of more."""
        needed = self.rows_needed
        if needed is not None:
            needed = math.ceil(needed * rows_before / self.rows)
        return replace(self, rows_before=rows_before, rows_needed=needed)


class NotCertifiable(SurelistError):
    """The calibration rows cannot certify the target [theory: one-idea].

    Carries the fields of :class:`Shortfall`. Trying again on the same rows is not covered
    by the promise; fresh rows are, and for ``Expected`` targets ``rule="simultaneous"`` or a campaign
    started on those.

    Parameters
    ----------
    shortfall : Shortfall
        What was asked, what the rows have, what it would take.

    Examples
    --------
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> try:
    ...     sl.calibrate(scores[:80], labels[:80], sl.Expected(15, 100))
    ... except sl.NotCertifiable as refusal:
    ...     refusal.qualified_available < refusal.critical_count, refusal.rows_needed > 80
    (True, True)
    """

    status = 422

    def __init__(self, shortfall: Shortfall) -> None:
        super().__init__(_explain(shortfall))
        self.shortfall = shortfall
        self.group = shortfall.group
        self.rows = shortfall.rows
        self.qualified_available = shortfall.qualified_available
        self.critical_count = shortfall.critical_count
        self.largest_k = shortfall.largest_k
        self.largest_share = shortfall.largest_share
        self.rows_needed = shortfall.rows_needed

    def __reduce__(self) -> tuple[type[NotCertifiable], tuple[Shortfall]]:
        return type(self), (self.shortfall,)


def error_body(error: Exception, names: OptionNames = PYTHON) -> dict[str, object]:
    """An error as plain values, in the words of a front end: the same for ``--json`` and for HTTP."""
    message = error.said(names) if isinstance(error, SurelistError) else str(error)
    body: dict[str, object] = {"type": type(error).__name__, "message": message}
    if isinstance(error, NotCertifiable):
        return {**body, **_numbers(error.shortfall)}
    return {**body, **error.parts(names)} if isinstance(error, InvalidInput) else body


def _numbers(shortfall: Shortfall) -> dict[str, object]:
    return {**asdict(shortfall), "others": [_numbers(each) for each in shortfall.others]}


AGAIN = (
    "Trying again on the same rows (another target or rule, more rows added) is not covered by the "
    "promise. Fresh rows are."
)


def _explain(s: Shortfall) -> str:
    where = f" for group {s.group!r}" if s.group is not None else ""
    parts = [f"Not certifiable{where}: {s.target}."]
    kept = "" if s.rows_before is None else f" that the thinning kept of {s.rows_before:,}"
    if s.reason is not None:
        if kept:
            parts.append(f"Its calibration rows are the {s.rows:,}{kept}: more of those are to be gathered.")
        return " ".join([*parts, s.reason, AGAIN])
    if s.critical_count > s.rows:
        more = f"It would take more qualified calibration rows than the {s.rows:,} rows{kept or ' there are'}"
        parts.append(f"{more}; {s.qualified_available:,} are qualified.")
    else:
        have = f"{s.qualified_available:,} of {'the ' * bool(kept)}{s.rows:,}{kept} are"
        parts.append(f"It needs {s.critical_count:,} qualified calibration rows and {have}.")
    if not s.qualified_available:
        column = "." if kept or s.group is not None else ": is it the right label column?"
        parts.append(f"None of these rows is qualified, and then nothing can be certified{column}")
        return " ".join([*parts, *map(_short, s.others), AGAIN])
    if s.largest_share is not None:
        parts.append(f"These rows could certify a share of at most {_rounded_down(s.largest_share)}.")
    elif s.largest_k:
        parts.append(f"These rows could certify k = {_rounded_down(s.largest_k)} at most.")
    else:
        parts.append("These rows could certify no k at all.")
    if s.rows_needed is not None:
        seen = "shares of rows kept and qualified" if kept else "share of qualified rows"
        parts.append(f"About {s.rows_needed:,} calibration rows would do, at the {seen} seen here.")
    else:
        parts.append("At the share of qualified rows seen here no number of rows would do: ask for less.")
    parts += [_short(each) for each in s.others]
    less = "a smaller share" if s.largest_share is not None else "a smaller k"
    rule = option("rule", "simultaneous", before=" or ")
    looks = f"; on those, a campaign{rule} allows more than one look" * s.simultaneous_rule
    again = f"Trying again on the same rows ({less}, another rule, more rows added) is not covered"
    parts.append(f"{again} by the promise. Fresh rows are{looks}.")
    return " ".join(parts)


def _short(s: Shortfall) -> str:
    """Of one more group that falls short."""
    needs = f"{s.target} needs {s.critical_count:,} qualified calibration rows"
    return f"Nor for group {s.group!r}: {needs} and {s.qualified_available:,} of {s.rows:,} are."


def _rounded_down(value: float) -> str:
    """Four digits, never more than the value: what is printed must be certifiable."""
    return f"{floored(value, 4):.4g}"
