"""The best of several scores: what may be chosen after looking, and what may not."""

from __future__ import annotations

import numpy as np
import pytest

import surelist as sl


def test_an_average_false_share_is_not_promised_of_the_shortest_of_several_lists():
    """On noise, where 70 % of any list are not qualified, the shortest of five was promised to have 40 %."""
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.3
    scores = {name: rng.random(200) for name in "ab"}
    pools = {name: rng.random(60) for name in "ab"}
    with pytest.raises(sl.InvalidInput, match="no alpha to share"):
        sl.calibrate(scores, labels, sl.Precision(0.6), rule="fdr", unlabelled=pools)
    good = {"a": labels + 0.1 * rng.random(200)}
    one = sl.calibrate(good, labels, sl.Precision(0.6), rule="fdr", unlabelled={"a": 1.0 + rng.random(60)})
    assert one.choice.chosen == "a"
