"""Accept, look, reject of a collection: every labelling, every draw, at every look; and a person's way through it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import msgspec
import numpy as np
import polars as pl
import pytest

import surelist as sl
from surelist.lifecycle.labelling_design import Sample, Stage
from surelist.lifecycle.labelling_precision import score_ends
from surelist.lifecycle.labelling_recall import FIRST, SECOND
from surelist.lifecycle.labelling_start import ArrayCollection
from surelist.lifecycle.labelling_triage import TriageDesign

UNTIED = (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0)
TIED = (9.0, 7.0, 7.0, 5.0, 5.0, 5.0, 3.0)
EIGHT = (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0)

# scores, accept, recall, alpha, known, (end, drawn, steps, weights), (top, drawn), (bottom, drawn), missing when asked
WORLDS = {
    "one prefix": (UNTIED, 0.5, 0.5, 0.8, (), (6, 2, [6], [100]), (1, 1), (1, 1), ()),
    "a sequence and both draws": (UNTIED, 0.6, 0.6, 0.8, (1,), (5, 2, [3, 5], [60, 40]), (2, 1), (5, 3), ()),
    "a census above": (UNTIED, 0.5, 0.7, 0.9, (), (4, 2, [2, 4], [50, 50]), (2, 2), (4, 2), ()),
    "no test of those accepted": (UNTIED, 0.6, 0.5, 0.8, (0, 4), None, (3, 2), (4, 2), ()),
    "ties": (TIED, 0.5, 0.6, 0.8, (0,), (6, 2, [3, 6], [50, 50]), (1, 1), (4, 2), ()),
    "a label missing in the block": (UNTIED, 0.5, 0.6, 0.8, (1,), (6, 2, [3, 6], [60, 40]), (1, 1), (3, 2), (2,)),
    "labels missing in the pilot": (UNTIED, 0.5, 0.6, 0.8, (0, 6), (5, 2, [5], [100]), (1, 1), (4, 2), (0, 6)),
    "a label missing below": (UNTIED, 0.5, 0.6, 0.9, (2,), (4, 2, [4], [100]), (2, 1), (4, 2), (5,)),
    "hits are missing": (UNTIED, 0.6, 0.7, 0.8, (0, 4), None, (1, 1), (4, 2), (5, 6)),
    "missing everywhere, and ties": (TIED, 0.5, 0.5, 0.9, (3,), (3, 2, [3], [100]), (1, 1), (4, 2), (1, 4, 6)),
    "known ones are qualified at best": (EIGHT, 0.75, 0.5, 0.8, (5, 6, 7), (5, 2, [5], [100]), (1, 1), (3, 0), ()),
}  # fmt: skip


def design_of(world, truth, fresh, first, second) -> TriageDesign:
    """All stages before the band, their labels told; rows are ranks."""
    scores, accept, recall, alpha, known, block, top, bottom, missing = world
    size, asked = len(scores), {*known, *fresh, *first, *second}
    ends, cuts, best = score_ends(ArrayCollection(np.array(scores)), None)
    stages = [Stage("pilot", sorted(known))]
    if block is not None:
        steps = [ends.index(each) for each in block[2]]
        stages.append(Stage("block", sorted(fresh), ends.index(block[0]), steps, list(block[3])))
    stages += [Stage(FIRST, sorted(first), top[0] - 1), Stage(SECOND, sorted(second), bottom[0] - 1)]
    marks = "".join("?" if row not in asked else mark_of(row, truth, missing) for row in range(size))
    return TriageDesign(
        group=None, target=msgspec.to_builtins(sl.Triage(accept, reject_recall=recall)), alpha=alpha, size=size,
        sample=Sample(list(range(size)), None, list(scores), list(range(size)), marks, []), stages=stages,
        labels=len(asked), best=best, ends=ends, cuts=cuts, draws=[], whole=[], sizes=list(range(1, size + 1)),
    )  # fmt: skip


def mark_of(row, truth, missing) -> str:
    return "-" if row in missing else str(int(truth[row]))


def standing(design) -> tuple[np.ndarray, np.ndarray, int | None]:
    """Who is accepted, who is not rejected, and whom to look at next."""
    cutoff, looks = design.cutoff(), design.looks()
    accepted = np.asarray(design.sample.scores) >= cutoff.steps[0].threshold  # as Labelling.select says it
    on, off = design.named()
    accepted[on], accepted[off] = True, False
    kept = accepted.copy()
    kept[looks] = True
    cutoff.proof.check(cutoff)
    assert cutoff.proof.accepted.listed == accepted.sum()
    assert cutoff.proof.look == len(looks) == kept.sum() - accepted.sum()
    waiting = design.waiting
    assert waiting == sorted(waiting, reverse=True)  # from the lower end
    assert waiting or not looks or "-" in design.sample.labels
    return accepted, kept, waiting[0] if waiting else None


def levels(name: str) -> tuple[Fraction, Fraction, Fraction]:
    """The worst labelling's chance of a false precision, of a false recall, and of either, at any look."""
    world = WORLDS[name]
    scores, accept, recall, _, known, block, top, bottom, missing = world
    size, worst = len(scores), [Fraction(0)] * 3
    seen: dict[tuple[object, ...], tuple[np.ndarray, np.ndarray, int | None]] = {}
    for truth in map(np.array, itertools.product((0, 1), repeat=size)):
        chances = [Fraction(0)] * 3
        for *drawn, chance in all_draws(size, known, block, top, bottom):
            false, looked = [False, False], list[int]()
            asked = {*known, *itertools.chain(*drawn)}
            while True:  # before anybody looks at the band, and after every look
                told = [mark_of(row, truth, missing) for row in (*sorted(asked), *looked)]
                key = (*drawn, *looked, *told)
                if key not in seen:
                    design = design_of(world, truth, *drawn)
                    design.advance()
                    for row in looked:
                        design.sample.set_label(row, mark_of(row, truth, missing))
                    seen[key] = standing(design)
                accepted, kept, following = seen[key]
                false[0] |= bool(accepted @ truth < Fraction(str(accept)) * int(accepted.sum()))
                false[1] |= bool(kept @ truth < Fraction(str(recall)) * int(truth.sum()))
                if following is None:
                    break
                looked.append(following)
            for number, wrong in enumerate((*false, any(false))):
                chances[number] += chance * wrong
        worst = [max(pair) for pair in zip(worst, chances, strict=True)]
    return worst[0], worst[1], worst[2]


def all_draws(size, known, block, top, bottom):
    """Rows of the block, of the first draw and of the second, with their probability."""
    for fresh, one in subsets(range(block[0] if block else 0), known, block[1] if block else 0):
        for first, two in subsets(range(top[0]), {*known, *fresh}, top[1]):
            for second, three in subsets(range(size - bottom[0], size), {*known, *fresh, *first}, bottom[1]):
                yield fresh, first, second, one * two * three


def subsets(rows, known, drawn):
    free = [row for row in rows if row not in known]
    drawn = min(drawn, len(free))
    for each in itertools.combinations(free, drawn):
        yield each, Fraction(1, comb(len(free), drawn))


MORE = ("a census above", "ties", "known ones are qualified at best", "a sequence and both draws")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.exhaustive) if each in MORE else each for each in WORLDS]
)
def test_over_every_labelling_and_draw_each_promise_is_false_at_most_half_of_alpha(name):
    precision, recall, either = levels(name)
    alpha = Fraction(str(WORLDS[name][3]))
    assert precision <= alpha / 2
    assert recall <= alpha / 2
    assert either <= alpha


def population(size: int, seed: int, slope: float = 3.0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=size)
    return scores, rng.random(size) < 1 / (1 + np.exp(5.0 - slope * scores))


def finished(scores, truth, labels, *, accept=0.8, recall=0.8, alpha=0.1, batch=200) -> sl.Labelling:
    work = sl.Labelling(scores, sl.Triage(accept, reject_recall=recall), alpha=alpha, labels=labels)
    while len(rows := work.ask()):
        rows = rows[:batch]
        work.tell(rows, truth[rows])
    return work


def reread(policy, folder) -> sl.Policy:
    policy.save(folder / "policy.json")
    return sl.Policy.load(folder / "policy.json")


def to_the_band(work, truth) -> None:
    """All that was drawn is told; what is left is what people look at."""
    for _ in range(6):
        if "The band:" in work.describe():
            return
        rows = work.ask()
        work.tell(rows, truth[rows])
    raise AssertionError("there is no band")


@pytest.mark.slow
def test_a_person_goes_on_in_the_band_until_the_rest_may_be_accepted(tmp_path):
    scores, truth = population(6_000, 1)
    work = sl.Labelling(scores, sl.Triage(0.8, reject_recall=0.8), labels=900)
    to_the_band(work, truth)
    assert "Left: " in work.describe()
    assert len(work.told) <= 900
    rows = work.ask()
    assert (np.diff(scores[rows]) >= 0).all()  # from the lower end
    work.save(tmp_path / "work.json")
    work = sl.Labelling.load(tmp_path / "work.json")
    while len(rows := work.ask(25)):
        work.tell(rows, truth[rows])
    lists = work.triage(scores)
    accepted = work.select(scores)
    assert set(lists) == {"accept", "reject"}
    assert (accepted == (lists == "accept")).all()
    assert truth[accepted].mean() >= 0.8
    assert truth[accepted].sum() >= 0.8 * truth.sum()
    assert work.listed == accepted.sum()
    assert "hold at least 80% of all qualified" in work.policy.promise
    policy = reread(work.policy, tmp_path)
    assert policy.promise == work.policy.promise
    work.save(tmp_path / "work.json")
    assert sl.Labelling.load(tmp_path / "work.json").describe() == work.describe()


def test_closing_the_band_leaves_the_rest_to_people():
    scores, truth = population(3_000, 2)
    work = sl.Labelling(scores, sl.Triage(0.9, reject_recall=0.8), labels=500)
    to_the_band(work, truth)
    rows = work.ask()
    assert work.close() == len(rows)
    lists = work.triage(scores)
    assert (lists[rows] == "look").all()
    assert f"{len(rows):,} whom people still look at" in work.policy.promise
    accepted = lists == "accept"
    assert truth[accepted].sum() + truth[rows].sum() >= 0.8 * truth.sum()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("labels", [1, 2, 5, 50])
def test_tiny_collections_tell_the_truth(size, rate, labels, tmp_path):
    rng = np.random.default_rng(int(1000 * rate) + size)
    for scores in (np.arange(size) / 2.0, np.zeros(size)):
        truth = rng.random(size) < rate
        work = finished(scores, truth, labels)
        accepted = work.select(scores)
        assert truth[accepted].sum() >= 0.8 * max(
            truth.sum(), accepted.sum()
        )  # nothing unseen was left to chance
        assert reread(work.policy, tmp_path).promise == work.policy.promise
        if not accepted.any():
            assert work.policy.promise.startswith("None of these ")


def test_what_has_no_proof_is_refused():
    scores, truth = population(500, 3)
    with pytest.raises(sl.InvalidInput, match="reject_recall"):
        sl.Labelling(scores, sl.Triage(0.8, reject=0.8), labels=100)
    with pytest.raises(sl.InvalidInput, match="at most 200,000"):
        sl.Labelling(np.arange(200_001), sl.Triage(0.8, reject_recall=0.8), labels=100)
    other = sl.Labelling(scores, sl.Precision(0.8), labels=500)
    other.tell(other.ask(), truth[other.ask()])
    with pytest.raises(sl.InvalidInput, match="one list"):
        other.triage(scores)


def test_each_group_has_lists_of_its_own_at_its_share_of_alpha(tmp_path):
    scores, truth = population(2_000, 4)
    names = np.where(np.arange(len(scores)) % 3, "a", "b")
    target = sl.Triage(0.8, reject_recall=0.8)
    work = sl.Labelling(scores, target, alpha=0.2, labels=500, groups=names, purpose="a test")
    while len(rows := work.ask(100)):
        work.tell(rows, truth[rows])
    lists = work.triage(scores, names)
    for name in "ab":
        own = names == name
        accepted, kept = own & (lists == "accept"), own & (lists != "reject")
        assert truth[accepted].mean() >= 0.8
        assert truth[kept].sum() >= 0.8 * truth[own].sum()
    assert [cutoff.level.alpha for cutoff in work.policy.cutoffs] == [0.1, 0.1]
    halves = [design.level for design in work._state.designs if isinstance(design, TriageDesign)]
    assert halves == [Fraction(1, 20)] * 2
    assert "together are wrong with probability at most 20%" in work.policy.promise
    policy = reread(work.policy, tmp_path)
    assert policy.promise == work.policy.promise
    with pytest.raises(sl.InvalidInput, match="labelled collection"):
        policy.triage(scores)
    with pytest.raises(sl.InvalidInput, match="labelled collection"):
        sl.select_table(pl.DataFrame({"score": scores, "group": names}), policy, score="score", group="group")
    work.save(tmp_path / "work.json")
    assert (sl.Labelling.load(tmp_path / "work.json").triage(scores, names) == lists).all()


def test_a_table_with_a_column_of_the_name_that_the_lists_get_is_refused_before_anybody_labels(tmp_path):
    (tmp_path / "t.csv").write_text("score,Triage\n" + "".join(f"{row / 300},x\n" for row in range(300)))
    target = sl.Triage(0.6, reject_recall=0.6)
    with pytest.raises(sl.InvalidInput, match="'Triage': the table has one already"):
        sl.label_table(tmp_path / "t.csv", target, score="score", labels=100)
    assert len(sl.label_table(tmp_path / "t.csv", sl.AtLeast(20), score="score", labels=100).ask())
