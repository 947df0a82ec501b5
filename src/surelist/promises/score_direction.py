"""Does a higher score mean a better candidate? The sentence where it does not, and the Python warnings.

The promise holds either way; the list is then longer than it need be. ``Policy.warnings`` says so
wherever the AUC is below one half, the Python warning only where chance does not explain it.
"""

from __future__ import annotations

import math
import warnings

from surelist._scalars import alpha_meant
from surelist.errors import ScoreWarning
from surelist.promises.state import Certificate, Cutoff

SURPRISE = 4.0  # standard deviations of the rank-sum test


def wrong_way(cutoff: Cutoff) -> str | None:
    """The sentence for a group whose qualified rows score lower than the others."""
    auc = cutoff.scores.auc if cutoff.scores is not None else None
    if auc is None or auc >= 0.5:
        return None
    whose = f" of group {cutoff.group!r}" if cutoff.group is not None else ""
    return (
        f"qualified rows{whose} score lower than the others (AUC {auc:.2f}, 0.5 is chance): "
        "is it the right score column, and is a higher score better?"
    )


def warn_of_doubts(policy: Certificate, stacklevel: int) -> None:
    """One ``ScoreWarning`` for the caller who is ``stacklevel`` calls away; and where alpha was mistaken."""
    if (doubt := alpha_meant(policy.alpha)) is not None:
        warnings.warn(doubt, UserWarning, stacklevel + 1)
    for cutoff in policy.cutoffs:
        message = wrong_way(cutoff)
        if message is not None and _surely(cutoff):
            warnings.warn(f"scores: {message}", ScoreWarning, stacklevel + 1)
            return


def _surely(cutoff: Cutoff) -> bool:
    scores = cutoff.scores
    if scores is None or scores.auc is None or not 0 < cutoff.qualified < scores.total:
        return False
    pairs = cutoff.qualified * (scores.total - cutoff.qualified)
    return 0.5 - scores.auc > SURPRISE * math.sqrt((scores.total + 1) / (12 * pairs))
