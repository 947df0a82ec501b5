"""The level of few labels: every draw, every label pattern, every block an adversary could choose."""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import surelist as sl
from surelist import examples
from surelist.bounds.collection import block_count, block_rate_count
from surelist.lifecycle.labelling_block import BlockDesign
from surelist.lifecycle.labelling_design import BlockDraws, Sample, Stage, draw_blocks, set_aside

pytestmark = pytest.mark.slow


def sample_of(ranks, labels, scores) -> list[tuple[int, float, str]]:
    """Ranks with their scores and labels."""
    return [(rank, float(scores[rank]), str(labels[rank])) for rank in ranks]


def design_of(
    target, alpha, size, *, pilot, main, block, apart=0, pilot_block=0, fallback=0.0
) -> BlockDesign:
    """A finished labelling; the pilot's ranks are those of a part of its own where one is set aside."""
    named = [(0, *each) for each in pilot or []] + [(1, *each) for each in main]
    named.sort(key=lambda each: (each[1], each[0]))
    places = [[at for at, each in enumerate(named) if each[0] == stage] for stage in (0, 1)]
    ranks = [each[1] for each in named]
    sample = Sample(
        list(range(len(named))),
        None,
        [each[2] for each in named],
        ranks,
        "".join(each[3] for each in named),
        [],
    )
    zeros = [0] * len(main)
    stages = [Stage("pilot", places[0])] if pilot else []
    return BlockDesign(
        group=None, target=msgspec.to_builtins(target), alpha=alpha, size=size, sample=sample,
        stages=[*stages, Stage("block", places[1], 0)], apart=apart, pilot_block=pilot_block,
        fallback=fallback, blocks=[block], drawn=len(main), draw=BlockDraws(places[1], zeros, zeros),
    )  # fmt: skip


UNTIED = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0]
TIED = [9.0, 7.0, 7.0, 7.0, 5.0, 3.0, 3.0]


@pytest.mark.parametrize("scores", [UNTIED, TIED], ids=["untied", "tied"])
@pytest.mark.parametrize("k", [2, 3])
def test_the_collection_in_hand_with_pilot_known_labels_fallback_and_an_adversary(scores, k):
    """N = 7: for every label pattern, over every pilot and sample, with the worst block for every pilot."""
    size, alpha, fallback, pilot_block = 7, 0.8, 0.3, 5
    target, worst = sl.AtLeast(k), Fraction(0)
    pilots = list(itertools.combinations(range(pilot_block), 2))
    for labels in itertools.product((0, 1), repeat=size):
        total = Fraction(0)
        for drawn in pilots:
            free = [rank for rank in range(size) if rank not in drawn]
            chances = []
            for block in (3, 5):
                samples = list(itertools.combinations(free[:block], 2))
                false = 0
                for ranks in samples:
                    design = design_of(
                        target, alpha, size, pilot=sample_of(drawn, labels, scores),
                        main=sample_of(ranks, labels, scores), block=block,
                        pilot_block=pilot_block, fallback=fallback,
                    )  # fmt: skip
                    verdict = design.verdict()
                    held = sum(y for y, s in zip(labels, scores, strict=True) if s >= verdict.threshold)
                    false += verdict.refusal is None and held < k
                chances.append(Fraction(false, len(samples)))
            total += max(chances)
        worst = max(worst, total / len(pilots))
    assert worst <= Fraction(str(alpha))
    assert worst > Fraction(str(alpha)) / 3


@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(1, 2), Fraction(1)])
def test_future_pools_with_fallback_over_every_outcome(share):
    """Every number of rows above the boundary, every label and draw: P(threshold above the boundary) <= alpha.

    ``share`` of the candidates lie above t*, and exactly the rate of the target lies there and is qualified.
    """
    rate, alpha, fallback, apart, main = Fraction(1, 5), 0.5, 0.3, 3, 6
    target, size, blocks = sl.Expected(1, 5), apart + main, (3, 4, 6)
    good = rate / share

    def outcomes(rows: int):
        """Above-the-boundary rows come first; each is qualified with the same chance; the rest are not."""
        for above in range(rows + 1):
            for labels in itertools.product((0, 1), repeat=above):
                chance = math.comb(rows, above) * share**above * (1 - share) ** (rows - above)
                for label in labels:
                    chance *= good if label else 1 - good
                yield above, labels + (1,) * (rows - above), chance

    pilot_samples = list(itertools.combinations(range(apart), 2))
    pilots = []  # (chance, the fall-back's threshold is false)
    for above, labels, chance in outcomes(apart):
        for ranks in pilot_samples:
            pilots.append((chance / len(pilot_samples), above, labels, ranks))
    worst = Fraction(0)
    for block in blocks:
        samples = list(itertools.combinations(range(block), 3))
        false = Fraction(0)
        mains = [(a, y, p / len(samples), r) for a, y, p in outcomes(main) for r in samples if p]
        main_false = [_above(target, alpha, size, apart, fallback, block, a, y, r) for a, y, _, r in mains]
        chance_main = sum(
            (p for (_, _, p, _), bad in zip(mains, main_false, strict=True) if bad), Fraction(0)
        )
        chance_pilot = Fraction(0)
        for chance, above, labels, ranks in pilots:
            scores = [2.0 - r / 10 if r < above else 1.0 - r / 10 for r in range(apart)]
            design = design_of(
                target, alpha, size, pilot=sample_of(ranks, labels, scores), pilot_block=apart,
                main=sample_of((0, 1, 2), (0,) * main, [0.0] * main), block=block, apart=apart, fallback=fallback,
            )  # fmt: skip
            verdict = design.run_fallback()
            chance_pilot += chance * (verdict is not None and verdict.threshold > 1.0)
        false = chance_main + chance_pilot - chance_main * chance_pilot
        worst = max(worst, false)
    assert worst <= Fraction(str(alpha))
    assert worst > Fraction(1, 20)


def _above(target, alpha, size, apart, fallback, block, above, labels, ranks) -> bool:
    """Whether the block's threshold lies above the boundary (score 1 and below is below it)."""
    scores = [2.0 - r / 10 if r < above else 1.0 - r / 10 for r in range(len(labels))]
    design = design_of(
        target, alpha, size, pilot=sample_of((0, 1), (0, 0, 0), [0.0] * 3), pilot_block=3,
        main=sample_of(ranks, labels, scores), block=block, apart=apart, fallback=fallback,
    )  # fmt: skip
    verdict = design.verdict()
    return verdict.refusal is None and verdict.threshold > 1.0


def test_counts_use_the_size_of_their_own_part_and_their_own_share_of_alpha():
    scores = list(range(1000, 0, -1))
    labels = [1] * 1000
    pilot, main = sample_of(range(0, 60), labels, scores), sample_of(range(100, 180), labels, scores)
    design = design_of(
        sl.Expected(5, 100), 0.1, 1000, pilot=pilot, main=main, block=300, apart=100, pilot_block=90, fallback=0.15,
    )  # fmt: skip
    fallback = design.run_fallback()
    assert fallback.proof.count == block_rate_count(100, 90, 60, 0.05, 0.1 * 0.15)
    main_only = (design_of(
        sl.Expected(5, 100), 0.1, 1000, pilot=sample_of(range(0, 60), [0] * 1000, scores), main=main, block=300,
        apart=100, pilot_block=90, fallback=0.15,
    )).verdict()  # fmt: skip
    assert main_only.proof.count == block_rate_count(900, 300, 80, 0.05, 0.1 * 0.85)
    assert main_only.proof.size == 900
    known = design_of(sl.AtLeast(40), 0.1, 1000, pilot=None, main=main, block=300).verdict()
    assert known.proof.count >= block_count(300, 40, 80, 0.1)


def test_every_blocks_sample_is_uniform():
    """Blocks of 3, 4 and 6 free rows, 2 drawn: every pair equally often in each of them."""
    rng, draws = np.random.default_rng(5), 12_000
    apart = np.array([1, 4])  # ranks that belong to the pilot
    free = [0, 2, 3, 5, 6, 7]
    blocks = [3, 4, 6]
    counts: list[dict[tuple[int, ...], int]] = [{}, {}, {}]
    for _ in range(draws):
        drawn = draw_blocks(apart, blocks, 2, rng)
        assert not set(drawn.ranks.tolist()) & {1, 4}
        for number in range(3):
            chosen = tuple(drawn.ranks[(drawn.enters <= number) & (number <= drawn.leaves)].tolist())
            counts[number][chosen] = counts[number].get(chosen, 0) + 1
    for number, block in enumerate(blocks):
        pairs = list(itertools.combinations(free[:block], 2))
        assert set(counts[number]) == set(pairs)
        mean = draws / len(pairs)
        assert all(abs(counts[number][pair] - mean) < 6 * math.sqrt(mean) for pair in pairs)
    assert sorted(set_aside(5, 5, rng).tolist()) == [0, 1, 2, 3, 4]


def label(work: sl.Labelling, labels) -> None:
    while len(rows := work.ask()):
        work.tell(rows, labels[rows])


def test_future_pools_at_the_boundary_through_the_public_api():
    """The system's own randomness: false certificates within alpha, and the budget is used."""
    rng, runs, false, certified = np.random.default_rng(11), 250, 0, 0
    target = sl.Expected(5, 100)
    chance = np.sort(examples.population(rng, 2_000_000)[0])[::-1]
    boundary = chance[np.searchsorted(np.cumsum(chance), 0.05 * len(chance))]
    for _ in range(runs):
        scores, labels = examples.population(rng, 4000)
        work = sl.Labelling(scores, target, alpha=0.2, labels=80)
        label(work, labels)
        try:
            false += work.policy.threshold > boundary
            certified += 1
        except sl.NotCertifiable:
            pass
    assert certified > 0.9 * runs
    assert binomial_tail(runs, 0.2, false) > 1e-6
    assert false > 0.05 * runs  # a rule far below its level would be too timid


def test_the_collection_itself_at_its_worst_through_the_public_api():
    """Exactly k-1 qualified of the first half of the ranks, and plenty after: the claim is just false there."""
    runs, size, k, false = 300, 2000, 100, 0
    scores = -np.arange(size, dtype=float)
    rng = np.random.default_rng(2)
    for _ in range(runs):
        labels = np.zeros(size, dtype=bool)
        labels[rng.choice(300, k - 1, replace=False)] = True
        labels[1000:] = True
        work = sl.Labelling(scores, sl.AtLeast(k), alpha=0.2, labels=120)
        label(work, labels)
        with contextlib.suppress(sl.NotCertifiable):
            false += labels[work.select(scores)].sum() < k
    assert binomial_tail(runs, 0.2, false) > 1e-6


def test_recall_of_the_collection_and_why_the_sample_stays_on_the_list():
    """r = .5 of a third sampled: within alpha with the sample, far beyond it by the threshold alone."""
    rng, runs, alone, together = np.random.default_rng(4), 400, 0, 0
    size, labels = 240, np.zeros(240, dtype=bool)
    labels[:60] = True
    scores = -np.arange(size, dtype=float)
    for _ in range(runs):
        work = sl.Labelling(scores, sl.Recall(0.8), alpha=0.1, labels=120)
        label(work, labels)
        listed = work.select(scores)
        together += labels[listed].sum() < 0.8 * 60
        alone += labels[work.policy.select(scores)].sum() < 0.8 * 60
    assert binomial_tail(runs, 0.1, together) > 1e-6
    assert alone > 0.2 * runs
    del rng


def binomial_tail(runs: int, rate: float, count: int) -> float:
    from scipy import special

    return 1.0 if count == 0 else float(special.betainc(count, runs - count + 1, rate))


def test_prefixes_are_those_of_the_definition():
    """From the whole block up, fresh hits against c(known): the first prefix that fails ends it."""
    rng = np.random.default_rng(6)
    scores = list(range(40, 0, -1))
    for _ in range(300):
        labels = (rng.random(40) < rng.uniform(0.1, 0.9)).astype(int).tolist()
        pilot = sorted(rng.choice(40, 12, replace=False).tolist())
        free = [rank for rank in range(40) if rank not in pilot]
        block, k = int(rng.integers(10, 29)), int(rng.integers(1, 20))
        fresh = sorted(rng.choice(free[:block], 8, replace=False).tolist())
        known = [scores[r] for r in pilot if labels[r] and r < free[block - 1]]
        hits = [scores[r] for r in fresh if labels[r]]
        best, failed = None, False
        for t in sorted(set(known + hits)):
            count = sum(score >= t for score in hits)
            passes = count >= block_count(block, k - sum(score >= t for score in known), 8, 0.3)
            assert not (failed and passes)  # a shorter prefix is never easier
            failed |= not passes
            best = best if failed else t
        design = design_of(
            sl.AtLeast(k), 0.3, 40, pilot=sample_of(pilot, labels, scores), pilot_block=40,
            main=sample_of(fresh, labels, scores), block=block,
        )  # fmt: skip
        verdict = design.verdict()
        assert (None if verdict.refusal else verdict.threshold) == best
