"""One number, flag, choice or text from outside, checked, and the wording of its errors.

Columns are read in ``_check``, which offers these names too.
"""

from __future__ import annotations

import difflib
import math
import numbers
import warnings
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from surelist.errors import InvalidInput

EXACT_INTEGER = 1 << 53


def as_flag(value: object, name: str) -> bool:
    """True or False, and nothing that merely counts as such."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(name, expected="True or False", got=shown(value))
    return bool(value)


def as_alpha(value: object, name: str = "alpha") -> float:
    number = real(value, name)
    if not 0 < number < 1:
        meant = share_meant(value)
        raise InvalidInput(name, expected="a number between 0 and 1", got=shown(value), remedy=meant)
    return number


def as_level(value: object, name: str = "alpha", *, calls: int = 1) -> float:
    """The alpha that a user asks for, so many calls away; a warning there where it looks turned round."""
    alpha = as_alpha(value, name)
    if (doubt := alpha_meant(alpha, name)) is not None:
        warnings.warn(doubt, UserWarning, stacklevel=calls + 2)
    return alpha


def alpha_meant(alpha: float, name: str = "alpha") -> str | None:
    """The question to ask where a statement may be wrong more often than right."""
    if alpha <= 0.5:
        return None
    wrong = f"{name}: {alpha:g} allows the statement to be wrong {100 * alpha:.4g}% of the time"
    return f"{wrong}; did you mean {1 - alpha:.4g}?"


def share_meant(value: Any) -> str:
    """The question to ask where a share was said in percent, 95 or "95%"; else nothing."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        percent = float(text.removesuffix("%")) if text.endswith("%") else float(value)
    except (TypeError, ValueError, OverflowError):
        return ""
    in_percent = 1 < percent < 100 or (text.endswith("%") and 0 < percent < 100)
    return f"Did you mean {percent / 100:.10g}?" if in_percent else ""


def as_positive(value: object, name: str) -> float:
    number = real(value, name)
    if not 0 < number < math.inf:
        raise InvalidInput(name, expected="a number above 0", got=shown(value))
    return number


def as_count(value: object, name: str, least: int = 1) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral) or value < least:
        raise InvalidInput(name, expected=f"a whole number of at least {least}", got=shown(value))
    if int(value) > EXACT_INTEGER:
        raise InvalidInput(name, expected="at most 2^53", got=shown(value))
    return int(value)


def as_whole_k(value: object, pool_size: int) -> int:
    k = as_count(value, "k")
    if k > pool_size:
        raise InvalidInput("k", expected=f"at most the pool size, {pool_size}", got=f"{k}")
    return k


def as_rate(value: object, name: str) -> Fraction:
    """A rate in (0, 1] as the fraction its decimal digits say, so that 0.05 is 1/20."""
    number = value if isinstance(value, Fraction) else as_fraction(value, name)
    if not 0 < number <= 1:
        meant = share_meant(value)
        raise InvalidInput(name, expected="a number above 0 and at most 1", got=shown(value), remedy=meant)
    return number


def as_share(value: object, name: str) -> float:
    """A share that may be 0."""
    number = real(value, name)
    if not 0 <= number < 1:
        meant = share_meant(value)
        raise InvalidInput(name, expected="a share from 0 to below 1", got=shown(value), remedy=meant)
    return number


def as_fraction(value: object, name: str) -> Fraction:
    number = real(value, name)
    if not math.isfinite(number):
        raise InvalidInput(name, expected="a finite number", got=shown(value))
    return Fraction(repr(number))


def as_choice(value: object, choices: Iterable[str], name: str, of_whom: str = "") -> str:
    options = list(choices)
    if isinstance(value, str) and value in options:
        return value
    listed = ", ".join(repr(option) for option in options)
    close = difflib.get_close_matches(str(value), options, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else ""
    raise InvalidInput(name, expected=f"one of {listed}{of_whom}", got=shown(value), remedy=hint)


def real(value: object, name: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        meant = share_meant(value) if isinstance(value, str) and value.endswith("%") else ""
        raise InvalidInput(name, expected="a number", got=shown(value), remedy=meant)
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput(name, expected="a number a float can hold", got=shown(value)) from None


def shown(value: object) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def as_text(text: str, name: str) -> str:
    """Text that can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(name, expected="text that UTF-8 can hold", got=repr(text)) from None
    return text
