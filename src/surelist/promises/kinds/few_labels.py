"""Proofs from a few chosen labels of a scored collection [theory: few-labels] [theory: collection-recall]
[theory: collection-precision] [theory: collection-triage].

What is promised about the collection itself needs no assumption about the data, only that the labels are
right: the randomness is that of our own draw. What is promised about future pools needs the collection to
be like them. ``lifecycle.labelling`` draws, asks and finds the thresholds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from surelist._files import hold
from surelist._numerals import about, count, of_every
from surelist._scalars import as_fraction
from surelist.bounds.collection_lists import Look, Prefix, at_least, levels, most_pads, passes
from surelist.bounds.control_sample import block_drop, control_rule
from surelist.promises.kinds.at_least import AtLeast
from surelist.promises.kinds.counts import CountPromise
from surelist.promises.phrases import ANY_SIZE, DRAWN_ONCE, alpha_bounds, counted, number, percent
from surelist.promises.promise import About, Proof
from surelist.promises.state import Certificate, Cutoff

LABELS_RIGHT = (
    "The labels are right. Nothing is assumed about the candidates, the score or how either came about: the "
    "only chance is in which rows were drawn."
)
COLLECTION_LIKE_POOLS = (
    "The candidates of the collection and those of future pools are drawn independently from the same "
    "population, and the score was fixed independently of the collection."
)
MISSING_COUNTS = "A label that did not come counts as not qualified."
FIXED_BEFORE = (
    "One look: target, alpha and number of labels were fixed before the first label. Labelling more rows "
    "after a refusal, or asking for less, is not covered by these labels; a fresh draw of other rows is."
)

BY_NAME = (
    "The list is the labelling's own: everyone at or above the threshold but those labelled not qualified, "
    "and others by name. The threshold alone is not covered."
)
EVERY_LABEL = "Every candidate that was drawn has a label, and the score was not trained on these labels."
ONLY_RIGHT = "The labels are right."
AVERAGE_SIZE = "The pool size is the number of candidates in a pool, or its known average."
ON_AVERAGE = (
    "The failure rate is an average over draws of the collection and of its labels: for this one the long-"
    "run rate may lie above alpha."
)

ABOUT = {
    About.COLLECTION: (LABELS_RIGHT,),
    About.POPULATION: (COLLECTION_LIKE_POOLS, ONLY_RIGHT, AVERAGE_SIZE),
    About.POOL: (COLLECTION_LIKE_POOLS, ONLY_RIGHT, ANY_SIZE, ON_AVERAGE),
}
THESE_ALONE = "It is about these very candidates and this list; nothing is assumed about scores."


class LabelledSample(Proof, frozen=True):
    """What the labels of drawn rows of a collection prove, about that collection unless it says otherwise."""

    about: ClassVar[About | None] = About.COLLECTION
    work = "labelling"
    drawn_by = "labels of candidates who were drawn by chance"
    sample: ClassVar[str]  # what its targets are labelled for
    missing: ClassVar[str] = MISSING_COUNTS  # what is said of labels that did not come

    group: str | None
    collection: int

    @property
    def collection_size(self) -> int:
        return self.collection

    @property
    def these(self) -> str:
        of = "" if self.group is None else f" of group {self.group!r}"
        return f"these {counted(self.collection, 'candidate')}{of}"

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        return "the draw of those labelled"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        return (LABELS_RIGHT, BY_NAME, self.missing, alpha_bounds(policy.alpha), DRAWN_ONCE, FIXED_BEFORE)

    def whom(self, policy: Certificate) -> str:
        return THESE_ALONE

    def check(self, cutoff: Cutoff) -> None:
        hold(cutoff.group == self.group, "its proof is of another group")
        hold(cutoff.target.sample == self.sample, "its proof does not go with its target")


class BlockSample(LabelledSample, tag="block-sample", frozen=True):
    """``count`` qualified among ``drawn`` random rows of the best ``block`` of ``size`` rows.

    ``alpha`` is the share of this test; ``known`` qualified rows of the pilot score at or above the
    threshold as well. ``stage`` says whose block it is; the shares of both stages add up to the level.
    """

    about = None
    sample = "block"
    estimated_from = "the candidates that labels were drawn from"

    size: int
    block: int
    drawn: int
    alpha: float
    known: int
    count: int
    stage: Literal["block", "pilot"]

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        if cutoff.target.about is About.COLLECTION:
            k = number(cutoff.promised(AtLeast).k)
            return f"of {self.these} the shortlist holds at least {k} qualified"
        whose = "the shortlist" if self.group is None else f"for group {self.group!r} the shortlist"
        return cutoff.promised(CountPromise).claimed(whose, by_group=self.group is not None)

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        about, alpha = cutoff.target.about, percent(policy.alpha)
        collection = f"the {number(self.collection)} candidates of the collection"
        if about is About.POOL:
            return f"wrong for at most {alpha} of draws of {collection}, those labelled and the pool together"
        drawn = f"{collection} and those labelled" if about is About.POPULATION else "those labelled"
        return f"wrong with probability at most {alpha} over the draw of {drawn}"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        about, alpha = ABOUT[cutoff.target.about], alpha_bounds(policy.alpha)
        return *about, MISSING_COUNTS, alpha, DRAWN_ONCE, FIXED_BEFORE

    def evidence(self, cutoff: Cutoff) -> str:
        pilot = f", with {counted(self.known, 'qualified row')} of the pilot" if self.known else ""
        part = f" of {self.size:,} set aside" if self.stage == "pilot" and self.size < self.collection else ""
        best = f"{self.drawn:,} labelled of the best {self.block:,} candidates{part}"
        return f"{self.count:,} qualified are needed among {best}, at {percent(self.alpha)}{pilot}"

    def check(self, cutoff: Cutoff) -> None:
        super().check(cutoff)
        target, rows = cutoff.target, cutoff.rows
        hold(0 < self.alpha <= cutoff.level.alpha, "its share of alpha is impossible")
        hold(self.drawn <= rows and 0 <= self.known <= rows - self.drawn, "the row counts differ")
        hold(0 < self.drawn <= self.block <= self.size <= self.collection, "its block does not fit")
        needed = target.block_count(self.size, self.block, self.drawn, self.alpha, self.known)
        hold(self.count <= min(self.drawn, cutoff.qualified), "more qualified than there are")
        hold(needed <= self.count, f"{self.count} qualified are less than the {needed} needed")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        target, listed = cutoff.target, policy.listed_per(cutoff)
        if target.about is not About.COLLECTION:
            return super().plainly(cutoff, policy)
        these = f" of these {count(self.collection)} candidates"
        these = these if listed is None else f", about {about(listed[0])}{these},"
        return f"the list{these} holds at least {count(cutoff.promised(AtLeast).k)} qualified ones"

    def whom(self, policy: Certificate) -> str:
        if policy.cutoffs[0].target.about is About.COLLECTION:
            return super().whom(policy)
        return "It is about candidates who come as those of the collection came, with the same score."


class KeptSample(LabelledSample, frozen=True):
    """A share of all qualified is kept by everyone at or above the threshold but those labelled not
    qualified, *and* those labelled qualified."""

    sample = "control"
    missing = EVERY_LABEL

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        kept = f"{percent(float(cutoff.target.kept_share))} of all qualified of {self.these}"
        return f"the shortlist, with everyone labelled qualified on it, keeps at least {kept}"

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        keeps, of = of_every(float(cutoff.target.kept_share)), count(self.collection)
        with_them = "with everyone labelled qualified on it"
        return f"the list, {with_them}, keeps at least {keeps} qualified candidates among these {of}"


class ControlSample(KeptSample, tag="control-sample", frozen=True):
    """``relevant`` qualified among ``drawn`` random rows; ``dropped`` of them lie below the threshold.

    ``looks``: it went on after so many rows because so many or more of them were qualified.
    """

    drawn: int
    relevant: int
    dropped: int
    looks: tuple[Look, ...] = ()

    def evidence(self, cutoff: Cutoff) -> str:
        among = f"{self.drawn:,} candidates drawn at random"
        return f"{self.dropped:,} of the {self.relevant:,} qualified among {among} lie below it"

    def check(self, cutoff: Cutoff) -> None:
        super().check(cutoff)
        same = cutoff.rows == self.drawn and self.relevant == cutoff.qualified <= cutoff.rows
        hold(same, "the row counts differ")
        hold(0 < self.drawn <= self.collection, "more were drawn than there are")
        rows, least = [0, *(each for each, _ in self.looks), self.drawn], [each for _, each in self.looks]
        hold(rows == sorted(set(rows)), "the parts of its sample are impossible")
        hold(all(0 <= each <= self.relevant for each in least), "it went on with fewer than it may")
        share, alpha = cutoff.target.kept_share, cutoff.level.alpha
        rule = control_rule(self.collection, self.drawn, share, alpha, looks=self.looks)
        allowed = rule.drops[self.relevant]
        hold(0 <= self.dropped <= allowed, f"{self.dropped} dropped, where {allowed} are allowed")


class TwoDraws(KeptSample, tag="two-draws", frozen=True):
    """Of the ``free_top`` rows of the best ``top`` that nobody had labelled ``drawn_top`` were, and
    ``hits_top`` qualify, beside ``known`` others; then ``drawn`` of the ``free`` rows ranked below
    ``begin`` were, ``hits`` qualify, and ``dropped`` of those lie below the list's end.
    """

    known: int
    top: int
    free_top: int
    drawn_top: int
    hits_top: int
    begin: int
    free: int
    drawn: int
    hits: int
    dropped: int

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        return "the draws of those labelled"

    def evidence(self, cutoff: Cutoff) -> str:
        best = f"{self.hits_top:,} of {self.drawn_top:,} drawn from the best {self.top:,} are qualified"
        low = f"{self.hits:,} of {self.drawn:,} drawn from the lowest {self.collection - self.begin:,}"
        return f"{best}, and {low}, of whom {self.dropped:,} lie below it"

    def check(self, cutoff: Cutoff) -> None:
        super().check(cutoff)
        hold(self.known + self.hits_top + self.hits == cutoff.qualified, "the qualified rows differ")
        self.require_kept(cutoff, as_fraction(cutoff.level.alpha, "alpha"))

    def require_kept(self, cutoff: Cutoff, alpha: Fraction) -> None:
        """Raise where the draws do not show, at this level, that the share is kept."""
        top = 0 <= self.hits_top <= self.drawn_top <= self.free_top <= self.top <= self.begin
        bottom = 0 <= self.dropped <= self.hits <= self.drawn <= self.free <= self.collection - self.begin
        hold(top and bottom, "its draws are impossible")
        hold(self.drawn_top + self.drawn <= cutoff.rows <= self.collection, "the row counts differ")
        before = self.collection - self.begin - self.free  # of the lowest, those labelled before
        hold(before <= cutoff.rows - self.drawn_top - self.drawn, "some of the lowest rows are in no draw")
        hold(self.known + self.hits_top + self.hits <= cutoff.qualified, "the qualified rows differ")
        counting, level = levels(alpha, census=self.drawn_top == self.free_top)
        kept = self.known + at_least(self.hits_top, self.free_top, self.drawn_top, counting)
        allowed = block_drop(self.free, self.drawn, cutoff.target.kept_share, level, kept, self.hits)
        hold(self.dropped <= allowed, f"{self.dropped} dropped, where {allowed} are allowed")


class PrefixSample(LabelledSample, tag="prefix-sample", frozen=True):
    """Of the ``free`` rows of the best ``prefix`` of a collection ``drawn`` were labelled, and ``failed``
    of those are not qualified or have no label: passed at ``alpha``, beside ``known`` qualified rows.

    ``dropped`` rows have left the list since, ``found`` qualified ones have joined it, and ``pads`` unseen
    ones. A ``prefix`` of 0: no test was needed, or none passed; the list is those labelled qualified and
    their pads.
    """

    sample = "prefix"

    prefix: int
    free: int
    drawn: int
    failed: int
    known: int
    alpha: float
    dropped: int
    found: int
    pads: int
    listed: int

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        of = self.these
        if not self.listed:
            return f"nothing is promised of {of}: the list is empty"
        share = percent(float(cutoff.target.kept_share))
        return f"at least {share} of the {counted(self.listed, 'candidate')} listed of {of} are qualified"

    def evidence(self, cutoff: Cutoff) -> str:
        pads = f", and {counted(self.pads, 'unseen one')}" if self.pads else ""
        if not self.prefix:
            return f"the list is the {counted(self.found, 'candidate')} labelled qualified{pads}"
        drawn = f"drawn at random from the best {self.prefix:,}: {self.drawn:,}"
        failed = f"{self.failed:,} of them not qualified or without a label"
        off = f"since then taken off the list: {self.dropped:,}, added as labelled qualified: {self.found:,}"
        return f"{drawn}, {failed}, which passes at {percent(self.alpha)}; {off}{pads}"

    def check(self, cutoff: Cutoff) -> None:
        super().check(cutoff)
        self.require_right(cutoff, cutoff.target.kept_share, cutoff.level.alpha)

    def require_right(self, cutoff: Cutoff, share: Fraction, alpha: float) -> None:
        """Raise where the labels do not show, at this level, that the share of the list is qualified."""
        possible = 0 <= self.failed <= self.drawn <= self.free <= self.prefix <= self.collection
        hold(possible, "its prefix is impossible")
        hold(self.drawn + self.known <= cutoff.rows <= self.collection, "the row counts differ")
        fits = self.dropped >= 0 and self.known + self.found <= cutoff.qualified
        hold(fits, "more qualified than there are")
        hold(0 <= self.pads <= most_pads(share, self.dropped, self.found), "more joined unseen than may")
        listed = self.free - self.dropped + self.known + self.found + self.pads
        hold(self.listed == listed, f"its list has {self.listed} candidates, and these labels carry {listed}")
        if self.prefix:
            hold(0 < self.alpha <= alpha, "its share of alpha is impossible")
            prefix, level = Prefix(self.free, self.drawn, self.failed), as_fraction(self.alpha, "alpha")
            hold(passes(prefix, share, self.known, level), "its list does not pass")
        else:
            hold(self.free == self.dropped == self.known == 0, "its list is another")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        if not self.listed:
            return "the list is empty, so nothing is promised of it"
        of = f"the {count(self.listed)} listed of these {count(self.collection)} candidates"
        return f"at least {of_every(float(cutoff.target.kept_share))} of {of} are qualified"


class AcceptedRejected(LabelledSample, tag="accepted-rejected", frozen=True):
    """A precision of those ``accepted``, and a recall of everyone ranked above ``cut``: half of alpha each.

    Whoever scores below ``reject_below`` and has no label is rejected, by ``rejected`` (None: nobody is);
    ``look`` candidates are left to people.
    """

    sample = "triage"
    missing = (
        "A candidate whose label did not come is accepted where the promise allows for it, left to people "
        "otherwise, and never rejected."
    )

    accepted: PrefixSample
    rejected: TwoDraws | None
    cut: int
    reject_below: float
    look: int

    @property
    def looked_from(self) -> float:
        return self.reject_below

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        kept, listed = percent(float(cutoff.target.kept_share)), self.accepted.listed
        looked = f"the {number(self.look)} whom people still look at"
        if not listed and not self.look:
            return f"none of {self.these} is qualified"
        if not listed:
            return f"none of {self.these} is accepted; {looked} hold at least {kept} of all qualified"
        right = f"at least {percent(float(cutoff.target.right_share))} of the {number(listed)} accepted"
        holders = f"they and {looked} hold" if self.look else "they hold"
        return f"of {self.these} {right} are qualified, and {holders} at least {kept} of all qualified"

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        return "the draws of those labelled"

    def evidence(self, cutoff: Cutoff) -> str:
        unseen = "nobody is rejected unseen" if self.rejected is None else self.rejected.evidence(cutoff)
        return f"{self.accepted.evidence(cutoff)}; {unseen}"

    def check(self, cutoff: Cutoff) -> None:
        super().check(cutoff)
        half = as_fraction(cutoff.level.alpha, "alpha") / 2
        for each in filter(None, (self.accepted, self.rejected)):
            same = (each.group, each.collection) == (self.group, self.collection)
            hold(same, "a part of its proof is of others")
        self.accepted.require_right(cutoff, cutoff.target.right_share, float(half))
        begin = self.collection
        if self.rejected is not None:
            self.rejected.require_kept(cutoff, half)
            begin = self.rejected.begin
        hold(max(begin, self.accepted.prefix) <= self.cut <= self.collection, "its lists overlap")
        hold(0 <= self.look <= self.collection - self.accepted.listed, "more are looked at than there are")
        hold(self.reject_below <= cutoff.steps[0].threshold, "some are accepted and rejected")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        of, kept = f"these {count(self.collection)} candidates", of_every(float(cutoff.target.kept_share))
        listed, looked = self.accepted.listed, f"the {count(self.look)} left to look at"
        if not listed and not self.look:
            return f"none of {of} is qualified"
        if not listed:
            return f"none of {of} is accepted; {looked} hold at least {kept} qualified"
        right = of_every(float(cutoff.target.right_share))
        holders = f"they and {looked}" if self.look else "they"
        accepted = f"at least {right} of the {count(listed)} accepted of {of} are qualified"
        return f"{accepted}, and {holders} hold at least {kept} qualified"
