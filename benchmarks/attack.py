"""Accepted requests at their worst: sets of conditions drawn at random, and the newest promises, each attacked.

    python benchmarks/attack.py --runs 2000            # one table; exit code 1 if the joint bound is broken
    python benchmarks/attack.py --runs 50 --only triage  # some of them, by a part of the design's name
    python benchmarks/attack.py --draw                 # how the sets were drawn from the declarations

The sets of ``DRAWN`` were drawn by ``--draw``: from each stratum of the declared sets with at least two conditions,
one at random (``SEED``). ``NEW`` are requests of the newest kinds. Each is run at the worst case that its design in
``attack_designs.py`` or ``attack_products.py`` describes, through the public interface. *False* counts promises that were made and are not true,
*allowed* is alpha times the runs (for rules of two levels the part of alpha over the rows; what is counted then is
whether pools fail more often than is said). The bound: no count has a binomial tail below ``BY_CHANCE`` divided by the
number of designs, so correct code breaks it with a probability of at most ``BY_CHANCE``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

import attack_designs as designs
import attack_products as products
import surelist as sl

SEED = 20261118
BY_CHANCE = 1e-3


@dataclass(frozen=True)
class Attack:
    """What is asked for, in words; its design; the part of alpha that what is counted may have."""

    asked: str
    design: Callable[[np.random.Generator], designs.Run]
    part: float = 1.0

    @property
    def name(self) -> str:
        return self.design.__name__

    def false(self, runs: int, seed: int) -> float:
        run = self.design(np.random.default_rng([seed, zlib.crc32(self.name.encode())]))
        return sum(run() for _ in range(runs))


DRAWN = (
    Attack("Expected: dkw, overlapping groups, hash", designs.expected_after_looking),
    Attack(
        "Expected: within a factor, groups of all rows, common cutoff, hash, pools",
        designs.expected_common_within,
    ),
    Attack(
        "Expected: missing, within a factor, overlapping, common cutoff, hash, two scores",
        designs.expected_best_of_common_within,
    ),
    Attack(
        "Expected: missing, known shift, unlabelled, two scores, with PerPool and Precision, pools",
        designs.three_promises_of_two_scores,
    ),
    Attack("Expected: missing, groups of all rows, hash, dropped rows", designs.expected_dropped),
    Attack("Expected: audited campaign, missing", designs.audited_campaign),
    Attack("Expected: wrong labels, unlabelled", designs.expected_noisy),
    Attack("PerPool: pac, groups, hash, two scores", designs.per_pool_pac, 0.5),
    Attack("PerPool: known shift, unlabelled, with Expected, Recall and Precision", designs.four_promises),
    Attack("PerPool: labelling, missing", designs.labelled_per_pool),
    Attack("Recall: drawn labels, overlapping groups, common cutoff, hash", designs.recall_thinned),
    Attack("Recall: known shift, groups, hash, two scores, pools", designs.recall_shifted),
    Attack("Recall: labelling, groups", designs.labelled_recall),
    Attack("Precision: missing, unlabelled", designs.precision_missing),
    Attack("Precision: labelling, missing, groups", designs.labelled_precision),
    Attack("Triage: drawn labels, unlabelled", designs.triage_thinned),
    Attack("Budget: known shift, unlabelled", designs.budget_shifted),
    Attack("NextPool: pac, missing, groups, common cutoff, two scores", designs.next_pool_common, 0.5),
    Attack("PoolAverage: missing, dropped rows", designs.pool_average_dropped),
    Attack("Value: missing, two scores, pools", designs.value_missing),
    Attack("FalseShare: missing, the pool, pools", designs.false_share),
    Attack("ThisList: missing, the pool", designs.this_list_missing),
    Attack("AtLeast: labelling, groups", designs.labelled_at_least),
)
NEW = (
    Attack("[PerPool, Expected, Recall], nothing unlabelled", designs.count_recall_and_pool),
    Attack("Triage(reject=)", designs.triage_both),
    Attack("Triage(reject_recall=)", designs.triage_recall),
    Attack("list_curve, at least, n much larger than m", designs.list_curve_few),
    Attack("list_curve, at least, m much larger than n", designs.list_curve_many),
    Attack("list_curve, at most, an urn", designs.list_curve_at_most),
    Attack("ThisList(size, share)", designs.this_list_share),
    Attack("mean_rank and Expected", designs.mean_rank_of_two),
    Attack("Recall: labelling in two draws, reloaded", designs.recall_in_two_draws),
    Attack("Precision: labelling, reloaded", designs.precision_of_collection),
    Attack("Recall: wrong labels", designs.recall_noisy),
    Attack("Expected: labels at two rates", designs.labels_at_two_rates),
    Attack("Expected: campaign, late reviews", designs.campaign_late),
    Attack("Expected: overlapping groups, common cutoff", products.common_expected_overlapping),
    Attack("Recall: overlapping groups, common cutoff", products.common_recall_alike),
    Attack("NextPool: groups, common cutoff", products.common_next_pool),
    Attack("Triage(reject_recall=), tied scores", products.triage_tied),
    Attack("Expected: wrong labels, the longest list", products.expected_noisy_longest),
    Attack("AtLeast: labelling, closed by outcome", products.closed_when_it_looks_good),
    Attack("AtLeast: labelling, corrections", products.corrected_where_it_helps),
)


def strata() -> list[tuple[Any, Callable[[Any], bool]]]:
    """Parts of the declared sets, so that every kind and every sort of condition is met."""
    return [
        (sl.Expected, lambda asked: "overlapping" in asked.groups and asked.cutoff == "own"),
        (sl.Expected, lambda asked: asked.cutoff == "common"),
        (sl.Expected, lambda asked: asked.shift == "within" and asked.scores == "several"),
        (sl.Expected, lambda asked: asked.others == "given" and asked.promises == "several"),
        (sl.Expected, lambda asked: asked.bad_rows == "dropped"),
        (sl.Expected, lambda asked: "campaign" in asked.evidence),
        (sl.Expected, lambda asked: asked.labels == "noisy"),
        (
            sl.PerPool,
            lambda asked: asked.evidence == "rows" and asked.groups != "none" and asked.cutoff == "own",
        ),
        (sl.PerPool, lambda asked: asked.promises == "several"),
        (sl.PerPool, lambda asked: asked.evidence == "labelling"),
        (sl.Recall, lambda asked: asked.labels == "thinned"),
        (sl.Recall, lambda asked: asked.shift != "none"),
        (sl.Recall, lambda asked: asked.evidence == "labelling"),
        (sl.Precision, lambda asked: asked.evidence == "rows"),
        (sl.Precision, lambda asked: asked.evidence == "labelling"),
        (sl.Triage, lambda asked: True),
        (sl.Budget, lambda asked: True),
        (sl.NextPool, lambda asked: asked.cutoff == "common"),
        *(
            (kind, lambda asked: True)
            for kind in (sl.PoolAverage, sl.Value, sl.FalseShare, sl.ThisList, sl.AtLeast)
        ),
    ]


def draw() -> None:
    """Print one set of each stratum, drawn with the seed."""
    from surelist.promises.proved import accepted

    rng = np.random.default_rng(SEED)
    for kind, fits in strata():
        sets = sorted((each for each in accepted(kind) if len(each.beside()) > 1 and fits(each)), key=str)
        chosen = sets[rng.integers(len(sets))]
        print(f"{kind.__name__}, one of {len(sets)}: {chosen.beside()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="a part of the names of designs")
    parser.add_argument("--draw", action="store_true")
    given = parser.parse_args()
    if given.draw:
        draw()
        return
    warnings.simplefilter("ignore", UserWarning)  # what is said of pools and directions is true here
    chosen = [each for each in (*DRAWN, *NEW) if given.only in each.name]
    broken, began = [], time.perf_counter()
    print(
        f"alpha {designs.ALPHA}, seed {given.seed}\n\n| asked for | design | runs | false | allowed |\n|---|---|---|---|---|"
    )
    for each in chosen:
        false, level = each.false(given.runs, given.seed), designs.ALPHA * each.part
        print(
            f"| {each.asked} | {each.name} | {given.runs} | {false:g} | {level * given.runs:g} |", flush=True
        )
        if binom.sf(false - 1, given.runs, level) < BY_CHANCE / len(chosen):
            broken.append(each.name)
    took = time.perf_counter() - began
    print(
        f"\n{len(chosen)} designs in {took:.0f} s. Joint bound {'broken by ' + ', '.join(broken) if broken else 'kept'}."
    )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
