"""How often a list holds what is said to be usual, over calibrations and pools. Prints one line per setting.

    python benchmarks/usual.py [runs]

Shares of qualified candidates that rise, stay, jump, fall or swing with the score; ties or none; three promises.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import surelist as sl
from surelist.promises.policy_display import usual

RNG = np.random.default_rng(1)
SHARES = {
    "rising": lambda s: s**4,
    "flat": lambda s: 0.2 + 0 * s,
    "jump": lambda s: np.where(s > 0.92, 0.95, 0.03),
    "falling": lambda s: 0.4 * (1 - s),
    "swinging": lambda s: 0.3 + 0.29 * np.sin(60 * s),
    "up and down": lambda s: np.where(s > 0.96, 0.98, np.where(s > 0.93, 0.02, 0.1)),
    "a tenth": lambda s: 0.1 + 0 * s,
    "a tenth, rising": lambda s: 0.4 * s**3,
    "a tenth, falling": lambda s: 0.2 * (1 - s),
    "a tenth, jump": lambda s: np.where(s > 0.9, 0.7, 0.033),
}
BARELY = [name for name in SHARES if name.startswith("a tenth")]
SETTINGS = [
    *((sl.Expected(5, 100), rows, pool, share, None)
      for share in SHARES if share not in BARELY for rows, pool in ((1000, 100), (1000, 3000), (200, 1000))),
    (sl.Expected(5, 100), 1000, 3000, "rising", 1), (sl.Expected(5, 100), 1000, 3000, "jump", 1),
    (sl.PerPool(5, 100), 1000, 100, "rising", None), (sl.Recall(0.8), 1000, 1000, "rising", None),
    (sl.Recall(0.8), 1000, 1000, "jump", None), (sl.Recall(0.8), 300, 1000, "rising", 1),
    *((target, rows, pool, share, None) for share in BARELY for target, rows, pool in (
        (sl.Expected(9, 100), 100, 200), (sl.Expected(8, 100), 60, 500), (sl.Expected(8.5, 100), 300, 300),
        (sl.PerPool(5, 100), 100, 100), (sl.Recall(0.9), 200, 300), (sl.Recall(0.8), 100, 60))),
]  # fmt: skip


def draw(size: int, share: str, decimals: int | None) -> tuple[np.ndarray, np.ndarray]:
    scores = RNG.random(size)
    labels = RNG.random(size) < SHARES[share](scores)
    return (scores if decimals is None else scores.round(decimals)), labels


def main(runs: int) -> None:
    for target, rows, pool, share, decimals in SETTINGS:
        below = above = made = length = 0
        for _ in range(10 * runs if share in BARELY else runs):  # barely certifiable: few of them are
            if made == runs:
                break
            scores, truth = draw(pool, share, decimals)
            try:
                policy = sl.calibrate(*draw(rows, share, decimals), target)
            except sl.NotCertifiable:
                continue
            listed = policy.select(scores)
            said = usual(policy, pool, int(listed.sum()))
            if said is None:
                continue
            held = int((listed & truth).sum())
            made, length = made + 1, length + said.listed
            below, above = below + (held < said.low), above + (held > said.high)
        name = f"{target.describe()}, {rows} rows, {share}{', ties' if decimals else ''}"
        print(
            f"{name:75} lists of {length / max(made, 1):6.0f}: within {1 - (below + above) / made:.1%}, "
            f"below {below / made:.1%}, above {above / made:.1%} of {made}"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", sl.ScoreWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
