"""The recall of a collection in two draws: every labelling, every draw, every block; and a person's way through it."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from scipy import special

import surelist as sl
from surelist.bounds import control_sample
from surelist.bounds.collection_lists import (
    allowed_hits,
    at_least,
    chance_missed,
    fewest_qualified,
    largest_block,
    may_miss,
    shortest_list,
)
from surelist.bounds.control_sample import control_rule
from surelist.lifecycle.labelling_design import Sample, Stage
from surelist.lifecycle.labelling_ranked import Curve, pilot_bins, pilot_ranks
from surelist.lifecycle.labelling_recall import (
    FIRST,
    SECOND,
    UNIFORM,
    RecallDesign,
    at_best,
    chance_to_certify,
)

UNTIED = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0]
TIED = [9.0, 7.0, 7.0, 7.0, 5.0, 3.0, 3.0, 3.0]


def design_of(scores, truth, share, alpha, stages) -> RecallDesign:
    """A finished labelling: rows are ranks; ``stages`` are names, rows and sizes of blocks."""
    size, asked = len(scores), {row for _, rows, _ in stages for row in rows}
    marks = "".join(str(int(truth[row])) if row in asked else "?" for row in range(size))
    return RecallDesign(
        group=None, target=msgspec.to_builtins(sl.Recall(share)), alpha=alpha, size=size, labels=size,
        sample=Sample(list(range(size)), None, list(scores), list(range(size)), marks, []), draws=[],
        sizes=list(range(1, size + 1)),
        stages=[Stage(name, sorted(rows), block and block - 1) for name, rows, block in stages],
    )  # fmt: skip


def misses(scores, truths, share, alpha, stages) -> np.ndarray:
    """Of each labelling, whether the list keeps less than its share; who is asked decides the list."""
    seen = sorted({row for _, rows, _ in stages for row in rows})
    patterns, which = np.unique(truths[:, seen], axis=0, return_inverse=True)
    false = np.zeros(len(truths), dtype=bool)
    for number in range(len(patterns)):
        alike = np.flatnonzero(which.ravel() == number)
        design = design_of(scores, truths[alike[0]], share, alpha, stages)
        verdict = design.verdict()
        if verdict.refusal is not None:
            continue
        cutoff = design.cutoff()
        cutoff.proof.check(cutoff)
        on = np.asarray(scores) >= verdict.threshold
        named, off = design.named()
        on[named], on[off] = True, False
        everyone = truths[alike].sum(axis=1)
        kept = truths[alike] @ on
        false[alike] = kept * share.denominator < share.numerator * everyone
    return false


# (scores, share, alpha, known, top, drawn at the top, drawn at the bottom)
WORLDS = {
    "two draws": (UNTIED, Fraction(1, 2), 0.5, (), 4, 2, 2),
    "a known row above, one below": (UNTIED, Fraction(1, 2), 0.6, (1, 6), 4, 2, 2),
    "a census above": (UNTIED, Fraction(3, 5), 0.4, (0,), 3, 2, 2),
    "more drawn below": (UNTIED, Fraction(2, 3), 0.6, (), 3, 2, 3),
    "ties": (TIED, Fraction(1, 2), 0.5, (4,), 4, 2, 2),
}


def worst_level(name: str) -> Fraction:
    """Over every labelling: first draws in turn, and for each the block below that does most harm."""
    scores, share, alpha, known, top, above, below = WORLDS[name]
    truths = np.array(list(itertools.product((0, 1), repeat=len(scores))))
    free = [row for row in range(top) if row not in known]
    firsts = list(itertools.combinations(free, above))
    total = [Fraction(0)] * len(truths)
    for first in firsts:
        worst = [Fraction(0)] * len(truths)
        for begin in range(top, len(scores)):
            rest = [row for row in range(begin, len(scores)) if row not in known]
            seconds = list(itertools.combinations(rest, min(below, len(rest))))
            false = np.zeros(len(truths), dtype=int)
            for second in seconds:
                stages = [("pilot", known, None), (FIRST, first, top), (SECOND, second, len(scores) - begin)]
                false += misses(scores, truths, share, alpha, stages)
            worst = [max(w, Fraction(int(f), len(seconds))) for w, f in zip(worst, false, strict=True)]
        total = [t + w for t, w in zip(total, worst, strict=True)]
    return max(total) / len(firsts)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_over_every_labelling_and_both_draws_the_list_is_false_at_most_alpha(name):
    assert worst_level(name) <= Fraction(str(WORLDS[name][2]))


@pytest.mark.slow
def test_the_same_where_a_block_is_too_large_to_go_through(monkeypatch):
    control_rule.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(control_sample, "MOST_WORK", 0)
        assert worst_level("a census above") <= Fraction(str(WORLDS["a census above"][2]))
    control_rule.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("known", [(), (2,), (0, 7)])
@pytest.mark.parametrize(
    ("count", "share", "alpha"),
    [(4, Fraction(1, 2), 0.4), (2, Fraction(1, 2), 0.4), (3, Fraction(3, 4), 0.5)],
)
def test_one_sample_of_those_not_labelled_yet(known, count, share, alpha):
    """The drops are those of the rows that are not known; known qualified ones are kept beside."""
    truths = np.array(list(itertools.product((0, 1), repeat=8)))
    free = [row for row in range(8) if row not in known]
    draws = list(itertools.combinations(free, count))
    false = np.zeros(len(truths), dtype=int)
    for drawn in draws:
        stages = [*([("pilot", known, None)] if known else []), (UNIFORM, drawn, 8)]
        false += misses(UNTIED, truths, share, alpha, stages)
    assert Fraction(int(false.max()), len(draws)) <= Fraction(str(alpha))


@pytest.mark.slow
def test_the_lemma_over_every_set_of_marked_rows():
    """Drawn marked rows met before the (u+1)-th that was not drawn: never more likely than by the formula."""
    free, drawn = 8, 3
    draws = list(itertools.combinations(range(free), drawn))
    reached = False
    for size in range(free + 1):
        for marked in itertools.combinations(range(free), size):
            for u in range(3):
                met = []
                for draw in draws:
                    seen, left = 0, u + 1
                    for row in marked:
                        seen, left = (seen + 1, left) if row in draw else (seen, left - 1)
                        if not left:
                            break
                    met.append(seen if not left else drawn + 1)  # never that many missed
                for d in range(drawn + 1):
                    share = Fraction(sum(each <= d for each in met), len(draws))
                    bound = chance_missed(d, free, u, drawn)
                    assert float(share) <= bound + 1e-12
                    reached |= share > 0 and abs(float(share) - bound) < 1e-12
    assert reached


def test_numbers_against_their_definitions():
    for free, drawn in ((30, 10), (12, 12), (40, 5)):
        for hits in range(drawn + 1):
            low = at_least(hits, free, drawn, Fraction(1, 10))
            tail = [
                special.comb(k, 0) and _tail(free, k, drawn, hits) for k in range(free - drawn + hits + 1)
            ]
            assert low == (
                hits if not hits or drawn == free else next(k for k, p in enumerate(tail) if p > 0.1)
            )
    ways = {
        k: sum(math.comb(k, x) * math.comb(500 - k, 200 - x) for x in range(100, 201))
        for k in range(100, 401)
    }
    for level in (Fraction(1, 10**15), Fraction(1, 10**30)):  # below what 1 - p can tell
        exact = next(k for k, count in ways.items() if Fraction(count, math.comb(500, 200)) > level)
        assert at_least(100, 500, 200, level) == exact
    assert allowed_hits(1000, 5, 400, Fraction(1, 20)) == max(
        d for d in range(400) if chance_missed(d, 1000, 5, 400) <= 0.05
    )
    most = largest_block(10**5, 20, 500, 1, Fraction(1, 20))
    assert chance_missed(1, most, 20, 500) <= 0.05 < chance_missed(1, most + 1, 20, 500)
    assert may_miss(Fraction(9, 10), 27) == 3  # 0.1 / 0.9 in binary floats would give 2 or 3 by chance


def unseen(block: int, marked: int, drawn: int) -> Fraction:
    """The chance that a sample holds none of the marked rows, by going through all samples."""
    samples = [*itertools.combinations(range(block), drawn)]
    return Fraction(sum(all(row >= marked for row in each) for each in samples), len(samples))


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(2, 3), Fraction(9, 10), Fraction(1)])
def test_the_floor_against_all_samples(share):
    """Of the longest block that may be left out unseen, ties with alpha being allowed."""
    size = 8
    for alpha in (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)):
        for drawn in range(1, size + 3):
            floors = []
            for qualified in range(size + 1):
                marked = math.floor((1 - share) / share * qualified) + 1
                longest = max(
                    block
                    for block in range(size + 1)
                    if block <= drawn or unseen(block, marked, drawn) <= alpha
                )
                floors.append(max(size - longest, math.ceil(share * qualified)))
                assert shortest_list(size, qualified, drawn, share, alpha) == floors[-1]
            for most in range(size + 1):
                fewest = [count for count, floor in enumerate(floors) if floor <= most]
                assert fewest_qualified(size, drawn, share, alpha, most) == (fewest[0] if fewest else None)


def test_what_is_best_is_true_of_any_size():
    assert at_best(1, 1, Fraction(9, 10), 0.1) == ""  # all are labelled
    assert at_best(100, 100, Fraction(9, 10), 0.1) == ""
    assert at_best(100, 3, Fraction(1), 0.1).endswith("half of these 100 candidates, however many qualify.")
    assert at_best(100, 46, Fraction(1), 0.1) == ""  # 46 of 51 is more than nine tenths
    assert at_best(100, 3, Fraction(99, 100), 0.1).endswith("however many qualify.")
    assert "unless at least 209 of them (1.9%) qualify" in at_best(11_000, 1000, Fraction(19, 20), 0.1)


def _tail(total: int, marked: int, drawn: int, count: int) -> float:
    ways = sum(
        special.comb(marked, x, exact=True) * special.comb(total - marked, drawn - x, exact=True)
        for x in range(count, drawn + 1)
    )
    return float(Fraction(ways, special.comb(total, drawn, exact=True)))


def rare(size=6000, seed=3):
    rng = np.random.default_rng(seed)
    scores = rng.random(size)
    return scores, rng.random(size) < np.where(scores > 0.99, 0.6, 0.004)


def finish(work, labels) -> None:
    while len(rows := work.ask()):
        work.tell(rows, labels[rows])


def test_rare_ones_take_two_draws_and_plenty_take_one(tmp_path):
    scores, truth = rare()
    work = sl.Labelling(scores, sl.Recall(0.9), labels=600)
    least = fewest_qualified(6000, 600, Fraction(9, 10), Fraction(1, 10), 3000)
    said = f"is sure to leave out half of these 6,000 candidates unless at least {least} of them ("
    assert said in " ".join(work.describe().split())
    path = tmp_path / "work.json"
    while len(rows := work.ask()):
        work.tell(rows, truth[rows])
        work.save(path)
        work = sl.Labelling.load(path)
    assert [stage.name for stage in work._state.designs[0].stages] == ["pilot", FIRST, SECOND]
    on = work.select(scores)
    assert on.sum() == work.listed < 6000
    assert truth[on].sum() >= 0.9 * truth.sum()  # of this seed
    told = work.told
    assert not on[[row for row, label in told.items() if label == 0]].any()
    assert on[[row for row, label in told.items() if label == 1]].all()
    policy = tmp_path / "policy.json"
    work.policy.save(policy)
    assert sl.Policy.load(policy).promise == work.policy.promise
    raw = json.loads(policy.read_text())
    raw["cutoffs"][0]["proof"]["hits_top"] += 40
    policy.write_text(json.dumps(raw))
    with pytest.raises(sl.PolicyFileError):
        sl.Policy.load(policy)
    plenty = sl.Labelling(scores, sl.Recall(0.8), labels=1200)
    finish(plenty, scores > 0.5)
    assert [stage.name for stage in plenty._state.designs[0].stages] == ["pilot", UNIFORM]
    assert plenty.select(scores).sum() == plenty.listed


def test_a_damaged_state_is_refused(tmp_path):
    scores, truth = rare()
    work = sl.Labelling(scores, sl.Recall(0.9), labels=600)
    finish(work, truth)
    good = json.loads(work.dumps())

    def damaged(change) -> None:
        raw = json.loads(json.dumps(good))
        change(raw["designs"][0], raw["designs"][0]["stages"])
        with pytest.raises(sl.PolicyFileError):
            sl.Labelling.loads(json.dumps(raw))

    damaged(lambda design, stages: stages[2].update(chosen=len(design["sizes"]) - 1))
    damaged(lambda design, stages: stages[1]["asked"].pop())
    damaged(lambda design, stages: stages.reverse())
    damaged(lambda design, stages: design["sizes"].pop())
    damaged(lambda design, stages: design.update(labels=10))


@pytest.mark.parametrize("good", [[1], [1, 0, 0, 1, 0], [0, 0, 1] + [0] * 47])
def test_a_collection_that_is_labelled_whole_keeps_all_who_qualify(good):
    """However few they are: nobody is missed. It was said that no number of labels could show it."""
    labels, scores = np.array(good), -np.arange(len(good), dtype=float)
    work = sl.Labelling(scores, sl.Recall(0.8), labels=len(good))
    work.tell(rows := work.ask(), labels[rows])
    assert "keeps at least 80% of all qualified" in work.policy.promise
    assert work.select(scores).tolist() == labels.astype(bool).tolist()


def test_a_collection_in_which_nobody_qualifies_is_refused_as_that():
    work = sl.Labelling(np.arange(5.0), sl.Recall(0.8), labels=5)
    work.tell(rows := work.ask(), np.zeros(len(rows)))
    with pytest.raises(sl.NotCertifiable, match="nobody is qualified: there is no share to keep"):
        _ = work.policy


def pilot_of(size, labels, truth) -> Curve:
    ranks = pilot_ranks(0, size, labels // 20, pilot_bins(size, labels), np.random.default_rng(0))
    return Curve.of(size, labels, ranks, truth[ranks])


@pytest.mark.slow
def test_the_chance_that_one_sample_certifies_follows_how_many_qualify():
    """30 of 3,000 at a recall of .9 from 600 labels are too few, 60 may do, 600 do for sure."""
    share, ranks = Fraction(9, 10), np.arange(3000)
    chances = [
        chance_to_certify(pilot_of(3000, 600, ranks < good), 570, share, 0.1) for good in (30, 60, 600)
    ]
    assert chances == sorted(chances)
    assert chances[0] < 0.2 < 0.99 < chances[-1]
    none = pilot_of(3000, 600, ranks < 0)
    assert chance_to_certify(none, 570, share, 0.1) < 0.1
    assert chance_to_certify(none, 2970, share, 0.1) > 0.99  # everyone is labelled
    assert (
        chance_to_certify(pilot_of(3000, 600, ranks < 600), 570, Fraction(1), 0.1) == 0
    )  # no number would do
    most = pilot_of(
        10**6, 10**6, np.arange(10**6) < 10**5
    )  # 50,000 labels of a pilot: some of them are enough
    assert chance_to_certify(most, 1000, share, 0.1) > 0.99
