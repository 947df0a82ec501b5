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
from surelist.lifecycle.labelling_recall import (
    FIRST,
    PART,
    SECOND,
    UNIFORM,
    RecallDesign,
    at_best,
)
from surelist.lifecycle.recall_plan import about_needed, looks_at

UNTIED = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0]
TIED = [9.0, 7.0, 7.0, 7.0, 5.0, 3.0, 3.0, 3.0]


def design_of(scores, truth, share, alpha, stages) -> RecallDesign:
    """A finished labelling: rows are ranks; ``stages`` are names, rows and sizes of blocks."""
    size, asked = len(scores), {row for _, rows, *_ in stages for row in rows}
    marks = "".join(str(int(truth[row])) if row in asked else "?" for row in range(size))
    return RecallDesign(
        group=None, target=msgspec.to_builtins(sl.Recall(share)), alpha=alpha, size=size, labels=size,
        sample=Sample(list(range(size)), None, list(scores), list(range(size)), marks, []), draws=[],
        sizes=list(range(1, size + 1)),
        stages=[
            Stage(name, sorted(rows), block and block - 1, least=sum(least))
            for name, rows, block, *least in stages
        ],
    )  # fmt: skip


def misses(scores, truths, share, alpha, stages) -> np.ndarray:
    """Of each labelling, whether the list keeps less than its share; who is asked decides the list."""
    seen = sorted({row for _, rows, *_ in stages for row in rows})
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
@pytest.mark.parametrize(
    ("count", "share", "alpha"),
    [(4, Fraction(1, 2), 0.4), (2, Fraction(1, 2), 0.4), (3, Fraction(3, 4), 0.5)],
)
def test_one_sample_of_everyone(count, share, alpha):
    truths = np.array(list(itertools.product((0, 1), repeat=8)))
    draws = list(itertools.combinations(range(8), count))
    false = np.zeros(len(truths), dtype=int)
    for drawn in draws:
        false += misses(UNTIED, truths, share, alpha, [(UNIFORM, drawn, 8)])
    assert Fraction(int(false.max()), len(draws)) <= Fraction(str(alpha))


# (scores, share, alpha, parts: rows and with how many qualified ones it goes on, the rest)
PARTED = {
    "a look": (UNTIED, Fraction(3, 4), 0.2, ((4, 2),), 1),
    "a look at few": ([*UNTIED, 1.0], Fraction(3, 4), 0.2, ((2, 2),), 2),
    "two looks": (UNTIED, Fraction(3, 4), 0.2, ((1, 1), (3, 3)), 1),
    "ties": (TIED, Fraction(3, 4), 0.2, ((3, 2),), 2),
}


def in_parts(size, parts, rest):
    """Every way to draw a sample in parts, and how many there are of each."""
    if not parts:
        yield from ([each] for each in itertools.combinations(range(size), rest))
        return
    (rows, _), *later = parts
    for first in itertools.combinations(range(size), rows):
        left = [row for row in range(size) if row not in first]
        after = [(more - rows, least) for more, least in later]
        for others in in_parts(size - rows, after, rest):
            yield [first, *(tuple(left[row] for row in each) for each in others)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTED)
def test_of_all_samples_that_go_on_the_list_is_false_at_most_alpha_of_the_time(name):
    """Over every labelling and every way to draw the parts."""
    scores, share, alpha, looks, rest = PARTED[name]
    size = len(scores)
    truths = np.array(list(itertools.product((0, 1), repeat=size)))
    false, went = np.zeros(len(truths), dtype=int), np.zeros(len(truths), dtype=int)
    for *parts, last in in_parts(size, looks, rest):
        stages = [(PART, rows, size, least) for rows, (_, least) in zip(parts, looks, strict=True)]
        so_far = [truths[:, sum(parts[: at + 1], ())].sum(axis=1) for at in range(len(parts))]
        goes = np.all([hits >= least for hits, (_, least) in zip(so_far, looks, strict=True)], axis=0)
        went += goes
        false[goes] += misses(scores, truths[goes], share, alpha, [*stages, (UNIFORM, last, size)])
    level = Fraction(str(alpha))
    assert all(Fraction(int(f)) <= level * int(w) for f, w in zip(false, went, strict=True))
    assert false.any()


@pytest.mark.slow
def test_parts_and_two_draws_together_are_false_at_most_alpha_of_the_time():
    """Where a part goes on with too few, the worst two draws after it; the rows of the part are known."""
    scores, share, alpha, top, size = UNTIED, Fraction(3, 4), 0.4, 3, 8
    truths = np.array(list(itertools.product((0, 1), repeat=size)))
    total, firsts = [Fraction(0)] * len(truths), list(itertools.combinations(range(size), 3))
    for part in firsts:
        goes = truths[:, part].sum(axis=1) >= 2
        false = np.zeros(len(truths), dtype=int)
        rest = list(itertools.combinations([row for row in range(size) if row not in part], 2))
        for last in rest:
            stages = [(PART, part, size, 2), (UNIFORM, last, size)]
            false[goes] += misses(scores, truths[goes], share, alpha, stages)
        chance = [Fraction(int(each), len(rest)) for each in false]
        if not goes.all():
            stopped = _worst_draws(scores, truths[~goes], share, alpha, part, top)
            for at, each in zip(np.flatnonzero(~goes), stopped, strict=True):
                chance[at] = each
        total = [t + c for t, c in zip(total, chance, strict=True)]
    assert max(total) / len(firsts) <= Fraction(str(alpha))


def _worst_draws(scores, truths, share, alpha, part, top) -> list[Fraction]:
    """All rows above ``top`` that are not in the part, then one of the block below that does most harm."""
    first, worst = [row for row in range(top) if row not in part], [Fraction(0)] * len(truths)
    for begin in range(top, len(scores)):
        below = [row for row in range(begin, len(scores)) if row not in part]
        if not below:
            continue
        false = np.zeros(len(truths), dtype=int)
        for row in below:
            stages = [
                (PART, part, len(scores), 2), (FIRST, first, top), (SECOND, [row], len(scores) - begin),
            ]  # fmt: skip
            false += misses(scores, truths, share, alpha, stages)
        worst = [max(w, Fraction(int(f), len(below))) for w, f in zip(worst, false, strict=True)]
    return worst


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
    work = sl.Labelling(scores, sl.Recall(0.9), labels=300)
    least = fewest_qualified(6000, 300, Fraction(9, 10), Fraction(1, 10), 3000)
    said = f"is sure to leave out half of these 6,000 candidates unless at least {least} of them ("
    assert said in " ".join(work.describe().split())
    path = tmp_path / "work.json"
    while len(rows := work.ask()):
        work.tell(rows, truth[rows])
        work.save(path)
        work = sl.Labelling.load(path)
    names = [stage.name for stage in work._state.designs[0].stages]
    assert names[0] == PART
    assert names[-2:] == [FIRST, SECOND]
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
    assert [stage.name for stage in plenty._state.designs[0].stages] == [PART, PART, UNIFORM]
    assert plenty.select(scores).sum() == plenty.listed
    plenty.policy.save(policy)
    raw = json.loads(policy.read_text())
    assert [rows for rows, _ in raw["cutoffs"][0]["proof"]["looks"]] == [240, 600]
    assert sl.Policy.load(policy).promise == plenty.policy.promise
    for looks in ([[240, 3], [240, 3]], [[240, 3], [1200, 3]], [[0, 1]], [[240, 1200]], [[240, -1]]):
        raw = json.loads(policy.read_text())
        raw["cutoffs"][0]["proof"]["looks"] = looks
        with pytest.raises(sl.PolicyFileError):
            sl.Policy.loads(json.dumps(raw))


def damaged(work, change) -> None:
    raw = json.loads(work.dumps())
    change(raw["designs"][0], raw["designs"][0]["stages"])
    with pytest.raises(sl.PolicyFileError):
        sl.Labelling.loads(json.dumps(raw))


def without_a_look(stages) -> None:
    """As if the second part and the rest had been asked for together."""
    part = stages.pop(1)
    stages[1]["asked"] = sorted(part["asked"] + stages[1]["asked"])


def without_a_label(sample) -> None:
    """The lowest qualified one is said not to have come: the list would end above it."""
    at = sample["labels"].rindex("1")
    sample["labels"] = sample["labels"][:at] + "-" + sample["labels"][at + 1 :]


def test_a_damaged_state_is_refused():
    scores, truth = rare()
    work, plenty = (sl.Labelling(scores, sl.Recall(0.9), labels=300) for _ in range(2))
    finish(work, truth)
    damaged(work, lambda design, stages: stages[-1].update(chosen=len(design["sizes"]) - 1))
    damaged(work, lambda design, stages: stages[-2]["asked"].pop())
    damaged(work, lambda design, stages: stages.reverse())
    damaged(work, lambda design, stages: design["sizes"].pop())
    damaged(work, lambda design, stages: design.update(labels=10))
    damaged(work, lambda design, stages: stages[-3].update(least=0))  # it would have gone on
    damaged(work, lambda design, stages: stages.pop(0))
    finish(plenty, scores > 0.5)
    damaged(plenty, lambda design, stages: stages[0].update(least=300))  # it would not
    damaged(plenty, lambda design, stages: stages[0].update(chosen=3))
    damaged(plenty, lambda design, stages: stages[0].update(least=0))  # it goes on, and is allowed more
    damaged(plenty, lambda design, stages: without_a_look(stages))
    damaged(plenty, lambda design, stages: without_a_label(design["sample"]))
    damaged(plenty, lambda design, stages: stages[1].update(name=UNIFORM))


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


def started(size=3000, labels=600, share=0.9, alpha=0.1) -> RecallDesign:
    work = sl.Labelling(-np.arange(size, dtype=float), sl.Recall(share), alpha=alpha, labels=labels)
    (design,) = work._state.designs
    assert isinstance(design, RecallDesign)
    return design


def test_whether_a_sample_goes_on_depends_on_how_many_qualify_and_not_on_where():
    for choose in (slice(None), slice(None, None, -1)):
        for more, name in ((0, PART), (-1, FIRST)):
            design = started()
            part = design.stages[0]
            assert part.name == PART
            assert len(part.asked) == 120
            good = part.asked[choose][: part.least + more]
            for at in part.asked:
                design.sample.set_label(at, str(int(at in good)))
            design.advance()
            assert design.stages[1].name == name
            if name == PART:
                assert design.passed[0] == (120, part.least)
            design.verify()


def test_a_label_of_a_part_is_corrected_until_one_of_what_follows_is_here():
    scores, _ = rare()
    work = sl.Labelling(scores, sl.Recall(0.8), labels=600)
    part = work.ask()
    work.tell(part, np.ones(len(part)))
    assert [stage[1] for stage in work.stages] == [PART, PART]
    assert work.correct(part, np.zeros(len(part))) == len(part)
    assert [stage[1] for stage in work.stages] == [PART, FIRST], "the right labels do not go on"
    work.correct(part, np.ones(len(part)))
    rows = work.ask()
    work.tell(rows[:1], [1])
    with pytest.raises(sl.InvalidInput, match="labels of the next part of a control sample are here"):
        work.correct(part[:1], [0])
    work.correct(rows[:1], [0])


def test_about_how_many_a_sample_needs_and_when_it_is_looked_at():
    for case in (
        (11_165, 1000, Fraction(9, 10), 0.05),
        (1260, 420, Fraction(9, 10), 0.05),
        (500, 120, Fraction(7, 10), 0.2),
    ):
        assert about_needed(*case) == control_rule(*case).needed
    assert about_needed(10**7, 5000, Fraction(9, 10), 0.05) == 29  # the binomial rule: 0.9^29 <= 0.05
    assert about_needed(3000, 100, Fraction(1), 0.1) == 101
    assert looks_at(11_165, 1000, Fraction(9, 10), 0.05) == ((200, 2), (500, 8))
    assert [stage.name for stage in started(share=0.99, labels=100).stages] == ["pilot"]  # no sample would do


def test_a_second_draw_is_uniform_whatever_rows_a_part_asked_for():
    """Samples of a block and of everyone share rows: what a part leaves of a block's is still uniform."""
    chosen, free, runs = np.zeros(200), np.zeros(200), 300
    for _ in range(runs):
        design = started(200, 100, 0.7, 0.2)
        block = next(at for at, rows in enumerate(design.sizes) if rows >= 150)
        known = {design.sample.ranks[at] for at in design.stages[0].asked}
        later = design.drawn(SECOND, block, 30)
        ranks = [design.sample.ranks[at] for at in later.asked]
        left = [rank for rank in range(200 - design.sizes[block], 200) if rank not in known]
        free[left] += len(ranks) / len(left)
        chosen[ranks] += 1
    spread = (chosen - free)[-design.sizes[block] :] / np.sqrt(free[-design.sizes[block] :])
    assert abs(spread).max() < 6
    assert (spread**2).mean() < 2
