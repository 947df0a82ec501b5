"""Runs the real interfaces in a world, once for each draw, and says with which chance each promise made was false."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import surelist as sl
from surelist.promises.conditions import Conditions
from surelist.promises.proved import proof_of
from tests.promises.levels import worlds
from tests.promises.levels.truths import ALPHA, CASES, Case, PoolCase
from tests.promises.levels.worlds import (
    EDGE,
    GROUPS,
    LONGEST,
    LOWEST,
    TOP,
    WITHIN,
    WRONG,
    Drawn,
    World,
)

TIE_NUMBERS = 16**13


@dataclass(frozen=True)
class Cell:
    """One form of a promise under one set of conditions."""

    kind: type
    number: int
    asked: Conditions

    @property
    def case(self) -> Any:
        return CASES[self.kind][self.number]

    @property
    def name(self) -> str:
        beside = " ".join(f"{name}={value}" for name, value in self.asked.beside().items())
        return f"{self.kind.__name__}[{self.number}] {beside or 'plain'}"

    @property
    def level(self) -> float:
        """How often what is counted here may be false."""
        if self.asked.rule not in ("pac", "bernstein"):
            return ALPHA
        if self.asked.split != "sidak":
            return ALPHA / 2
        scores = 2 if self.asked.scores == "several" else 1
        each = (1 - math.sqrt(1 - ALPHA / scores)) / 2  # two groups, half of the level for the rows
        return scores * (1 - (1 - each) ** 2)

    def chances(self, runs: int) -> list[float]:
        """With which chance a promise was made and false, run by run."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        once = {"rows": _from_rows, "labelling": _from_labelling}.get(self.asked.evidence, _from_campaign)
        one = _from_pools if isinstance(self.case, PoolCase) else once
        run = one(self, rng)
        slow = self.asked.evidence == "labelling" or self.asked.bad_rows == "dropped"
        return [run() for _ in range(runs // 8 if slow else runs)]


def partner_of(kind: type, asked: Conditions) -> Case | None:
    """Another promise that goes with one of this kind, under the same conditions."""
    for other in (sl.Expected, sl.Recall, sl.PerPool, sl.Precision):
        case = CASES[other][0]
        uses = asked.others == "none" or other is sl.Precision or kind is sl.Precision
        uses |= asked.shift != "within" and sl.Expected in (other, kind)
        uses &= asked.others == "given" or other is not sl.Precision
        if other is not kind and uses and proof_of(case.ask(worlds.world(asked), asked, None), asked):
            return case
    return None


def _from_rows(cell: Cell, rng: np.random.Generator) -> Callable[[], float]:
    asked, cases = cell.asked, [cell.case]
    if asked.promises == "several":
        partner = partner_of(cell.kind, asked)
        assert partner is not None, f"{cell.name}: no other promise goes with it, so nobody can ask for that"
        cases.append(partner)
    found = worlds.world(asked, fine=asked.others == "given" or any(each.fine for each in cases))
    groups = (None,) if asked.groups == "none" else GROUPS
    each = [{group: case.ask(found, asked, group) for group in groups} for case in cases]
    target = each[0] if asked.groups != "none" else [one[None] for one in each]
    target = target[0] if isinstance(target, list) and len(target) == 1 else target
    judges = {type(one[groups[0]]): case for one, case in zip(each, cases, strict=True)}
    size = max(case.rows for case in cases) * len(groups)
    size = math.ceil(size * (1 if asked.labels not in ("thinned",) else 1 / LOWEST) * found.bound)
    size *= 2 if asked.rule in ("dkw", "bernstein") else 1
    amounts = cell.kind is sl.Value

    def run() -> float:
        drawn = worlds.draw(rng, found, asked, size, max(case.others for case in cases))
        try:
            policy = calibrated(rng, found, asked, drawn, target, amounts=amounts)
        except sl.NotCertifiable:
            return 0.0
        except sl.InvalidInput:
            if cell.kind is sl.ThisList:  # its list ends among tied scores: no promise is made
                return 0.0
            raise
        score = "a" if policy.choice is None else policy.choice.chosen
        chances = [
            judges[type(cutoff.target)].false(
                found,
                asked,
                cutoff,
                score,
                lambda size=None: listed(policy, found, score, size),
                drawn.others,
            )
            for cutoff in policy.cutoffs
        ]
        if asked.split == "sidak":  # independent groups
            return 1 - math.prod(1 - chance for chance in chances)
        return min(1.0, sum(chances))

    return run


def listed(policy: Any, found: World, score: str, size: int | None = None) -> Any:
    """The share of each type on the list: one or none, but for ties that are broken."""
    on, scores = np.zeros(len(found.a)), found.scores(score)
    for cutoff in policy.cutoffs:
        step = next((each for each in reversed(cutoff.steps) if size is None or each.pool_size <= size), None)
        assert step is not None
        part = 1.0 if step.tie_break is None else 1 - step.tie_break / TIE_NUMBERS
        mine = np.where(scores > step.threshold, 1.0, np.where(scores == step.threshold, part, 0.0))
        on = np.maximum(on, mine * (1 if cutoff.group is None else found.member[cutoff.group]))
    return on


def calibrated(
    rng: np.random.Generator, found: World, asked: Conditions, drawn: Drawn, target: Any, *, amounts: bool
) -> Any:
    options, groups = _options(rng, found, asked, drawn)
    labels: Any = drawn.labels
    if amounts:
        labels = np.where(labels == 1, found.worth[drawn.index], labels)
    if asked.bad_rows == "dropped":
        return _from_table(rng, found, asked, drawn, target, options, groups)
    if groups is not None:
        options["groups"] = groups
    if asked.labels == "thinned":
        labels = sl.SampledLabels(labels, probability=found.rate[drawn.index], lowest_rate=LOWEST)
    elif asked.labels == "noisy":
        labels = sl.NoisyLabels(labels, WRONG, WRONG, longest=LONGEST if asked.others == "given" else None)
    elif asked.labels == "two rates":
        labels = sl.SampledLabels(labels, probability=LOWEST, above=EDGE)
    several = asked.scores == "several"
    scores = {name: found.scores(name)[drawn.index] for name in ("a", "b")[: 1 + several]}
    if asked.others == "given":
        others = {name: found.scores(name)[drawn.others] for name in scores}
        options["unlabelled"] = others if several else others["a"]
    return sl.calibrate(scores if several else scores["a"], labels, target, **options)


def _options(
    rng: np.random.Generator, found: World, asked: Conditions, drawn: Drawn
) -> tuple[dict[str, Any], Any]:
    index, options, groups = drawn.index, {"alpha": ALPHA, "rule": asked.rule}, None
    if asked.labels == "missing":
        options["missing_labels"] = "unqualified"
    if asked.groups != "none":
        masks = {name: found.member[name][index] for name in GROUPS}
        names = masks if "overlapping" in asked.groups else np.where(masks["x"], *GROUPS)
        split = "sidak" if asked.split == "sidak" else "bonferroni"
        groups = sl.Groups(
            names, "levels", split, "all" if asked.groups.startswith("all") else "own", asked.cutoff
        )
    if asked.ties == "hash":
        options["ties"] = sl.Hash(np.arange(len(index)))
    if asked.shift != "none":
        within = WITHIN if asked.shift == "within" else None
        options["shift"] = sl.DensityRatio(found.ratio[index], found.bound, exact=True, within=within)
    if asked.pools == "beside":
        options["pools"] = rng.integers(0, len(index) // 5, len(index))
    return options, groups


def _from_table(
    rng: np.random.Generator, found: World, asked: Conditions, drawn: Drawn, target: Any, options: dict[str, Any],
    groups: Any,
) -> Any:  # fmt: skip
    """The rows of the world, and among them some without a score, nearly all of them qualified."""
    more = rng.integers(1, 12)
    blank = rng.permutation(len(drawn.index) + more) >= len(drawn.index)

    def column(values: Any, instead: Any) -> Any:
        whole = np.empty(len(blank), dtype=np.asarray(values).dtype)
        whole[~blank], whole[blank] = values, instead
        return whole

    columns = {"score": column(found.a[drawn.index], np.nan), "label": column(drawn.labels, 1.0)}
    given = {"score": "score", "label": "label", "on_bad_rows": "drop", **options}
    if groups is not None:
        columns["group"] = column(groups.names, "x")
        given["groups"] = sl.Groups("group", groups.purpose, groups.split, groups.rows, groups.cutoff)
    if "ties" in options:
        columns["id"], given["ties"] = np.arange(len(blank)), sl.Hash("id")
    if "pools" in options:
        columns["pool"], given["pool"] = column(options["pools"], 0), "pool"
        del given["pools"]
    return sl.calibrate_table(pl.DataFrame(columns).fill_nan(None), target=target, **given)


def _from_pools(cell: Cell, rng: np.random.Generator) -> Callable[[], float]:
    asked, case = cell.asked, cell.case
    found = worlds.pool_world(asked)
    target, count, several = case.ask(found), case.pools, asked.scores == "several"
    targets = target if asked.groups == "none" else dict.fromkeys(GROUPS, target)

    def run() -> float:
        at = rng.integers(0, found.types, count)
        worth = found.worth if target.amounts else found.good.astype(float)
        labels = worth[at].ravel()
        if asked.labels == "missing":
            labels[(labels == 0) & (rng.random(len(labels)) < 0.5)] = np.nan
        options: dict[str, Any] = {"alpha": ALPHA, "rule": asked.rule}
        options |= {"missing_labels": "unqualified"} if asked.labels == "missing" else {}
        pools = np.repeat(np.arange(count), found.a.shape[1])
        if asked.groups != "none":
            masks = {name: found.member[name][at].ravel() for name in GROUPS}
            names = masks if asked.groups == "overlapping" else np.where(masks["x"], *GROUPS)
            options["groups"] = sl.Groups(names, "levels", cutoff=asked.cutoff)
        try:
            if asked.bad_rows == "dropped":
                scores = np.where(found.scored, found.a, np.nan)[at].ravel()
                table = pl.DataFrame({"score": scores, "label": labels, "pool": pools}).fill_nan(None)
                if "groups" in options:
                    table = table.with_columns(group=pl.Series(options["groups"].names))
                    options["groups"] = sl.Groups("group", "levels", cutoff=asked.cutoff)
                policy = sl.calibrate_table(
                    table,
                    score="score",
                    label="label",
                    pool="pool",
                    target=targets,
                    on_bad_rows="drop",
                    **options,
                )
            else:
                both = {"a": found.a[at].ravel(), "b": found.b[at].ravel()}
                policy = sl.calibrate(both if several else both["a"], labels, targets, pools=pools, **options)
        except sl.NotCertifiable:
            return 0.0
        score = "a" if policy.choice is None else policy.choice.chosen
        return case.false(found, asked, policy, found.a if score == "a" else found.b)

    return run


SIZE, LABELS = 100, 40  # of a labelling, for each group
KEPT, LISTED = 0.8, 0.5  # the recall and the precision that it promises


def _from_labelling(cell: Cell, rng: np.random.Generator) -> Callable[[], float]:
    asked, kind, case = cell.asked, cell.kind, cell.case
    found = worlds.world(asked, fine=case.fine or kind is sl.Recall)
    groups = (None,) if asked.groups == "none" else GROUPS

    def target_of(group: str | None, index: Any) -> Any:
        if kind in (sl.Recall, sl.Precision):
            return kind(KEPT if kind is sl.Recall else LISTED)
        if kind is sl.Triage:
            return sl.Triage(LISTED, reject_recall=KEPT)
        if kind is sl.AtLeast:
            mine = found.good[index] & (found.a[index] >= TOP)
            return sl.AtLeast(1 + int((mine if group is None else mine & found.member[group][index]).sum()))
        return case.ask(found, asked, group)

    def run() -> float:
        drawn = worlds.draw(rng, found, asked, SIZE * len(groups), 0)
        index, scores = drawn.index, found.a[drawn.index]
        names = None if groups == (None,) else np.where(found.member["x"][index], *GROUPS)
        targets = {group: target_of(group, index) for group in groups}
        work = sl.Labelling(
            scores, targets if names is not None else targets[None], alpha=ALPHA, labels=LABELS * len(groups),
            groups=names, purpose=None if names is None else "levels",
        )  # fmt: skip
        while len(rows := work.ask()):
            work.tell(rows, drawn.labels[rows])
        try:
            policy = work.policy
        except sl.NotCertifiable:
            return 0.0
        on = work.select(scores, groups=names)
        chances = []
        for cutoff in policy.cutoffs:
            own = True if cutoff.group is None else names == cutoff.group
            mine, of = found.good[index] & own, on & own
            if kind is sl.Triage:
                rejected = work.triage(scores, names) == "reject"
                short = (mine & on).sum() < LISTED * of.sum() - 1e-9
                chances.append(float(short or (mine & ~rejected).sum() < KEPT * mine.sum() - 1e-9))
            elif kind is sl.Precision:
                chances.append(float((mine & on).sum() < LISTED * of.sum() - 1e-9))
            elif kind is sl.Recall:
                chances.append(float((mine & on).sum() < KEPT * mine.sum() - 1e-9))
            elif isinstance(cutoff.target, sl.AtLeast):
                chances.append(float((mine & on).sum() < cutoff.target.k))
            else:
                share = lambda size=None: listed(policy, found, "a")  # noqa: E731
                chances.append(case.false(found, asked, cutoff, "a", share, None))
        return min(1.0, sum(chances))

    return run


def _from_campaign(cell: Cell, rng: np.random.Generator) -> Callable[[], float]:
    """A start and two updates: false if one of the thresholds is."""
    asked, case = cell.asked, cell.case
    found = worlds.world(asked)
    target = case.ask(found, asked, None)
    rate = 0.5 if asked.evidence == "audited campaign" else None

    def run() -> float:
        first = worlds.draw(rng, found, asked, case.rows, 0)
        work = sl.Campaign(
            found.a[first.index], first.labels, target, alpha=ALPHA, schedule=(1, 2), uncertified="everyone",
            missing_labels="unqualified" if asked.labels == "missing" else "error", audit_rate=rate,
        )  # fmt: skip
        for pool in ("p", "q"):
            drawn = worlds.draw(rng, found, asked, 60, 0)
            mask = work.screen(found.a[drawn.index], pool=pool)
            rows = sorted({*np.flatnonzero(mask).tolist(), *(map(int, work.audit(pool)) if rate else ())})
            known = [row for row in rows if not np.isnan(drawn.labels[row])]
            work.review(pool, drawn.labels[known], ids=[str(row) for row in known])
            if len(known) < len(rows):
                work.close(pool)
            if work.alarm:
                break
            work.update()
        return float(any(update.threshold is not None and update.threshold >= TOP for update in work.updates))

    return run


def cells_of(kind: type, sets: Iterator[Conditions] | list[Conditions]) -> list[Cell]:
    """Every form of a promise of this kind that each set allows."""
    return [
        Cell(kind, number, asked)
        for asked in sets
        for number, case in enumerate(CASES[kind])
        if (number == 0 or asked.evidence == "rows") and case.fits(asked)
    ]
