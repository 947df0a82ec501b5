"""A share of all qualified: one random sample of everyone, and the drops that it allows."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from surelist._files import hold
from surelist.bounds.control_sample import control_rule
from surelist.lifecycle.block_draw import set_aside
from surelist.lifecycle.labelling_design import Design, Finding, Sample, ScoredCollection, Stage, wrapped
from surelist.lifecycle.labelling_enough import require_enough
from surelist.promises.kinds.few_labels import ControlSample
from surelist.promises.promise import Promise


class ControlDesign(Design, tag="control"):
    """A uniform sample [theory: collection-recall]."""

    @classmethod
    def start(
        cls, collection: ScoredCollection, group: str | None, target: Promise, alpha: float, labels: int,
        options: dict[str, Any], rng: np.random.Generator,
    ) -> ControlDesign:  # fmt: skip
        size = collection.sizes[group]
        require_enough(target, size, labels, alpha, options, len(collection.sizes))
        ranks = set_aside(size, labels, rng)
        return cls(
            group=group, target=msgspec.to_builtins(target), alpha=alpha, size=size,
            sample=Sample.fetch(collection, group, ranks),
            stages=[Stage("control sample", list(range(labels)))],
        )  # fmt: skip

    def next_stage(self) -> Stage | None:
        return None

    def verdict(self) -> Finding:
        places = self.stages[0].asked
        hits = self.sample.marked(places)
        rule = control_rule(self.size, len(places), self.promise.kept_share, self.alpha)
        drop = rule.drops[len(hits)]
        if drop < 0:
            needed = rule.needed
            enough = "no number of qualified ones would do" if needed is None else f"{needed:,} would do"
            return self.refused(
                f"{len(hits):,} of the {len(places):,} candidates drawn are qualified; {enough}. Draw "
                "more candidates for a new labelling, or ask for a smaller share.", needed or 0,
            )  # fmt: skip
        at = hits[len(hits) - 1 - drop]
        proof = ControlSample(self.group, self.size, len(places), len(hits), drop)
        bad = sum(each < at for each in self.sample.marked(places, "0"))
        listed = self.sample.ranks[at] + 1 - bad + drop
        return Finding(self.sample.scores[at], len(hits) - drop, len(places), len(hits), listed, proof)

    def named(self) -> tuple[list[int], list[int]]:
        return self.sample.marked(self.stages[0].asked), self.sample.marked(self.stages[0].asked, "0")

    def verify(self) -> None:
        super().verify()
        hold(
            len(self.stages) == 1 and self.stages[0].asked == list(range(len(self.sample.rows))),
            "its stages are not those of its design",
        )
        hold(bool(self.sample.rows), "nobody was drawn")

    def describe(self) -> list[str]:
        text = (
            f"A control sample of {len(self.sample.rows):,}, drawn at random from all {self.size:,}. The "
            "list will be everyone at or above the threshold but those labelled not qualified, and everyone "
            "labelled qualified. Every label is needed."
        )
        return [*super().describe(), *wrapped(text), self.came(self.stages[0])]
