"""The draw of an audit: a coin for each candidate, from the system's randomness. Whoever draws records it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surelist._randomness import fresh_generator


def coins(candidates: int) -> NDArray[np.float64]:
    """One number from 0 to 1 per candidate, fresh at every call; drawn are those below the audit rate."""
    return fresh_generator().random(candidates)
