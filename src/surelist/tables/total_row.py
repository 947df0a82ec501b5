"""A last row that is no candidate: a total or an average below the data, by its words or its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surelist.errors import InvalidInput

WORDS = {
    "grand total",
    *["total", "totals", "subtotal", "sum", "average", "mean", "median", "count", "overall"],
    *["summe", "gesamt", "gesamtsumme", "zwischensumme", "mittelwert", "durchschnitt", "anzahl"],
    *["somme", "moyenne", "totale", "somma", "media", "promedio", "suma", "totaal", "gemiddelde"],
}
FEWEST = 4  # rows; three numbers are too often the sum of two


def require_no_total(last: Sequence[object], where: str) -> None:
    """Refuse a last row whose first filled cell is a word for a total."""
    first = next((cell for cell in last if cell is not None and cell != ""), None)
    if isinstance(first, str) and first.strip(" \u00a0:").casefold() in WORDS:
        raise InvalidInput(where, _LOOKS.format(f"it begins with {first.strip()!r}"))


def require_no_sum(rows: Sequence[Sequence[object]], where: str) -> None:
    """Refuse a last row with a gap where all others are filled, and the sum or mean of their numbers."""
    if len(rows) < FEWEST or not _has_gap(rows):
        return
    *others, last = rows
    for at, cell in enumerate(last):
        if not isinstance(cell, float) or cell == 0:
            continue
        above = [each for row in others if isinstance(each := row[at], float)]
        total = math.fsum(above)
        for what, value in (("sum", total), ("mean", total / max(len(above), 1))):
            if len(above) > 2 and math.isclose(cell, value, rel_tol=1e-9) and len(set(above)) > 1:
                raise InvalidInput(where, _LOOKS.format(f"{cell!r} is the {what} of those above it"))


def _has_gap(rows: Sequence[Sequence[object]]) -> bool:
    *others, last = rows
    return any(cell is None and all(row[at] is not None for row in others) for at, cell in enumerate(last))


_LOOKS = (
    "the last row looks like a total, not like a candidate: {}. Delete that row; if it is a "
    "candidate, complete or rename it."
)
