"""Random numbers that a promise rests on: fresh from the system, drawn once, recorded in the policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass
from surelist._randomness import fresh_bytes


@dataclass(frozen=True)
class Draw:
    """Random numbers of one calibration, from the system's randomness, kept as 64 hexadecimal digits."""

    key: str

    @classmethod
    def fresh(cls) -> Draw:
        return cls(fresh_bytes(32).hex())

    @property
    def uniform(self) -> float:
        """The secret number that decides at the end."""
        return float(self._generator(0).random())

    def order(self, units: int) -> NDArray[np.int64]:
        """The order in which the units are counted; a table has none that could be trusted."""
        return self._generator(1).permutation(units)

    def coins(self, rows: int) -> NDArray[np.float64]:
        """One number per row, for rows kept by chance."""
        return self._generator(2).random(rows)

    def _generator(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([stream, *bytes.fromhex(self.key)])
