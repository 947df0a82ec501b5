"""The randomness that promises rest on: fresh from the system, and drawn nowhere else.

Thinning, ties, bets, and the draws of labellings, stop tests and audits come from here; whoever draws
records what was drawn. Nothing outside a program sets a seed: no default, no variable of the
environment; the seed of a ``DensityRatio`` is the caller's own, and recorded as such. Tests replace
``_system`` from inside their process. Tokens, cookies, ids and names of files use ``secrets``; randomness of
no promise takes a ``numpy.random.Generator`` from the caller.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def _system(count: int) -> bytes:
    return os.urandom(count)


def fresh_bytes(count: int = 32) -> bytes:
    """Bytes that nobody can predict, other ones at every call."""
    return _system(count)


def fresh_bits(count: int) -> int:
    """A whole number from 0 to 2**count - 1, each equally likely."""
    return int.from_bytes(_system((count + 7) // 8), "big") >> -count % 8


def fresh_generator() -> np.random.Generator:
    """A generator of random numbers that starts from 256 fresh bits."""
    from numpy.random import default_rng

    return default_rng(fresh_bits(256))
