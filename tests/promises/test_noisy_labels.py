"""Labels that may be wrong: the level by every outcome of small worlds, and what is refused."""

from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.bounds.sampled import edge_rank, labelled_rate, spent
from surelist.examples import population
from surelist.promises import policy_file
from surelist.promises.grammar import drawn_labels

SCORES = np.array([3.0, 2.0, 1.0])


def outcomes(total, cells):
    """Every way in which ``total`` rows fall into cells of these probabilities, with its probability."""
    for counts in product(range(total + 1), repeat=len(cells) - 1):
        rest = total - sum(counts)
        if rest >= 0:
            every = (*counts, rest)
            ways = factorial(total) // prod(map(factorial, every))
            yield every, ways * prod(p**n for p, n in zip(cells, every, strict=True))


class World:
    """Three scores; at each a share of candidates, a chance to be qualified, and labels as wrong as allowed."""

    def __init__(self, shares, qualified, added, lost):
        self.shares, self.qualified = np.array(shares), np.array(qualified)
        labelled = self.qualified * (1 - lost) + (1 - self.qualified) * added
        # labelled qualified at each score, then not labelled so at each
        self.cells = [*(self.shares * labelled), *(self.shares * (1 - labelled))]

    def rows(self, counts):
        scores = np.repeat(np.tile(SCORES, 2), counts)
        return scores, np.repeat([1, 1, 1, 0, 0, 0], counts)

    def held(self, threshold):
        return float((self.shares * self.qualified)[threshold <= SCORES].sum())

    def kept(self, threshold):
        return self.held(threshold) / self.held(-np.inf)


def false_share(world, rows, ask, holds, others=((None, 1.0),)):
    """P(a promise is made and false), over every outcome of rows and unlabelled scores; P(made)."""
    false = made = 0.0
    for counts, chance in outcomes(rows, world.cells):
        scores, labels = world.rows(counts)
        for beside, more in others:
            try:
                policy = ask(scores, labels, beside)
            except sl.NotCertifiable:
                continue
            made += chance * more
            false += chance * more * (not holds(policy.threshold))
    return false, made


def every_edge(world, others, rank):
    """Unlabelled scores by what alone matters of them: which score their ``rank``-th best has."""
    reach = stats.binom.sf(rank - 1, others, np.cumsum(world.shares))
    return [
        (np.full(others, score), chance)
        for score, chance in zip(SCORES, np.diff(reach, prepend=0), strict=True)
    ]


RATES = [  # shares, qualified: the best score alone, or the best two, hold just less than 0.2
    ((0.3, 0.3, 0.4), (0.66, 0.3, 0.2)),
    ((0.2, 0.15, 0.65), (0.8, 0.26, 0.1)),
]


@pytest.mark.parametrize(("shares", "qualified"), RATES)
def test_a_count_is_false_at_most_alpha_of_the_time_with_labels_as_wrong_as_allowed(shares, qualified):
    world, alpha, longest = World(shares, qualified, 0.3, 0.0), 0.6, 0.45

    def ask(scores, labels, others):
        noisy = sl.NoisyLabels(labels, 0.3, 0.1, longest)
        return sl.calibrate(scores, noisy, sl.Expected(2, 10), alpha=alpha, unlabelled=others)

    others = every_edge(world, 60, edge_rank(60, longest, spent(alpha, 0.3)))
    assert sum(chance for _, chance in others) == pytest.approx(1)
    false, made = false_share(world, 6, ask, lambda t: world.held(t) >= 0.2, others)
    assert 0.1 < false <= alpha
    assert false <= made


def test_a_count_that_ignores_wrong_labels_is_false_more_often():
    world = World((0.5, 0.2, 0.3), (0.39, 0.6, 0.2), 0.3, 0.0)

    def ask(scores, labels, others):
        return sl.calibrate(scores, labels, sl.Expected(2, 10), alpha=0.35)

    false, _ = false_share(world, 6, ask, lambda t: world.held(t) >= 0.2)
    assert false > 0.35


SHARES = [  # the share kept by the best two scores is just below 0.6
    ((0.3, 0.2, 0.5), (0.5, 0.4, 0.32), 0.0, 0.3),
    ((0.3, 0.2, 0.5), (0.6, 0.6, 0.42), 0.1, 0.2),
]


@pytest.mark.parametrize(("shares", "qualified", "added", "lost"), SHARES)
def test_a_share_is_false_at_most_alpha_of_the_time_with_labels_as_wrong_as_allowed(
    shares, qualified, added, lost
):
    world, alpha = World(shares, qualified, added, lost), 0.6
    assert world.kept(2.0) < 0.6

    def ask(scores, labels, others):
        return sl.calibrate(scores, sl.NoisyLabels(labels, added, lost), sl.Recall(0.6), alpha=alpha)

    false, made = false_share(world, 7, ask, lambda t: world.kept(t) >= 0.6)
    assert 0.02 < false <= alpha
    assert false <= made


@pytest.mark.slow
def test_labels_lost_below_the_threshold_are_what_a_share_is_paid_for():
    """Those lost are the low scores': a rule that ignores them is false too often."""
    world = World((0.3, 0.2, 0.5), (0.5, 0.4, 0.32), 0.0, 0.0)
    labelled = world.qualified * np.array([1.0, 1.0, 0.1])
    world.cells = [*(world.shares * labelled), *(world.shares * (1 - labelled))]
    asked = {
        "as they are": lambda labels: labels,
        "may be wrong": lambda labels: sl.NoisyLabels(labels, 0.0, 0.9),
    }
    false = {}
    for name, given in asked.items():

        def ask(scores, labels, others, given=given):
            return sl.calibrate(scores, given(labels), sl.Recall(0.6), alpha=0.45)

        false[name], _ = false_share(world, 8, ask, lambda t: world.kept(t) >= 0.6)
    assert false["may be wrong"] <= 0.45 < false["as they are"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    scores, truth = population(rng, 2_000)
    others, _ = population(rng, 4_000)
    return scores, truth, others


def test_without_wrong_labels_it_is_the_exact_rule(rows):
    scores, truth, others = rows
    exact = sl.calibrate(scores, truth, sl.Expected(5, 100))
    noisy = sl.calibrate(
        scores, sl.NoisyLabels(truth, 0, 0.2, longest=0.3), sl.Expected(5, 100), unlabelled=others
    )
    assert noisy.threshold == exact.threshold
    assert sl.calibrate(scores, sl.NoisyLabels(truth, 0, 0), sl.Recall(0.8)).threshold == (
        sl.calibrate(scores, truth, sl.Recall(0.8)).threshold
    )


def test_gamma_is_paid(rows):
    scores, truth, others = rows
    noisy = sl.NoisyLabels(truth, 0.02, 0.0, 0.3)
    alpha = 0.08  # where it is one count
    cutoff = sl.calibrate(scores, noisy, sl.Expected(5, 100), alpha=alpha, unlabelled=others).cutoffs[0]
    rate = labelled_rate(0.05, 0.02, 0.3)
    assert cutoff.steps[0].critical_count == sl.bounds.critical_count(2_000, rate, alpha * 0.95)
    assert sl.bounds.critical_count(2_000, rate, alpha * 0.95) > sl.bounds.critical_count(2_000, rate, alpha)


def test_the_more_labels_may_be_wrong_the_longer_the_list(rows):
    scores, truth, others = rows
    ends = [
        sl.calibrate(scores, sl.NoisyLabels(truth, wrong, wrong, 0.3), sl.Expected(5, 100), unlabelled=others)
        for wrong in (0, 0.01, 0.02, 0.05)
    ]
    assert sorted({each.threshold for each in ends}, reverse=True) == [each.threshold for each in ends]
    kept = [
        sl.calibrate(scores, sl.NoisyLabels(truth, wrong, wrong), sl.Recall(0.8)).threshold
        for wrong in (0, 0.01, 0.02, 0.05)
    ]
    assert sorted(set(kept), reverse=True) == kept


def test_a_list_longer_than_the_longest_is_refused(rows):
    scores, truth, others = rows
    with pytest.raises(sl.NotCertifiable, match="at most 6% of candidates"):
        sl.calibrate(scores, sl.NoisyLabels(truth, 0.02, 0.0, 0.06), sl.Expected(5, 100), unlabelled=others)
    with pytest.raises(sl.NotCertifiable, match="unlabelled scores are too few"):
        sl.calibrate(
            scores, sl.NoisyLabels(truth, 0.02, 0.0, 0.3), sl.Expected(5, 100), unlabelled=others[:10]
        )


@pytest.mark.parametrize("kind", ["rate", "share"])
def test_a_policy_file_that_says_less_noise_or_a_smaller_count_is_refused(rows, kind):
    import json

    scores, truth, others = rows
    if kind == "rate":
        noisy = sl.NoisyLabels(truth, 0.02, 0.02, 0.3)
        policy = sl.calibrate(scores, noisy, sl.Expected(5, 100), unlabelled=others)
    else:
        policy = sl.calibrate(scores, sl.NoisyLabels(truth, 0.02, 0.02), sl.Recall(0.8))
    assert sl.Policy.loads(policy_file.dumps(policy)) == policy
    for change in (
        lambda cutoff: cutoff["proof"].update(false_positive=0.04),
        lambda cutoff: cutoff["steps"][0].update(critical_count=cutoff["steps"][0]["critical_count"] - 9),
        *([lambda cutoff: cutoff["proof"].update(edge=1.0)] if kind == "rate" else []),
    ):
        raw = json.loads(policy_file.dumps(policy))
        change(raw["cutoffs"][0])
        with pytest.raises(sl.PolicyFileError):
            sl.Policy.loads(json.dumps(raw))


@pytest.mark.parametrize(
    ("target", "more", "problem"),
    [
        (sl.Precision(0.5), {"unlabelled": True}, "Precision and labels that may be wrong"),
        (sl.PerPool(2, 100), {}, "PerPool and labels that may be wrong"),
        ([sl.Expected(5, 100), sl.Recall(0.5)], {"unlabelled": True}, "several promises"),
        (sl.Recall(0.5), {"ties": True}, "broken by candidate id"),
        (sl.Expected(5, 100), {}, "unlabelled"),
        (sl.Expected(5, 100), {"unlabelled": True, "longest": None}, "longest="),
    ],
)
def test_what_has_no_proof_is_refused(rows, target, more, problem):
    scores, truth, others = rows
    noisy = sl.NoisyLabels(truth, 0.02, 0.02, more.get("longest", 0.3))
    given = {"unlabelled": others} if more.get("unlabelled") else {}
    if more.get("ties"):
        given["ties"] = sl.Hash([str(row) for row in range(len(scores))])
    with pytest.raises(sl.InvalidInput, match=problem):
        sl.calibrate(scores, noisy, target, **given)


def test_nobody_judges_it_by_labels_that_may_be_wrong_too(rows):
    scores, truth, _ = rows
    policy = sl.calibrate(scores, sl.NoisyLabels(truth, 0.02, 0.02), sl.Recall(0.8))
    assert sl.evaluate(policy, scores, truth).consistent is None
    with pytest.raises(sl.InvalidInput, match="labels may be wrong"):
        sl.Monitor(policy, audit_rate=0.1)


def test_a_table_and_the_command_line_say_the_same(rows, tmp_path):
    import csv

    from surelist.cli import run

    scores, truth, others = rows
    past, beside = tmp_path / "past.csv", tmp_path / "others.csv"
    with past.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("score", "label"), *zip(map(repr, scores.tolist()), truth.astype(int), strict=True)]
        )
    with beside.open("w", newline="") as file:
        csv.writer(file).writerows([("score",), *((repr(each),) for each in others.tolist())])
    noisy = sl.NoisyLabels(truth, 0.02, 0.05, 0.3)
    array = sl.calibrate(scores, noisy, sl.Expected(5, 100), unlabelled=others)
    table = sl.calibrate_table(
        past, score="score", label=sl.NoisyLabels("label", 0.02, 0.05, 0.3), target=sl.Expected(5, 100),
        unlabelled=beside,
    )  # fmt: skip
    assert table.threshold == array.threshold
    words = f"calibrate {past} --score score --label label --expect 5 --pool-size 100 --unlabelled {beside}"
    words += f" --false-positive 0.02 --false-negative 0.05 --longest 0.3 -o {tmp_path / 'policy.json'}"
    assert run(words.split()) == 0
    assert sl.Policy.load(tmp_path / "policy.json").threshold == array.threshold


def test_a_longest_list_goes_with_a_count_alone():
    scores, labels = population(3, 500)
    with pytest.raises(sl.InvalidInput, match="longest: goes with Expected; Recall needs none"):
        sl.calibrate(scores, sl.NoisyLabels(labels, 0.01, 0.1, longest=0.3), sl.Recall(0.5))


WAYS: dict[str, dict[str, Any]] = {
    "probability": {"probability": "p", "lowest_rate": 0.2},
    "false_positive": {"false_positive": 0.02, "false_negative": 0.05},
    "audit_rate": {"audit_rate": 0.2, "audited_below": 0.4},
}


def test_labels_come_about_in_one_way_and_what_that_needs_is_asked_for():
    """A probability beside noise was once taken for the probability alone: a promise without its proof."""
    assert drawn_labels({"label": "y"}) is None
    for first, given in WAYS.items():
        made = drawn_labels({"label": "y", **given})
        assert isinstance(made, sl.NoisyLabels if first == "false_positive" else sl.SampledLabels)
        for name, value in given.items():
            with pytest.raises(sl.InvalidInput, match="go together; give both"):
                drawn_labels({"label": "y", name: value})
        for other in WAYS.keys() - {first}:
            with pytest.raises(sl.InvalidInput, match="do not go together; give one"):
                drawn_labels({"label": "y", **given, **WAYS[other]})
    more: Any = drawn_labels({"label": "y", **WAYS["probability"], "lowest_score": 0.3})
    assert (more.lowest_rate, more.lowest_score, more.above) == (0.2, 0.3, None)
    noisy: Any = drawn_labels({"label": "y", **WAYS["false_positive"], "longest": 0.4})
    assert (noisy.false_positive, noisy.false_negative, noisy.longest) == (0.02, 0.05, 0.4)
