"""Uniform mass binning [theory: bins] (the paper's Algorithm 4, "UMB B bins").

A baseline with a guarantee. Its bins cost twice the DKW band each, so its lists are longer
than those of ``rule="dkw"`` except for scores that carry next to no information, where its
randomised last bin can use a fraction of a threshold step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surelist import _check as check
from surelist import bounds
from surelist.baselines.results import Bands, Floats
from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.promises.kinds.expected import Expected


def umb(
    scores: Any,
    labels: Any,
    target: Expected,
    *,
    bins: int = 5,
    alpha: float = 0.1,
    randomised: bool = True,
) -> Bands:
    """Certify ``target`` from ``bins`` score bins of equal mass, or raise ``NotCertifiable``.

    Theorem: Proposition 6 bounds every score interval by 2*epsilon at once, so with
    probability >= 1-alpha the list holds >= k qualified candidates on average. Assumes i.i.d.
    rows and a score fixed independently of them; tied scores share a bin. ``randomised=False``
    takes the last bin whole (and can then never be shorter than ``rule="dkw"``). Limit: the
    last bin is shortlisted at random, candidate by candidate.
    """
    if not isinstance(target, Expected):
        raise InvalidInput("target", expected="Expected", got=repr(target))
    check.require_one_index(scores=scores, labels=labels)
    array = check.as_scores(scores)
    qualified, _ = check.as_labels(labels)
    check.require_rows(array, "scores")
    check.require_length(qualified, len(array), "labels")
    bins, alpha, n = check.as_count(bins, "bins"), check.as_alpha(alpha), len(array)
    edges = _edges(array, bins)
    qualified_scores = array[qualified]
    counts = np.array([np.count_nonzero(qualified_scores >= edge) for edge in edges])
    needed = [bounds.bins_critical_count(n, target.rate, alpha, a) for a in range(1, len(edges) + 1)]
    certified = np.flatnonzero(counts >= needed)
    if not len(certified):
        raise NotCertifiable(_shortfall(target, n, counts, needed, alpha, bins))
    last = int(certified[0])
    share = _share(n, target, alpha, counts, last) if randomised else 1.0
    chances = (1.0,) * last + (share,)
    return Bands(f"UMB {bins} bins", tuple(edges[: last + 1].tolist()), chances, _promise(target, alpha))


def _edges(scores: Floats, bins: int) -> Floats:
    """Lower edges, best bin first: the ceil(b n / bins)-th largest score, the last -inf."""
    n = len(scores)
    ranks = -(-np.arange(1, bins) * n // bins)
    inner = np.partition(scores, n - ranks)[n - ranks] if bins > 1 else np.empty(0)
    return np.append(np.unique(inner)[::-1], -np.inf)


def _share(
    n: int, target: Expected, alpha: float, counts: np.ndarray[Any, np.dtype[np.int64]], last: int
) -> float:
    """Theta: the part of the last bin that just certifies the target, rounded up."""
    width = 2 * bounds.dkw_epsilon(n, alpha)
    before = (int(counts[last - 1]) if last else 0) / n - last * width
    through = int(counts[last]) / n - (last + 1) * width
    share = (float(target.rate) - before) / (through - before)
    return min(1.0, share * (1 + 1e-12))


def _promise(target: Expected, alpha: float) -> str:
    return (
        f"{target.describe()}, wrong with probability at most {alpha:g} over the draw of the calibration rows"
    )


def _shortfall(
    target: Expected,
    n: int,
    counts: np.ndarray[Any, np.dtype[np.int64]],
    needed: list[int],
    alpha: float,
    bins: int,
) -> Shortfall:
    """Told for the number of bins that comes closest."""
    width = 2 * bounds.dkw_epsilon(n, alpha)
    taken = np.arange(1, len(counts) + 1)
    closest = int(np.argmax(counts - np.asarray(needed)))
    excess = counts / n - float(target.rate)
    rows = [n * (a * width / e) ** 2 for a, e in zip(taken.tolist(), excess.tolist(), strict=True) if e > 0]
    top = f"the top {closest + 1} of {bins} bins" if bins > 1 else "the one bin"
    return Shortfall(
        target=f"{target.describe()} (alpha={alpha:g}, uniform mass binning, counted in {top})",
        rows=n,
        qualified_available=int(counts[closest]),
        critical_count=needed[closest],
        largest_k=max(0.0, target.pool_size * float(np.max(counts / n - taken * width))),
        largest_share=None,
        rows_needed=math.ceil(min(rows)) if rows else None,
    )
