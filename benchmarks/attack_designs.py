"""The worst cases of ``attack.py``: for each set of conditions a population that is made against it.

A design is a function of a generator of random numbers that returns another one: each call of that one draws rows,
asks for a promise through the public interface, and says whether a false one was made. Truths are worked out from the
law that rows were drawn from, never estimated. What recurs:

- *a hair*: the list of the best falls short of what is promised by a billionth, so that a promise is false exactly
  where nobody else is listed, and the rule spends all its alpha there;
- *one atom*: all scores are tied, and the hash of ids alone decides;
- *tops apart*: one score's best are the other's last, so that errors of several scores exclude one another;
- labels, ratios and missing scores that depend on the outcome, as far as the conditions allow it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import surelist as sl

ALPHA = 0.2
HAIR = 1 + 1e-9
HASHES = 16**13
WITHIN = 1.5

Run = Callable[[], float]
Rng = np.random.Generator


def part_listed(policy: Any, scores: Any, member: Any = None) -> Any:
    """The share of each type of candidate on the list: a part of those at a threshold that a hash splits."""
    on = np.zeros(len(scores))
    for cutoff in policy.cutoffs:
        step = cutoff.steps[0]
        tied = 1.0 if step.tie_break is None else 1 - step.tie_break / HASHES
        mine = np.where(scores > step.threshold, 1.0, np.where(scores == step.threshold, tied, 0.0))
        own = policy.group_cutoff is None and cutoff.group is not None
        on = np.maximum(on, mine * member[cutoff.group] if own else mine)
    return on


def hardest(rate: float, alpha: float, fewest: int, most: int) -> int:
    """The number of rows for which the exact rule comes nearest to its alpha."""
    tails = {
        n: sl.bounds.binomial_tail(n, rate, sl.bounds.critical_count(n, rate, alpha))
        for n in range(fewest, most)
    }
    return max(tails, key=tails.__getitem__)


def drawn(rng: Rng, chance: Any, rows: int) -> Any:
    return rng.choice(len(chance), rows, p=np.asarray(chance) / np.sum(chance))


def asked(*args: Any, **options: Any) -> Any:
    """The policy; None where nothing is promised."""
    try:
        return sl.calibrate(*args, alpha=ALPHA, **options)
    except sl.NotCertifiable:
        return None


# ---------------------------------------------------------------- the sets that were drawn


def expected_after_looking(rng: Rng) -> Run:
    """dkw, overlapping groups, hash: one group holds the other; nearly all are qualified; each target is the one at which
    the rows flatter the list most, as somebody would choose it who knows the truth."""
    rows, rate = 80, 0.95

    def run() -> float:
        scores, good = rng.random(rows), rng.random(rows) < rate
        part = {"x": np.ones(rows, dtype=bool), "y": rng.random(rows) < 0.5}
        targets = {}
        for name, mask in part.items():
            best = np.sort(scores[good & mask])[::-1]
            margin = math.sqrt(math.log(2 / (ALPHA / 2)) / (2 * mask.sum()))
            share = np.arange(1, len(best) + 1) / mask.sum()
            share[share <= margin] = -math.inf
            at = int(np.argmax(share - rate * (1 - best)))
            targets[name] = sl.Expected(100 * (share[at] - margin) / HAIR, 100)
        policy = asked(
            scores, good, targets, rule="dkw", ties=sl.Hash(np.arange(rows)), groups=sl.Groups(part, "attack"),
        )  # fmt: skip
        if policy is None:
            return 0.0
        cut = {each.group: each.steps[0].threshold for each in policy.cutoffs}
        held = {"x": rate * (1 - (cut["x"] + min(cut.values())) / 2), "y": rate * (1 - min(cut.values()))}
        return float(any(100 * held[name] < each.k for name, each in targets.items()))

    return run


def within_types() -> tuple[Any, ...]:
    """Groups x and y; score, label and group of each type, chance among rows, ratio, and the worst pools within the factor."""
    score = np.array([1, 1, 0, 0, 1, 1, 0, 0.0])
    good = np.array([1, 0, 1, 0, 1, 0, 1, 0], dtype=bool)
    x = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    rows = np.array([0.2, 0.1, 0.1, 0.15, 0.2, 0.05, 0.1, 0.1])
    ratio = np.where(good, 0.7, 1.3)
    ratio /= (rows * ratio).sum()
    return score, good, x, rows, ratio


def expected_common_within(rng: Rng) -> Run:
    """within, groups of all rows, one cutoff, hash, pools: pools at the bound for group x, to whom little else is promised."""
    score, good, x, rows, ratio = within_types()
    best = good & x & (score == 1)
    pool = rows * ratio * np.where(best, 1.0, WITHIN**2)
    pool /= pool.sum()
    targets = {
        "x": sl.Expected(100 * pool[best].sum() * HAIR, 100),
        "y": sl.Expected(0.5, 100),
        "everyone": sl.Expected(1, 100),
    }
    bound = float(ratio.max())

    def run() -> float:
        at = drawn(rng, rows, 150)
        policy = asked(
            score[at], good[at], targets, groups=sl.Groups(np.where(x[at], "x", "y"), rows="all", cutoff="common"),
            ties=sl.Hash(np.arange(150)), shift=sl.DensityRatio(ratio[at], bound, exact=True, within=WITHIN),
            pools=np.arange(150) // 7,
        )  # fmt: skip
        if policy is None:
            return 0.0
        on = part_listed(policy, score)
        held = {
            "x": pool[good & x] @ on[good & x],
            "y": pool[good & ~x] @ on[good & ~x],
            "everyone": pool[good] @ on[good],
        }
        return float(any(100 * held[name] < each.k for name, each in targets.items()))

    return run


def expected_best_of_common_within(rng: Rng) -> Run:
    """missing, within, overlapping groups, one cutoff, hash, two scores: tops apart, each score fails another group."""
    # type: a, b, good, x, y; the tops of a and b hold few of x and of y
    table = [
        (1, 0, 1, 1, 1, 0.14), (1, 0, 0, 1, 1, 0.1), (0, 1, 1, 1, 1, 0.14), (0, 1, 0, 1, 1, 0.1),
        (1, 0, 1, 0, 1, 0.06), (0, 1, 1, 1, 0, 0.06), (0, 0, 1, 1, 1, 0.1), (0, 0, 0, 1, 1, 0.3),
    ]  # fmt: skip
    a, b, good, x, y, rows = (np.array(column, dtype=float) for column in zip(*table, strict=True))
    good, x, y = good > 0, x > 0, y > 0
    ratio = np.where(good, 0.8, 1.2)
    ratio /= (rows * ratio).sum()
    pool = rows * ratio * np.where(good & (a + b > 0), 1.0, WITHIN**2)
    pool /= pool.sum()
    members = {"x": x, "y": y}

    def rate(on: Any, mask: Any) -> float:
        return float((pool * on * good)[mask].sum() / pool[mask].sum())

    targets = {"x": sl.Expected(100 * rate(a, x) * HAIR, 100), "y": sl.Expected(100 * rate(b, y) * HAIR, 100)}

    def run() -> float:
        at = drawn(rng, rows, 250)
        lost = rng.random(250) < np.where(good[at], np.where(a[at] + b[at] > 0, 0.0, 0.5), 0.6)
        policy = asked(
            {"a": a[at], "b": b[at]}, np.where(lost, np.nan, good[at]), targets, missing_labels="unqualified",
            groups=sl.Groups({"x": x[at], "y": y[at]}, cutoff="common"), ties=sl.Hash(np.arange(250)),
            shift=sl.DensityRatio(ratio[at], float(ratio.max()), exact=True, within=WITHIN),
        )  # fmt: skip
        if policy is None:
            return 0.0
        on = part_listed(policy, a if policy.choice.chosen == "a" else b)
        return float(any(100 * rate(on, members[name]) < each.k for name, each in targets.items()))

    return run


def three_promises_of_two_scores(rng: Rng) -> Run:
    """missing, known shift, unlabelled, two scores, three promises: the pool that is judged is among the unlabelled ones.

    Qualified ones are twice as likely in the pools; both scores have the same top and rank it independently.
    """
    share, top, rows, m, cut = 0.5, 0.4, 150, 30, 0.6
    other = (1 - 2 * share * top) / (1 - share * top)  # the ratio of who is not qualified
    law = np.array([share * top, (1 - share) * top, 1 - top])
    pools = law * [2, other, other]
    targets = [sl.Expected(100 * cut * pools[0] * HAIR, 100), sl.PerPool(4, m), sl.Precision(0.4, start=0.1)]

    def people(chance: Any, count: int) -> tuple[Any, dict[str, Any]]:
        kind = drawn(rng, chance, count)
        return kind, {
            name: np.where(kind < 2, 1 - top * rng.random(count), (1 - top) * rng.random(count))
            for name in "ab"
        }

    def run() -> float:
        kind, scores = people(law, rows)
        mine, others = people(pools, 300)
        lost = (kind > 0) & (rng.random(rows) < 0.5)
        policy = asked(
            scores, np.where(lost, np.nan, kind == 0), targets, missing_labels="unqualified", unlabelled=others,
            shift=sl.DensityRatio(np.where(kind == 0, 2.0, other), 2.0, exact=True), pools=np.arange(rows) // 5,
        )  # fmt: skip
        if policy is None:
            return 0.0
        on = others[policy.choice.chosen][:m] >= policy.threshold
        return float(policy.threshold > 1 - cut * top or (on & (mine[:m] == 0)).sum() < 4)

    return run


def expected_dropped(rng: Rng) -> Run:
    """missing, groups of all rows, hash, dropped rows: one atom; who has no score is qualified; both groups at a hair."""
    rate, rows = 0.2, hardest(0.1, ALPHA / 2, 60, 110)
    targets = {name: sl.Expected(10 * HAIR, 100) for name in "xy"}  # half of the qualified of each group

    def run() -> float:
        kind = drawn(rng, [rate, rate, 1 - 2 * rate], rows)
        lost = (kind == 2) & (rng.random(rows) < 0.7)
        blank = rng.permutation(rows + 9) >= rows
        score, label, group = np.full(rows + 9, np.nan), np.ones(rows + 9), np.full(rows + 9, "x")
        score[~blank], label[~blank] = 0.0, np.where(lost, np.nan, kind < 2)
        group[~blank] = np.where(kind == 1, "y", "x")
        table = pl.DataFrame(
            {"score": score, "label": label, "group": group, "id": np.arange(rows + 9)}
        ).fill_nan(None)
        try:
            policy = sl.calibrate_table(
                table, score="score", label="label", target=targets, alpha=ALPHA, missing_labels="unqualified",
                groups=sl.Groups("group", "attack", rows="all"), ties=sl.Hash("id"), on_bad_rows="drop",
            )  # fmt: skip
        except sl.NotCertifiable:
            return 0.0
        return float(any(rate * (1 - each.steps[0].tie_break / HASHES) < 0.1 for each in policy.cutoffs))

    return run


def audited_campaign(rng: Rng) -> Run:
    """An audited campaign with missing reviews: only the qualified are ever reviewed; the top is a hair short."""
    score, good, chance = np.array([2.0, 2, 1, 1]), np.array([1, 0, 1, 0], dtype=bool), [0.15, 0.15, 0.2, 0.5]
    target = sl.Expected(15 * HAIR, 100)

    def run() -> float:
        at = drawn(rng, chance, 50)
        work = sl.Campaign(
            score[at], np.where(good[at] | (rng.random(50) < 0.3), good[at], np.nan), target, alpha=ALPHA,
            schedule=(1, 2, 3, 4), uncertified="everyone", missing_labels="unqualified", audit_rate=0.5,
        )  # fmt: skip
        for pool in "pqrs":
            at = drawn(rng, chance, 30)
            on = set(np.flatnonzero(work.screen(score[at], pool=pool)).tolist()) | {
                int(row) for row in work.audit(pool)
            }
            seen = sorted(row for row in on if good[at[row]])
            work.review(pool, np.ones(len(seen)), ids=[str(row) for row in seen])
            work.close(pool)
            if work.alarm:
                break
            work.update()
        return float(any(each.threshold is not None and each.threshold > 1 for each in work.updates))

    return run


def expected_noisy(rng: Rng) -> Run:
    """Wrong labels, unlabelled scores: everyone on a list nearly as long as allowed who is not qualified is called so
    as often as the bound has it, and no qualified one is lost."""
    wrong, longest, others = 0.1, 0.3, 2_000
    top = longest - 3 * math.sqrt(longest * (1 - longest) / others)
    held = 0.1
    target = sl.Expected(100 * held * HAIR, 100)
    seen = held + wrong * (top - held)  # labelled qualified, at the top
    rows = hardest((1 - wrong) * held + wrong * longest, ALPHA * 19 / 20, 100, 160)

    def run() -> float:
        scores = rng.random(rows)
        labels = rng.random(rows) < np.where(scores >= 1 - top, seen / top, 0.0)
        noisy = sl.NoisyLabels(labels, wrong, 0.3, longest=longest)
        policy = asked(np.where(scores >= 1 - top, 1.0, scores), noisy, target, unlabelled=np.where(
            (more := rng.random(others)) >= 1 - top, 1.0, more
        ))  # fmt: skip
        return float(policy is not None and policy.threshold == 1)

    return run


def per_pool_pac(rng: Rng) -> Run:
    """pac, groups, hash, two scores: one atom by both, so that four lists err independently and the shortest is kept."""
    k, m, good = 2, 30, 0.5
    each = ALPHA / 4  # of a group and a score; half of it for the rows, half for the pool
    rate = sl.bounds.pac_rate(k, m, each / 2)
    rows = hardest(rate, each / 2, 60, 110)
    names = np.repeat(["x", "y"], rows)
    targets = {name: sl.PerPool(k, m) for name in "xy"}

    def run() -> float:
        labels = rng.random(2 * rows) < good
        policy = asked(
            {"a": np.zeros(2 * rows), "b": np.zeros(2 * rows)}, labels, targets, rule="pac",
            groups=sl.Groups(names, "attack"), ties=sl.Hash(np.arange(2 * rows)),
        )  # fmt: skip
        if policy is None:
            return 0.0
        return float(any(good * (1 - cut.steps[0].tie_break / HASHES) < rate for cut in policy.cutoffs))

    return run


def four_promises(rng: Rng) -> Run:
    """Known shift, unlabelled, four promises of one list: the pool that is judged is among the unlabelled scores;
    count and recall have one boundary, which the single pool's lies around."""
    top, share, m = 0.25, 0.8, 40
    law = np.array(
        [share * top, (1 - share) * top, 0.1 * (1 - top), 0.9 * (1 - top)]
    )  # qualified or not, top or below
    ratio = np.array([0.5, 0.5, 2.0, 0.0])
    ratio[3] = (1 - law[:3] @ ratio[:3]) / law[3]
    pools = law * ratio
    cut = 0.6  # of the top: a list of it has what is promised by a hair
    targets = [
        sl.PerPool(2, m), sl.Expected(100 * cut * pools[0] * HAIR, 100),
        sl.Recall(cut * pools[0] / (pools[0] + pools[2]) * HAIR), sl.Precision(0.5, start=0.05),
    ]  # fmt: skip

    def people(chance: Any, count: int) -> tuple[Any, Any]:
        kind = drawn(rng, chance, count)
        return kind, np.where(kind < 2, 1 - top * rng.random(count), (1 - top) * rng.random(count))

    def run() -> float:
        kind, scores = people(law, 400)
        mine, pool = people(pools, m)
        policy = asked(
            scores, kind % 2 == 0, targets, shift=sl.DensityRatio(ratio[kind], float(ratio.max()), exact=True),
            unlabelled=np.concatenate([pool, people(pools, 500)[1]]),
        )  # fmt: skip
        if policy is None:
            return 0.0
        short = ((mine % 2 == 0) & policy.select(pool)).sum() < 2
        return float(short or policy.threshold > 1 - cut * top)

    return run


def labelled_per_pool(rng: Rng) -> Run:
    """A labelling with labels that never come (those of the unqualified), for single pools; scores say nothing."""
    k, m = 2, 12

    def run() -> float:
        scores, good = rng.random(120 + m), rng.random(120 + m) < 0.5
        work = sl.Labelling(scores[:120], sl.PerPool(k, m), labels=50, alpha=ALPHA)
        while len(rows := work.ask()):
            work.tell(rows, np.where(good[rows] | (rng.random(len(rows)) < 0.5), good[rows], np.nan))
        try:
            on = work.policy.select(scores[120:])
        except sl.NotCertifiable:
            return 0.0
        return float((on & good[120:]).sum() < k)

    return run


def recall_thinned(rng: Rng) -> Run:
    """Drawn labels, overlapping groups, one cutoff, hash: drawn by outcome; one atom; a small group beside everyone."""
    share = 0.7
    targets = {"x": sl.Recall(share), "y": sl.Recall(0.05)}

    def run() -> float:
        good = rng.random(120) < 0.6
        rate = np.where(good, 0.5, 1.0)
        labels = np.where(rng.random(120) < rate, good, np.nan)
        part = {"x": np.ones(120, dtype=bool), "y": rng.random(120) < 0.4}
        policy = asked(
            np.zeros(120), sl.SampledLabels(labels, probability=rate, lowest_rate=0.5), targets,
            groups=sl.Groups(part, cutoff="common"), ties=sl.Hash(np.arange(120)),
        )  # fmt: skip
        return float(policy is not None and part_listed(policy, np.zeros(1))[0] < share)

    return run


def recall_shifted(rng: Rng) -> Run:
    """Known shift, groups, hash, two scores, pools: ratios by outcome; half of the qualified are last by either score."""
    law, ratio = (
        np.array([0.15, 0.3, 0.55]),
        np.array([2.0, 1.0, 0.0]),
    )  # qualified: first by a, first by b; the others
    ratio[2] = (1 - law[:2] @ ratio[:2]) / law[2]
    a, b = np.array([1.0, 0, 0]), np.array([0, 1.0, 1])
    targets = {name: sl.Recall(0.5 * HAIR) for name in "xy"}
    names = np.tile(["x", "y"], 60)

    def run() -> float:
        kind = drawn(rng, law, 120)
        policy = asked(
            {"a": a[kind], "b": b[kind]}, kind < 2, targets, groups=sl.Groups(names, "attack"),
            ties=sl.Hash(np.arange(120)), pools=np.arange(120) // 6,
            shift=sl.DensityRatio(ratio[kind], 2.0, exact=True),
        )  # fmt: skip
        return float(policy is not None and any(each.steps[0].threshold == 1 for each in policy.cutoffs))

    return run


def labelled(work: Any, good: Any, *, missing: Any = None, folder: str | None = None) -> Any:
    """Labels until nothing is asked, in two parts; ``missing`` never come, and between the parts it is read from a file."""
    while len(rows := work.ask()):
        for number, part in enumerate(np.array_split(rows, 2)):
            lost = np.zeros(len(part), dtype=bool) if missing is None else missing[part]
            work.tell(part, np.where(lost, np.nan, good[part]))
            if folder is not None and number == 0:
                path = Path(folder) / "work.json"
                work.save(path)
                work = sl.Labelling.load(path)
                path.unlink()
    return work


def labelled_recall(rng: Rng) -> Run:
    """A labelling for recall in two groups, by two draws: nine qualified of 250 each, half of them at the very bottom."""
    share, names = 0.9, np.repeat(["x", "y"], 250)

    def run() -> float:
        scores, good = np.tile(np.arange(250.0), 2), np.zeros(500, dtype=bool)
        for start in (0, 250):
            good[start : start + 4] = True
            good[start + 4 + rng.choice(246, 5, replace=False)] = True
        work = labelled(
            sl.Labelling(scores, sl.Recall(share), labels=210, groups=names, purpose="attack", alpha=ALPHA),
            good,
        )
        try:
            on = work.select(scores, groups=names)
        except sl.NotCertifiable:
            return 0.0
        return float(any((on & good)[names == each].sum() < share * 9 for each in "xy"))

    return run


def precision_missing(rng: Rng) -> Run:
    """Missing labels, unlabelled scores: every list is short of the precision by a hair; the unqualified go unlabelled."""
    share = 0.6

    def run() -> float:
        good = rng.random(90) < share
        lost = ~good & (rng.random(90) < 0.8)
        policy = asked(
            rng.random(90), np.where(lost, np.nan, good), sl.Precision(share * HAIR, start=0.3),
            unlabelled=rng.random(300), missing_labels="unqualified",
        )  # fmt: skip
        return float(policy is not None)

    return run


def labelled_precision(rng: Rng) -> Run:
    """A labelling for precision in groups, with labels that never come: nearly everyone qualifies down to a cliff, nobody
    beyond; it is the unqualified who go unlabelled; whole scores, some tied."""
    share, names = 0.6, np.repeat(["x", "y"], 400)
    scores = np.tile(np.arange(400)[::-1] // 3.0, 2)

    def run() -> float:
        good = rng.random(800) < np.tile(np.where(np.arange(400) < 120, 0.97, 0.0), 2)
        work = labelled(
            sl.Labelling(scores, sl.Precision(share), labels=200, groups=names, purpose="attack", alpha=ALPHA), good,
            missing=~good & (rng.random(800) < 0.3),
        )  # fmt: skip
        on = work.select(scores, groups=names)
        parts = [on & (names == each) for each in "xy"]
        return float(any((part & good).sum() < share * part.sum() for part in parts))

    return run


def triage_thinned(rng: Rng) -> Run:
    """Drawn labels, three ways: rejecting passes all its lists and hands its half of alpha over; accepting is short by a
    hair at every list; labels are drawn by outcome and side."""
    share = 0.7

    def run() -> float:
        scores = rng.random(240)
        good = rng.random(240) < np.where(scores >= 0.5, share, 0.02)
        rate = np.where(good == (scores >= 0.5), 0.5, 0.9)
        labels = np.where(rng.random(240) < rate, good, np.nan)
        policy = asked(
            scores, sl.SampledLabels(labels, probability=rate, lowest_rate=0.5), sl.Triage(share * HAIR, reject=share),
            unlabelled=(np.arange(400) + 0.5) / 400,
        )  # fmt: skip
        return float(policy is not None)

    return run


def budget_shifted(rng: Rng) -> Run:
    """Known shift, unlabelled scores: few values, so that the list is shorter than the budget; ratios by outcome."""
    score = np.array([3.0, 3, 2, 2, 1, 1])
    good = np.array([1, 0, 1, 0, 1, 0], dtype=bool)
    law, ratio = np.array([0.1, 0.1, 0.1, 0.2, 0.1, 0.4]), np.array([0.5, 1.5, 0.5, 1.5, 0.5, 0.0])
    ratio[5] = (1 - law[:5] @ ratio[:5]) / law[5]
    pools = law * ratio

    def run() -> float:
        at = drawn(rng, law, 120)
        policy = asked(
            score[at], good[at], sl.Budget(22, 100), unlabelled=score[drawn(rng, pools, 60)],
            shift=sl.DensityRatio(ratio[at], 1.5, exact=True),
        )  # fmt: skip
        if policy is None:
            return 0.0
        cut = policy.cutoffs[0]
        return float(cut.proof.k > 100 * pools[good & (score >= cut.steps[0].threshold)].sum())

    return run


def next_pool_common(rng: Rng) -> Run:
    """pac, missing, groups, one cutoff, two scores: pools of 2 to 40, scores shared by a pool, one score's best pools
    the other's worst; what a group reaches has nothing to do with what the other does."""
    types, count = 300, 60
    law = np.random.default_rng(5)
    size = law.permutation(np.concatenate([np.full(200, 2), law.integers(2, 41, types - 200)]))
    level = law.permutation(types).astype(float)
    # of each type: where groups x and y reach one qualified candidate, by either score
    reach = {"a": level + law.random((2, types)) * 50, "b": types - level + law.random((2, types)) * 50}
    targets = {"x": sl.NextPool(k=1), "y": sl.NextPool(k=1)}

    def run() -> float:
        at = rng.integers(0, types, count)
        pools = np.repeat(np.arange(count), size[at])
        first = np.r_[0, np.cumsum(size[at])[:-1]]
        scores = {name: rng.random(len(pools)) - 60 for name in "ab"}
        labels = np.where(rng.random(len(pools)) < 0.5, np.nan, 0.0)
        group = np.where(rng.random(len(pools)) < 0.5, "x", "y")
        for number, name in enumerate("xy"):  # the first two of each pool are its qualified ones
            labels[first + number], group[first + number] = 1.0, name
            for score, reached in reach.items():
                scores[score][first + number] = reached[number, at]
        policy = asked(
            scores, labels, targets, rule="pac", groups=sl.Groups(group, cutoff="common"), pools=pools,
            missing_labels="unqualified",
        )  # fmt: skip
        if policy is None:
            return 0.0
        short = (reach[policy.choice.chosen] < policy.threshold).any(axis=0).mean()
        return float(short > policy.cutoffs[0].level.pool_alpha + 1e-12)

    return run


def pool_average_dropped(rng: Rng) -> Run:
    """Missing, dropped rows: the top of most pools holds nobody, of few pools many; some pools have no score at all."""
    rare, many, count = 0.15, 6, 40
    target = sl.PoolAverage(rare * many * HAIR)

    def run() -> float:
        kind = drawn(rng, [rare, 0.05, 0.8], count)  # many at the top, no score, one below
        rows = [(pool, 1.0 if k == 0 else None if k == 1 else 0.0, 1.0) for pool, k in enumerate(kind.tolist()) for _ in range(
            many if k == 0 else 2
        )]  # fmt: skip
        rows += [(pool, 0.5, None) for pool in range(count) if kind[pool] != 1]
        table = pl.DataFrame(rows, schema=["pool", "score", "label"], orient="row")
        try:
            policy = sl.calibrate_table(
                table, score="score", label="label", pool="pool", target=target, alpha=ALPHA, on_bad_rows="drop",
                missing_labels="unqualified",
            )  # fmt: skip
        except sl.NotCertifiable:
            return 0.0
        return float(policy.threshold > 0)

    return run


def value_missing(rng: Rng) -> Run:
    """Missing, two scores, pools: rare large amounts; tops apart; who has no amount is worth nothing at the top."""
    amounts, chance = np.array([0.0, 1, 10]), np.array([0.6, 0.38, 0.02])
    mean = 0.4 * amounts @ chance
    target = sl.Value(100 * mean * HAIR, 100)

    def run() -> float:
        top = rng.integers(0, 5, 150)  # 0, 1: best by a; 2, 3: best by b
        worth = amounts[drawn(rng, chance, 150)]
        lost = (worth == 0) & (rng.random(150) < 0.5)
        policy = asked(
            {"a": (top < 2) * 1.0, "b": ((top == 2) | (top == 3)) * 1.0}, np.where(lost, np.nan, worth), target,
            missing_labels="unqualified", pools=np.arange(150) // 3,
        )  # fmt: skip
        return float(policy is not None and policy.threshold == 1)

    return run


def false_share(rng: Rng) -> Run:
    """Missing, the pool, pools: nobody is qualified, so that any list is wrong altogether."""

    def run() -> float:
        labels = np.where(rng.random(99) < 0.5, np.nan, 0.0)
        policy = asked(
            rng.random(99), labels, sl.FalseShare(ALPHA), unlabelled=rng.random(6), pools=np.arange(99) // 4,
            missing_labels="unqualified",
        )  # fmt: skip
        return float(policy is not None)

    return run


def this_list_missing(rng: Rng) -> Run:
    """Missing, the pool: the same share is qualified at every score, and the unqualified go unlabelled."""

    def run() -> float:
        scores, good = rng.random(130), rng.random(130) < 0.55
        lost = ~good & (rng.random(130) < 0.5)
        policy = asked(
            scores[:90], np.where(lost, np.nan, good)[:90], sl.ThisList(12), unlabelled=scores[90:],
            missing_labels="unqualified",
        )  # fmt: skip
        return float(
            policy is not None
            and (policy.select(scores[90:]) & good[90:]).sum() < policy.cutoffs[0].proof.held
        )

    return run


def labelled_at_least(rng: Rng) -> Run:
    """A labelling in groups, of this collection: one qualified less than promised at the top, the others at the bottom."""
    names, scores = np.repeat(["x", "y"], 60), np.tile(np.repeat([2.0, 1.0], 30), 2)

    def run() -> float:
        good = np.concatenate([rng.permutation(30) < 14, rng.permutation(30) < 14] * 2)
        work = labelled(
            sl.Labelling(scores, sl.AtLeast(15), labels=60, groups=names, purpose="attack", alpha=ALPHA), good
        )
        try:
            on = work.policy.select(scores, groups=names)
        except sl.NotCertifiable:
            return 0.0
        return float(any((on & good)[names == each].sum() < 15 for each in "xy"))

    return run


# ---------------------------------------------------------------- what is new, beside the sets that were drawn


def count_recall_and_pool(rng: Rng) -> Run:
    """[PerPool, Expected, Recall] without unlabelled scores, which share no alpha: one boundary for two, the third around it."""
    rate, cut, m, k = 0.5, 0.4, 25, 3

    def run() -> float:
        scores, good = rng.random(100), rng.random(100) < rate
        policy = asked(scores, good, [sl.PerPool(k, m), sl.Expected(100 * cut * rate, 100), sl.Recall(cut)])
        if policy is None:
            return 0.0
        found = rng.binomial(m, rate * (1 - policy.threshold))
        return float(found < k or policy.threshold > 1 - cut)

    return run


def triage_both(rng: Rng) -> Run:
    """Triage, complete labels, few scores: accepting is false from its second list on, rejecting from its second on."""
    score = np.array([4.0, 3, 2, 1])
    chance, good = (
        np.array([0.25, 0.25, 0.25, 0.25]),
        np.array([0.95, 0.45, 0.55, 0.05]),
    )  # both halves: 0.7 and 0.3

    def run() -> float:
        at = drawn(rng, chance, 160)
        policy = asked(
            score[at], rng.random(160) < good[at], sl.Triage(0.7 * HAIR, reject=0.7 * HAIR),
            unlabelled=np.tile(score, 40),
        )  # fmt: skip
        if policy is None:
            return 0.0
        lists = policy.triage(score)
        return float(lists[1] == "accept" or lists[2] == "reject")

    return run


def triage_recall(rng: Rng) -> Run:
    """Triage with a recall of those not rejected: neither side can go all the way, and each has its own boundary."""
    high, low = 0.9, 0.5  # qualified above and below 0.5
    accept, recall = 0.85, 0.8
    deepest = (0.5 * (high + low) - accept) / (low - accept)  # where a list has that precision
    rejected = (1 - recall) * 0.5 * (high + low) / low

    def run() -> float:
        scores = rng.random(200)
        good = rng.random(200) < np.where(scores >= 0.5, high, low)
        policy = asked(scores, good, sl.Triage(accept, reject_recall=recall), unlabelled=rng.random(300))
        if policy is None:
            return 0.0
        lists = policy.triage([deepest * (1 - 1e-9), rejected])
        return float(lists[0] == "accept" or lists[1] == "reject")

    return run


def list_curve_few(rng: Rng) -> Run:
    """list_curve, many more rows than candidates, scores of 30 values: any length, from below."""
    return _curve(rng, rows=400, pool=25, values=30)


def list_curve_many(rng: Rng) -> Run:
    """list_curve, many more candidates than rows, untied: any length, from below."""
    return _curve(rng, rows=40, pool=300, values=None)


def list_curve_at_most(rng: Rng) -> Run:
    """list_curve, rows and candidates of one size, drawn from an urn (exchangeable, not independent): from above."""
    return _curve(rng, rows=60, pool=60, values=None, above=True)


def _curve(rng: Rng, rows: int, pool: int, values: int | None, *, above: bool = False) -> Run:
    def run() -> float:
        scores = rng.random(rows + pool)
        good = rng.random(rows + pool) < 0.4
        if above:  # half of the urn is qualified
            good = rng.permutation(rows + pool) < (rows + pool) // 2
        scores = scores if values is None else np.floor(scores * values)
        curve = sl.list_curve(scores[:rows], good[:rows], scores[rows:], alpha=ALPHA)
        held = np.array([(good[rows:] & (scores[rows:] >= cut)).sum() for cut in curve.threshold])
        return float((held > curve.at_most).any() if above else (held < curve.at_least).any())

    return run


def this_list_share(rng: Rng) -> Run:
    """ThisList with a share: as many are qualified as make the yes or no hardest; the size fixed, the pool small."""

    def run() -> float:
        scores, good = rng.random(60 + 30), rng.random(90) < 0.72
        policy = asked(scores[:60], good[:60], sl.ThisList(8, share=0.75), unlabelled=scores[60:])
        return float(policy is not None and (policy.select(scores[60:]) & good[60:]).sum() < 6)

    return run


def mean_rank_of_two(rng: Rng) -> Run:
    """mean_rank of two columns, one the other upside down but for the top: the score depends on the other column."""
    rate, p0 = 0.5, 0.2
    rows = hardest(p0, ALPHA, 60, 110)

    def people(count: int) -> dict[str, Any]:
        a = rng.random(count)
        return {"a": a, "b": np.where(a > 0.6, a, 0.6 - a)}

    def run() -> float:
        ranks = sl.mean_rank(people(80))
        policy = asked(ranks(people(rows)), rng.random(rows) < rate, sl.Expected(100 * p0, 100))
        if policy is None:
            return 0.0
        a = (np.arange(4000) + 0.5) / 4000
        on = ranks({"a": a, "b": np.where(a > 0.6, a, 0.6 - a)}) >= policy.threshold
        return float(rate * on.mean() < p0)

    return run


def recall_in_two_draws(rng: Rng) -> Run:
    """Recall of a collection in two draws, read from a file after every part: nine qualified of 400, half at the bottom."""
    return _of_collection(
        rng, sl.Recall(0.9), 400, 120, lambda: np.r_[np.arange(4), 4 + rng.choice(396, 5, replace=False)]
    )


def precision_of_collection(rng: Rng) -> Run:
    """Precision of a collection, read from a file after every part: a cliff, whole scores, some tied."""
    return _of_collection(rng, sl.Precision(0.6), 300, 100, lambda: 299 - rng.choice(100, 95, replace=False))


def _of_collection(rng: Rng, target: Any, size: int, labels: int, chosen: Callable[[], Any]) -> Run:
    folder = tempfile.mkdtemp()

    def run() -> float:
        good = np.zeros(size, dtype=bool)
        good[chosen()] = True
        scores = np.arange(size) // (2.0 if isinstance(target, sl.Precision) else 1.0)
        work = labelled(sl.Labelling(scores, target, labels=labels, alpha=ALPHA), good, folder=folder)
        try:
            on = work.select(scores)
        except sl.NotCertifiable:
            return 0.0
        of = good if isinstance(target, sl.Recall) else on
        return float((on & good).sum() < target.share * of.sum())

    return run


def recall_noisy(rng: Rng) -> Run:
    """Wrong labels, recall: false positives as many as allowed and all at the top, the qualified lost at the bottom alone."""
    wrong, lost, share = 0.1, 0.2, 0.6

    def run() -> float:
        scores, good = rng.random(200), rng.random(200) < 0.5
        labels = np.where(good, rng.random(200) >= np.where(scores < 1 - share, lost, 0), rng.random(200) < np.where(
            scores > 0.5, wrong, 0
        ))  # fmt: skip
        policy = asked(scores, sl.NoisyLabels(labels, wrong, lost), sl.Recall(share))
        return float(policy is not None and policy.threshold > 1 - share)

    return run


def labels_at_two_rates(rng: Rng) -> Run:
    """Labels known above a score and audited below: the boundary lies below it, by a hair."""
    target = sl.Expected(20 * HAIR, 100)

    def run() -> float:
        kind = drawn(rng, [0.1, 0.1, 0.1, 0.1, 0.6], 150)
        scores, good = np.array([2.0, 2, 1, 1, 0])[kind], np.array([1, 0, 1, 0, 1], dtype=bool)[kind]
        labels = np.where((scores == 2) | (rng.random(150) < 0.5), good, np.nan)
        policy = asked(scores, sl.SampledLabels(labels, probability=0.5, above=2), target)
        return float(policy is not None and policy.threshold >= 1)

    return run


def campaign_late(rng: Rng) -> Run:
    """A campaign whose reviews come late and whose pools are of very different sizes: the top is a hair short."""
    score, good, chance = np.array([2.0, 2, 1, 1]), np.array([1, 0, 1, 0], dtype=bool), [0.15, 0.15, 0.2, 0.5]
    target = sl.Expected(15 * HAIR, 100)

    def run() -> float:
        at = drawn(rng, chance, 50)
        work = sl.Campaign(
            score[at], good[at], target, alpha=ALPHA, schedule=(1, 2, 3), uncertified="everyone"
        )
        late: list[tuple[str, Any]] = []
        for pool, size in (("p", 3), ("q", 90), ("r", 20)):
            at = drawn(rng, chance, size)
            on = work.screen(score[at], pool=pool)
            late.append((pool, good[at][on]))
            if len(late) > 1:
                work.review(*late[-2])
            if work.alarm:
                break
            if work.due:
                work.update()
        return float(any(each.threshold is not None and each.threshold > 1 for each in work.updates))

    return run
