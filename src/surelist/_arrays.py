"""Arrays by what they hold, for signatures; and SciPy, imported when one of its functions is first called.

That takes half a second that selection does not need. Nobody else imports SciPy, and a name here is used as
if it were SciPy's own module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Column = NDArray[Any]  # of whatever type it came in


class _Late:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)  # found without a detour from now on
        return value


special: Any = _Late("scipy.special")
stats: Any = _Late("scipy.stats")
fft: Any = _Late("scipy.fft")
