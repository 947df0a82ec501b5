"""A known shift between calibration rows and pools: density ratios, and rows kept by them [theory: shift].

Also what a promise asks for so that it holds although the ratios are somewhat wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check
from surelist._arrays import Mask
from surelist._randomness import fresh_bits
from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.promises.phrases import at_least
from surelist.promises.promise import Promise
from surelist.promises.state import Certificate, SeedFrom, Shift

if TYPE_CHECKING:
    from surelist.promises.terms import Terms

THINNING = 0x5EED5EED
SEED_BITS = 53  # a whole number that every reader of JSON can hold

P = TypeVar("P", bound=Certificate)


class DensityRatio(Struct, frozen=True, eq=False):
    """How much more likely each row is in the pools than among the calibration rows, and its bound.

    Rows are kept with probability ratio/bound, once, and the promise is over the rows and this thinning
    [theory: shift].

    Parameters
    ----------
    ratios : array_like
        One per row; of a table the name of its column.
    bound : float
        Of the ratios, fixed beforehand, never the largest ratio of these rows.
    exact : bool
        False says that the ratios are estimates; the promise is then conditional on them.
    within : float, optional
        A factor, fixed beforehand: so much more is asked for that the promise holds while the true ratios are
        within this factor of these.
    seed : int, optional
        For repeating a calibration. By default it is drawn from the system's randomness and recorded; the
        conditions say what a seed given here rests on.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> ratios = np.where(np.arange(1_000) % 2, 0.5, 1.5)  # every other row is thrice as likely in the pools
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100), shift=sl.DensityRatio(ratios, bound=1.5))
    >>> 550 < policy.cutoffs[0].rows < 780  # about 1,000 / 1.5 rows are kept
    True
    """

    ratios: Any
    bound: float
    exact: bool = False
    within: float | None = None
    seed: int | None = None

    @classmethod
    def from_classifier(
        cls, classifier: Any, rows: Any, *, trained_on: tuple[int, int], bound: float,
        within: float | None = None,
    ) -> DensityRatio:  # fmt: skip
        """Ratios from a fitted classifier that tells pool candidates (class 1) from past rows (class 0).

        classifier
            Has ``predict_proba``; fitted on rows of its own, none of which is a calibration row.
        rows
            The calibration rows' features, as the classifier takes them.
        trained_on
            How many past rows and how many pool candidates it was fitted on, in this order.
        bound, within
            As above, fixed before looking at these rows; larger ratios are cut off at the bound.
        """
        try:
            past, pool = (check.as_count(each, "trained_on") for each in trained_on)
        except (TypeError, ValueError):
            wanted = "(past rows, pool candidates)"
            raise InvalidInput("trained_on", expected=wanted, got=repr(trained_on)) from None
        classes = list(getattr(classifier, "classes_", (0, 1)))
        chances = np.asarray(classifier.predict_proba(rows), dtype=np.float64)
        if chances.ndim != 2 or chances.shape[1] != 2 or classes != [0, 1]:
            wanted = "the classes 0 (past rows) and 1 (pool candidates)"
            got = f"{classes!r} and probabilities of shape {chances.shape}"
            raise InvalidInput("classifier", expected=wanted, got=got)
        limit = check.as_positive(bound, "bound")
        with np.errstate(divide="ignore"):
            ratios = chances[:, 1] / chances[:, 0] * (past / pool)
        return cls(np.minimum(ratios, limit), limit, within=within)

    def describe(self) -> str:
        """How many rows will be left, about, and what to look at before trusting the ratios."""
        bound = check.as_positive(self.bound, "bound")
        ratios = check.as_weights(self.ratios, len(self.ratios), bound, "ratios")
        cut = int(np.count_nonzero(ratios == bound))
        kept = f"Of {len(ratios):,} rows about {ratios.sum() / bound:,.0f} will be kept."
        average = f"The ratios average {ratios.mean():.3g} (1 if they are right)"
        return f"{kept} {average}, and {cut:,} of them are at the bound {bound:g}."

    @property
    def factor(self) -> float | None:
        """``within`` where it asks for anything."""
        if self.within is None or self.within == 1:
            return None
        within = check.as_positive(self.within, "within")
        if within < 1:
            raise InvalidInput("within", expected="a factor of at least 1", got=f"{within:g}")
        return within


def ratios_of(shift: object) -> Any:
    """The ratios of a known shift; None without one."""
    if shift is not None and not isinstance(shift, DensityRatio):
        raise InvalidInput("shift", expected="DensityRatio(ratios, bound)", got=check.shown(shift))
    return shift and shift.ratios


def keep_rows(given: DensityRatio, rows: int) -> tuple[Mask, Shift]:
    """Rejection sampling [theory: shift]: the kept rows are i.i.d. from the pool's population."""
    bound = check.as_positive(given.bound, "bound")
    ratio = check.as_weights(given.ratios, rows, bound, "ratios") / bound
    origin: SeedFrom = "system" if given.seed is None else "caller"
    seed = fresh_bits(SEED_BITS) if given.seed is None else check.as_count(given.seed, "seed", least=0)
    # a stream of our own: the same seed elsewhere must not be the same numbers as here
    kept = np.random.default_rng([seed, THINNING]).random(rows) < ratio
    if not kept.any():
        raise InvalidInput("shift", "no calibration row was kept; the bound is far too large.")
    return kept, Shift(bound, rows, seed, check.as_flag(given.exact, "exact"), origin)


def with_margin(terms: Terms, within: float, certify: Callable[[Terms], P]) -> P:
    """Certify so much more that ``terms`` hold while the ratios are within a factor of the true ones."""
    wider = replace(
        terms, targets={name: each.widened(within) for name, each in terms.targets.items()},
        also=tuple(each.widened(within) for each in terms.also),
    )  # fmt: skip
    try:
        policy = certify(wider)
    except NotCertifiable as error:
        raise NotCertifiable(_as_asked(error.shortfall, terms.targets.get(error.group), within)) from None
    assert policy.shift is not None
    pairs = zip(policy.cutoffs, terms.all_targets, strict=True)
    cutoffs = tuple(replace(cutoff, target=target) for cutoff, target in pairs)
    return replace(policy, cutoffs=cutoffs, shift=replace(policy.shift, within=within))


def _as_asked(short: Shortfall, asked: Promise | None, within: float) -> Shortfall:
    """The refusal, with what was certifiable turned back into what it is worth under wrong ratios."""
    share, k = short.largest_share, short.largest_k
    if share is not None:
        share = at_least(share, within)
    if k is not None and asked is not None and asked.pool is not None:
        k = asked.pool * at_least(k / asked.pool, within)
    asked_for = f"{short.target}, which it takes to hold while the ratios are within a factor of {within:g}"
    return replace(short, target=asked_for, largest_share=share, largest_k=k)
