"""Randomised ties by keyed hash [theory: ties].

Every candidate id gets a number u from SHA-256(salt, id): the first 52 bits, as an integer.
Candidates are compared by (score, u). The salt is secret and drawn once, after the ids are
fixed; drawing it again until the list looks good breaks the promise. Any engine with SHA-256
can compute the same numbers: u is the first 13 hexadecimal digits of the hash of the salt's
64 hexadecimal digits followed by the id's UTF-8 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from surelist._randomness import fresh_bytes

HEX_DIGITS = 13


class Salt(Struct, frozen=True):
    """The secret behind the ties of one policy. Never printed, logged or returned by an API.

    ``spent`` holds the numbers of the calibration ids that decided a threshold: a pool id
    with the same number is the same candidate, who may not be counted twice.
    """

    key: str
    spent: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"Salt(hash={self.hash[:12]}..., key=<secret>)"

    @classmethod
    def draw(cls) -> Salt:
        return cls(fresh_bytes(32).hex())

    @property
    def hash(self) -> str:
        """What a policy file says of its salt."""
        return hashlib.sha256(b"surelist salt " + self.key.encode()).hexdigest()

    def numbers(self, ids: Iterable[str]) -> list[int]:
        prefix = hashlib.sha256(self.key.encode())
        return [_number(prefix, candidate) for candidate in ids]


def _number(prefix: hashlib._Hash, candidate: str) -> int:
    digest = prefix.copy()
    digest.update(candidate.encode())
    return int(digest.hexdigest()[:HEX_DIGITS], 16)
