"""One cutoff for all groups, each group's own promise at full alpha [theory: common-cutoff]."""

from __future__ import annotations

from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.examples import population

ALIKE = {"cutoff": "common"}
TARGETS = {"north": sl.Expected(2, 50), "south": sl.Expected(2, 50), "everyone": sl.Expected(5, 100)}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores, labels = population(np.random.default_rng(6), 1_000)
    return scores, labels, np.where(np.arange(1_000) % 2, "north", "south")


def test_each_group_is_certified_at_full_alpha_and_the_lowest_cutoff_is_everybodys(rows):
    scores, labels, names = rows
    policy = sl.calibrate(scores, labels, TARGETS, groups=sl.Groups(names, **ALIKE))
    alone = {
        name: sl.calibrate(scores[mine], labels[mine], TARGETS[name])
        for name, mine in [
            ("north", names == "north"),
            ("south", names == "south"),
            ("everyone", names != ""),
        ]
    }
    assert {each.level.alpha for each in policy.cutoffs} == {0.1}
    assert policy.threshold == min(each.threshold for each in alone.values())
    for each in policy.cutoffs:
        assert each.steps[0].critical_count == alone[each.group].cutoffs[0].steps[0].critical_count
    assert policy.select([policy.threshold, np.nextafter(policy.threshold, 0)]).tolist() == [True, False]
    with pytest.raises(sl.InvalidInput, match="one cutoff for everybody"):
        policy.select([0.5], groups=["north"])


def test_it_is_compared_with_cutoffs_that_differ_which_share_alpha(rows):
    scores, labels, names = rows
    targets = {name: TARGETS[name] for name in ("north", "south")}
    policy = sl.calibrate(scores, labels, targets, groups=sl.Groups(names, **ALIKE))
    differing = sl.calibrate(scores, labels, targets, groups=sl.Groups(names, purpose="a test"))
    assert {each.group: each.own.threshold for each in policy.cutoffs} == differing.thresholds
    for name, each in zip(("north", "south"), policy.cutoffs, strict=True):
        mine = scores[names == name]
        assert each.own.share == np.mean(mine >= differing.thresholds[name])
        assert each.steps[0].share == np.mean(mine >= policy.threshold)
    assert policy.everyone.share == np.mean(scores >= policy.threshold)
    assert policy.everyone.rows == 1_000


def test_nothing_warns_of_cutoffs_that_differ_and_no_word_says_that_it_is_lawful(rows, recwarn):
    scores, labels, names = rows
    policy = sl.calibrate(scores, labels, TARGETS, groups=sl.Groups(names, **ALIKE))
    assert not recwarn.list
    said = " ".join(
        (policy.promise, *policy.conditions, policy.describe(), *policy.two_lines.meaning)
    ).lower()
    assert "lawful" not in said
    assert "share no alpha" in said
    assert "the shortlist holds at least 5 qualified candidates on average over pools of 100" in said


def test_a_file_keeps_it_and_may_not_say_otherwise(rows, tmp_path):
    scores, labels, names = rows
    policy = sl.calibrate(scores, labels, TARGETS, groups=sl.Groups(names, **ALIKE))
    policy.save(tmp_path / "policy.json")
    assert sl.Policy.load(tmp_path / "policy.json") == policy
    text = (tmp_path / "policy.json").read_text()
    for old, new in [
        (f'"threshold": {policy.threshold!r}', f'"threshold": {policy.threshold + 0.01!r}'),
        ('"group_cutoff": "common"', '"group_cutoff": "own"'),
        ('"alpha": 0.1', '"alpha": 0.05'),
    ]:
        with pytest.raises(sl.PolicyFileError):
            sl.Policy.loads(text.replace(old, new, 1))


@pytest.mark.parametrize("kind", ["missing", "few"])
def test_a_group_without_rows_or_with_too_few_refuses_all(rows, kind):
    scores, labels, names = rows
    small = np.where(np.arange(1_000) < 30, "west", names)
    targets = {**TARGETS, "west": sl.Expected(2, 50)}
    if kind == "missing":
        with pytest.raises(sl.InvalidInput, match="'west' has a target but no calibration rows"):
            sl.calibrate(scores, labels, targets, groups=sl.Groups(names, **ALIKE))
    else:
        with pytest.raises(sl.NotCertifiable, match="west"):
            sl.calibrate(
                scores, labels, {**TARGETS, "west": sl.Expected(10, 50)}, groups=sl.Groups(small, **ALIKE)
            )


def test_a_group_of_that_name_is_not_taken_for_all_rows(rows):
    scores, labels, names = rows
    named = np.where(names == "north", "everyone", names)
    with pytest.raises(sl.InvalidInput, match="there is a group of that name"):
        sl.calibrate(
            scores,
            labels,
            {"everyone": sl.Recall(0.5), "south": sl.Recall(0.5)},
            groups=sl.Groups(named, **ALIKE),
        )


def test_after_looking_has_no_proof_and_single_pools_keep_their_shares(rows):
    scores, labels, names = rows
    groups = sl.Groups(names, **ALIKE)
    with pytest.raises(sl.InvalidInput, match="no proof"):
        sl.calibrate(scores, labels, TARGETS, groups=groups, rule="simultaneous")
    pools = {"north": sl.PerPool(1, 50), "south": sl.PerPool(1, 50)}
    policy = sl.calibrate(scores, labels, pools, groups=groups)
    assert {each.level.alpha for each in policy.cutoffs} == {0.05}
    differing = sl.calibrate(scores, labels, pools, groups=sl.Groups(names, purpose="a test"))
    assert policy.threshold == min(differing.thresholds.values())


# cells (score, qualified, in a, in b) with their probabilities: the list at 2 is a hair too short for both groups at
# once, for both but by rows of their own, and for the first alone
WORLDS = [
    ([(2, 1, 1, 1), (1, 1, 1, 1), (1, 0, 1, 1)], [0.349, 0.4, 0.251], 0.246),
    ([(2, 1, 1, 0), (2, 1, 0, 1), (1, 1, 1, 1)], [0.349, 0.349, 0.302], 0.005),
    ([(2, 1, 1, 0), (2, 1, 0, 1), (1, 1, 1, 1)], [0.349, 0.6, 0.051], 0.1),
]


def samples(cells: int, n: int):
    for counts in product(range(n + 1), repeat=cells - 1):
        if sum(counts) <= n:
            yield (*counts, n - sum(counts))


@pytest.mark.parametrize(("cells", "chances", "least"), WORLDS, ids=["same", "apart", "one"])
def test_every_sample_with_overlapping_groups(cells, chances, least):
    """P(a promise to some group is false) over every sample of 10 rows, through ``calibrate``: at most alpha."""
    alpha, n, rate = 0.25, 10, 0.35
    targets = {"a": sl.Expected(3.5, 10), "b": sl.Expected(3.5, 10)}
    found = list(zip(cells, chances, strict=True))
    held = {t: [sum(p for (s, y, *g), p in found if y and s >= t and g[j]) for j in (0, 1)] for t in (1, 2)}
    wrong = 0.0
    for counts in samples(len(cells), n):
        chance = factorial(n) * prod(p**c / factorial(c) for p, c in zip(chances, counts, strict=True))
        table = np.repeat(np.asarray(cells), counts, axis=0)
        groups = sl.Groups({"a": table[:, 2] == 1, "b": table[:, 3] == 1}, rows="all", **ALIKE)
        try:
            policy = sl.calibrate(table[:, 0].astype(float), table[:, 1], targets, groups=groups, alpha=alpha)
        except sl.NotCertifiable:
            continue
        wrong += chance * (min(held[int(policy.threshold)]) < rate)
    assert least <= wrong <= alpha


@pytest.mark.slow
def test_the_worst_point_of_the_theory_by_simulation():
    """Two groups at the same boundary, where each alone is false as often as alpha allows."""
    rng, alpha, n, runs = np.random.default_rng(24), 0.2, 200, 2_000
    targets = {"a": sl.Expected(5, 100), "b": sl.Expected(5, 100), "everyone": sl.Expected(5, 100)}
    names = np.where(np.arange(n) % 2, "a", "b")
    wrong = 0
    for _ in range(runs):
        scores = rng.random(n)
        labels = rng.random(n) < 0.3
        try:
            policy = sl.calibrate(scores, labels, targets, groups=sl.Groups(names, **ALIKE), alpha=alpha)
        except sl.NotCertifiable:
            continue
        wrong += 0.3 * (1 - policy.threshold) < 0.05
    assert stats.binom.sf(wrong - 1, runs, alpha) > 1e-6
    assert wrong > 0


def test_whole_pools_count_where_they_keep_the_promise_to_every_group():
    """The next pool and 19 like it in every order: the cutoff fails in at most alpha of the orders."""
    rng, alpha, pools, size = np.random.default_rng(5), 0.2, 20, 12
    scores, labels = rng.random(pools * size), rng.random(pools * size) < 0.6
    codes, names = np.repeat(np.arange(pools), size), np.tile(["a", "b", "b"], pools * size // 3)
    targets = {"a": sl.NextPool(k=1), "b": sl.NextPool(recall=0.5)}
    failed = 0
    for left in range(pools):  # exchangeable pools: each is the next one as often
        rest = codes != left
        policy = sl.calibrate(
            scores[rest],
            labels[rest],
            targets,
            groups=sl.Groups(names[rest], **ALIKE),
            pools=codes[rest],
            alpha=alpha,
        )
        assert {each.level.alpha for each in policy.cutoffs} == {alpha}
        listed, good = policy.select(scores[~rest]), labels[~rest]
        mine = names[~rest]
        kept_b = np.sum(listed & good & (mine == "b")) >= 0.5 * np.sum(good & (mine == "b"))
        failed += not (np.sum(listed & good & (mine == "a")) >= 1 and kept_b)
    assert failed <= alpha * pools
    assert failed >= alpha * pools - 1  # ranks without ties: one pool less would be lax


def test_one_cutoff_is_a_score_or_a_rank_and_not_both(rows):
    scores, labels, names = rows
    targets = {"north": sl.NextPool(k=1, by="rank"), "south": sl.NextPool(k=1)}
    with pytest.raises(sl.InvalidInput, match="by score or by rank"):
        sl.calibrate(
            scores, labels, targets, groups=sl.Groups(names, **ALIKE), pools=np.repeat(np.arange(50), 20)
        )
