"""Whether rows speak against a promise: true promises are accused at most one time in twenty, false ones are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.examples import population
from surelist.promises.promise import About
from surelist.workflows.selection import selection_sql
from tests.helpers.promise_kinds import GROUPS, KINDS, LABELS, OTHERS, SCORES, policy_of

LATER, OUTCOME = population(np.random.default_rng(9), 4_000)
HALVES = np.where(np.arange(4_000) % 2, "north", "south")


def rows_for(policy: sl.Policy) -> dict:
    scores = LATER if policy.choice is None else {policy.choice.chosen: LATER}
    return {"scores": scores, "labels": OUTCOME} | ({"groups": HALVES} if policy.grouped else {})


def at_most_one_in_twenty(accused: int, runs: int) -> bool:
    return stats.binom.sf(accused - 1, runs, 0.05) > 1e-6


OF_ONE_POOL = {"average false share", "this list"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OF_ONE_POOL])
def test_a_promise_is_judged_by_what_it_is_about(kind):
    policy = policy_of(kind)
    found = sl.evaluate(policy, **rows_for(policy), pools=np.arange(4_000) // 100)
    what = {cutoff.about for cutoff in policy.cutoffs}
    doubtful = kind.endswith("labels that may be wrong")
    if what == {About.POPULATION} and policy.withdrawn is None:
        assert found.consistent is (None if doubtful else True)
    assert ("nothing says whether those of these rows are" in found.verdict) == doubtful
    if what & {About.AVERAGE, About.COLLECTION} or policy.withdrawn is not None:
        assert found.consistent is None
    assert ("averages" in found.verdict) == (what == {About.AVERAGE})
    assert ("it was made from, and about no others" in found.verdict) == (what == {About.COLLECTION})
    assert (found.pools is not None) == (what == {About.POOL})


def test_the_average_false_share_is_not_judged_by_one_list():
    policy = policy_of("average false share")
    found = sl.evaluate(policy, OTHERS[:400], np.arange(400) % 2)
    assert found.consistent is None
    assert "an average over draws of rows and pool together, and this is one list" in found.verdict


@pytest.mark.parametrize("kind", ["collection, recall", "collection, at least"])
def test_a_promise_about_a_collection_is_neither_judged_nor_watched_as_one_about_a_population(kind):
    """Recall of this collection with its sample: of its threshold elsewhere nothing was promised."""
    policy = policy_of(kind)
    nobody_found = sl.evaluate(policy, LATER, policy.threshold > LATER)
    assert nobody_found.consistent is None
    assert "about the 2,000 candidates it was made from, and about no others" in nobody_found.verdict
    for rate in (None, 0.1):
        with pytest.raises(sl.InvalidInput, match="no later pool can show whether it holds"):
            sl.Monitor(policy, audit_rate=rate)


def test_a_group_of_all_rows_is_held_to_its_share_of_the_whole_pool():
    """2 of 100 candidates are promised for each half; 1.2 % of all, 2.4 % of its own rows, are too few."""
    policy = policy_of("groups, all rows")
    rng = np.random.default_rng(1)
    south = HALVES == "south"
    listed = np.where(south, rng.random(4_000) < 0.2, rng.random(4_000) < 0.024)
    found = sl.evaluate(policy, listed.astype(float), listed, groups=HALVES)
    assert found.consistent is False
    assert "% of all candidates are in group 'north', qualified and listed, 2% are promised" in found.verdict
    north = found.kept[1]
    assert (north.group, north.found.of, north.listed.of) == ("north", 4_000, 2_000)
    accused = 0
    for _ in range(300):  # each half at exactly 2 % of all
        listed = rng.random(1_000) < 0.04
        groups = np.where(rng.random(1_000) < 0.5, "north", "south")
        accused += sl.evaluate(policy, listed.astype(float), listed, groups=groups).consistent is False
    assert at_most_one_in_twenty(accused, 300)


@pytest.mark.slow
def test_candidates_of_one_pool_who_resemble_one_another_do_not_accuse_a_true_promise():
    """Pools all or none of whom would be listed and qualified: as independent rows, accused 26 times in 100."""
    rng = np.random.default_rng(2)
    policy, pools = policy_of("expected"), np.repeat(np.arange(100), 20)
    accused, alike = 0, 0
    for _ in range(150):
        listed = np.repeat(rng.random(100) < 0.5, 20) & (rng.random(2_000) < 0.1)  # 5 % in the long run
        accused += sl.evaluate(policy, listed.astype(float), listed, pools=pools).consistent is False
        alike += sl.evaluate(policy, listed.astype(float), listed).consistent is False
    assert at_most_one_in_twenty(accused, 150)
    assert not at_most_one_in_twenty(alike, 150)


def test_pools_speak_against_broken_promises_of_every_share():
    rng = np.random.default_rng(3)
    pools, labels = np.repeat(np.arange(400), 20), rng.random(8_000) < 0.2
    for kind in ("expected", "recall", "precision", "budget", "two counts"):
        policy = policy_of(kind)
        low, high = policy.threshold - 0.01, policy.threshold + 0.01
        listed = np.where(labels, rng.random(8_000) < 0.1, rng.random(8_000) < 0.3)
        found = sl.evaluate(policy, np.where(listed, high, low), labels, pools=pools)
        assert found.consistent is False
        assert "speak against" in found.verdict


@pytest.mark.slow
def test_pools_of_an_exact_count_accuse_at_most_one_time_in_twenty_and_notice_broken_ones():
    rng = np.random.default_rng(4)
    pools, accused, noticed = np.repeat(np.arange(40), 25), 0, 0
    for _ in range(120):
        policy = sl.calibrate(rng.random(500), rng.random(500) < 0.4, sl.PerPool(3, 25))
        scores, labels = rng.random(1_000), rng.random(1_000)
        accused += sl.evaluate(policy, scores, labels < 0.4, pools=pools).consistent is False
        noticed += sl.evaluate(policy, scores, labels < 0.2, pools=pools).consistent is False
    assert at_most_one_in_twenty(accused, 120)
    assert noticed > 110


@pytest.mark.slow
def test_the_best_of_several_scores_over_whole_pools_is_accused_at_most_one_time_in_twenty():
    """The shortest list of eight is the luckiest one: each score's chance counts."""
    rng = np.random.default_rng(5)
    past, later = np.repeat(np.arange(39), 4), np.repeat(np.arange(120), 4)
    accused = 0
    for _ in range(250):
        scores = {f"score {n}": rng.random(len(past)) for n in range(8)}
        labels = rng.random(len(past)) < 0.9
        policy = sl.calibrate(scores, labels, sl.NextPool(k=1), pools=past, alpha=0.4)
        new = {policy.choice.chosen: rng.random(len(later))}
        accused += sl.evaluate(policy, new, rng.random(len(later)) < 0.9, pools=later).consistent is False
    assert at_most_one_in_twenty(accused, 250)


@pytest.mark.parametrize("kind", ["per pool, two levels", "few labels, per pool"])
def test_pools_smaller_than_those_promised_are_refused(kind):
    policy = policy_of(kind)  # for every pool of 100 or more
    sizes = np.repeat(np.arange(41), [99] * 21 + [100] * 20)
    scores, labels = np.ones(len(sizes)), np.ones(len(sizes), dtype=bool)
    with pytest.raises(sl.InvalidInput, match="100 or more"):
        sl.evaluate(policy, scores, labels, pools=sizes)


@pytest.mark.slow
def test_two_levels_for_groups_promise_what_all_groups_together_keep():
    """A pool falls short where any group does; half of alpha is for that, not a part of it for each group."""
    policy = sl.calibrate(SCORES, LABELS, {"north": sl.PerPool(2, 50), "south": sl.PerPool(2, 50)}, rule="pac", alpha=0.2, groups=sl.Groups(GROUPS, purpose="a test"))  # fmt: skip
    assert policy.pool_alpha == pytest.approx(0.1)
    assert [float(claim.rate) for claim in sl.Monitor(policy).claims] == pytest.approx([0.9, 0.9])
    rng, pools = np.random.default_rng(6), np.repeat(np.arange(60), 100)
    groups = np.where(np.arange(6_000) % 2, "north", "south")
    accused = 0
    for _ in range(60):
        short = (groups == "north") & np.repeat(
            rng.random(60) < 0.1, 100
        )  # all of what is allowed, in one group
        found = sl.evaluate(policy, (~short).astype(float), ~short, groups=groups, pools=pools)
        accused += found.consistent is False
    assert at_most_one_in_twenty(accused, 60)
    short = (groups == "north") & np.repeat(rng.random(60) < 0.3, 100)
    assert sl.evaluate(policy, (~short).astype(float), ~short, groups=groups, pools=pools).consistent is False


@pytest.mark.parametrize("kind", ["collection, recall", "collection, at least"])
def test_a_promise_about_a_collection_does_not_leave_as_sql(kind):
    """A threshold in a warehouse goes to other tables, and the list of a recall holds its sample too."""
    with pytest.raises(sl.InvalidInput, match="it is about the 2,000 candidates it was made from"):
        selection_sql(policy_of(kind), score="risk")


def test_the_best_of_several_by_two_levels_is_watched_for_what_is_said_of_a_pool():
    policy = sl.calibrate(
        {"model": SCORES, "rating": SCORES**2}, LABELS, sl.PerPool(3, 50), rule="pac", alpha=0.2
    )
    said = 100 * (1 - float(sl.Monitor(policy).claims[0].rate))
    assert said == pytest.approx(100 * policy.pool_alpha)
    assert f"with probability at least 1 - {said:.6g}%" in policy.promise
