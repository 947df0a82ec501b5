"""One score from several, without labels: the mean of a candidate's ranks by each [theory: best-of].

The ranks are those among unlabelled scores that are given once. What comes out is a score like any other,
fixed before the calibration rows, so it costs no alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct

from surelist import _check as check
from surelist._arrays import Floats
from surelist._files import hold, parse, writing
from surelist.errors import InvalidInput, PolicyFileError
from surelist.promises.evidence import hold_rows, scores_fingerprint

FORMAT = 1
KNOTS = 10_000  # scores that are kept of each column; ranks between them are interpolated
TINY = 1e-18  # below half of one of all scores that there could be


class Ranks(Struct, frozen=True, forbid_unknown_fields=True):
    """Ranks by one score: ``shares`` of the unlabelled scores lie below ``scores``, which rise."""

    scores: tuple[float, ...]
    shares: tuple[float, ...]
    fingerprint: str  # of the scores that they were made from

    @classmethod
    def of(cls, column: Floats) -> Ranks:
        values, counts = np.unique(column, return_counts=True)
        below = (np.cumsum(counts) - counts / 2) / len(column)
        kept = np.unique(np.linspace(0, len(values) - 1, min(len(values), KNOTS)).round().astype(np.int64))
        return cls(tuple(values[kept].tolist()), tuple(below[kept].tolist()), scores_fingerprint(column))

    def refuse_own(self, column: Floats) -> None:
        """Refuse scores that the ranks were made from; some of them among others where none was tied."""
        rows = round(0.5 / self.shares[0])
        places = np.unique(np.linspace(0, rows - 1, min(rows, KNOTS)).round())
        untied = len(places) == len(self.shares)
        untied = untied and np.allclose((places + 0.5) / rows, self.shares, rtol=0, atol=1e-12)
        own = untied and hold_rows(np.array(self.scores), column)
        if own or scores_fingerprint(column) == self.fingerprint:
            remedy = "Give those of other candidates."
            raise InvalidInput("scores", f"they hold scores that the ranks were made from. {remedy}")


class MeanRank(Struct, frozen=True, forbid_unknown_fields=True):
    """Makes one score of several: the mean of a candidate's ranks among the unlabelled scores.

    Call it with a mapping of the same names to scores. The very scores that it was made from are refused:
    as a pool, or as ``unlabelled=``, they would no longer be candidates that it never saw.

    Parameters
    ----------
    columns : dict
        The ranks by each score, by its name.
    kind, format
        What its file says of itself.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> rng = np.random.default_rng(3)
    >>> ranks = sl.mean_rank({"gbm": rng.normal(size=1_000), "bm25": 7 + rng.normal(size=1_000)})
    >>> ranks({"gbm": [0.0, 2.0], "bm25": [7.0, 9.0]}).round(2).tolist()
    [0.49, 0.98]
    """

    kind: Literal["mean-rank"]
    format: int
    columns: dict[str, Ranks]

    def __call__(self, scores: Mapping[object, object]) -> Floats:
        """One score per candidate, from 0 to 1.

        Parameters
        ----------
        scores : mapping of str to array_like
            One column for each name, all of one length.

        Returns
        -------
        ndarray of float

        Raises
        ------
        InvalidInput
            Other names, columns of different lengths, or the scores that the ranks were made from.
        """
        columns = _columns(scores)
        if set(columns) != set(self.columns):
            known = f"the columns {', '.join(self.columns)}"
            raise InvalidInput("scores", expected=known, got=", ".join(columns))
        for name, column in columns.items():
            self.columns[name].refuse_own(column)
        ranks = [np.interp(columns[name], each.scores, each.shares) for name, each in self.columns.items()]
        mean: Floats = np.mean(ranks, axis=0)
        return mean

    def save(self, path: str | Path) -> None:
        """Write it as JSON, whole or not at all."""
        with writing(Path(path)) as temporary:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def load(cls, path: str | Path) -> MeanRank:
        """Read what ``save`` wrote; a file that contradicts itself is refused."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PolicyFileError("", f"mean rank: cannot read {path}: {error}.") from error
        ranks = parse(text, cls, FORMAT, f"mean rank: {path}")
        for each in ranks.columns.values():
            scores, shares = list(each.scores), list(each.shares)
            rising = scores == sorted(set(scores)) and shares == sorted(shares)
            hold(rising and 0 < len(each.scores) == len(each.shares), "its ranks do not rise")
            hold(each.shares[0] > TINY and each.shares[-1] < 1, "its ranks are no shares between 0 and 1")
        hold(len(ranks.columns) > 1, "it has no two columns")
        return ranks


def mean_rank(unlabelled: Mapping[object, object]) -> MeanRank:
    """Make one score of several from unlabelled scores: the mean of a candidate's ranks by each.

    Scores that are about equally good and err on different candidates gain by it; of very unequal
    ones the best of both (``calibrate`` with a mapping) is shorter.

    Parameters
    ----------
    unlabelled : mapping of str to array_like
        For each score its name and its values for the same candidates, who are neither calibration rows nor
        part of a pool, nor serve as ``unlabelled=`` again.

    Returns
    -------
    MeanRank
        A function of a mapping with the same names; ``save`` and ``load`` keep it in a file.

    Raises
    ------
    InvalidInput
        Fewer than two columns, columns of different lengths, or a score that is no finite number.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> rng = np.random.default_rng(6)
    >>> def two(rows):
    ...     score, label = population(rng, rows)
    ...     return {"gbm": score, "bm25": score + rng.normal(0, 0.1, rows)}, label
    >>> ranks = sl.mean_rank(two(5_000)[0])
    >>> past, labels = two(1_000)
    >>> policy = sl.calibrate(ranks(past), labels, sl.Expected(5, 100))
    >>> int(policy.select(ranks(two(100)[0])).sum()) < 20
    True
    """
    columns = _columns(unlabelled)
    if len(columns) < 2:
        raise InvalidInput("unlabelled", expected="two scores or more by name", got=f"{len(columns)}")
    return MeanRank("mean-rank", FORMAT, {name: Ranks.of(column) for name, column in columns.items()})


def _columns(scores: Mapping[object, object]) -> dict[str, Floats]:
    """Columns by name, checked: finite numbers, and as many in each."""
    if not isinstance(scores, Mapping):
        raise InvalidInput("scores", expected="a mapping of name to scores", got=f"{type(scores).__name__}")
    check.require_one_index(**{str(name): column for name, column in scores.items()})
    columns = {check.group_name(name, "scores"): check.as_scores(column) for name, column in scores.items()}
    if len(columns) < len(scores):
        raise InvalidInput("scores", expected="one column per name", got=f"the names {list(scores)!r}")
    first = next(iter(columns.values()), np.empty(0))
    for name, column in columns.items():
        check.require_length(column, len(first), f"scores of {name!r}")
    check.require_rows(first, "scores")
    return columns
