"""The proof of a triage of a collection from a few labels [theory: collection-triage]."""

from __future__ import annotations

from surelist._files import hold
from surelist._numerals import count, of_every
from surelist._scalars import as_fraction
from surelist.promises.kinds.few_labels import LabelledSample, PrefixSample, TwoDraws
from surelist.promises.phrases import number, percent
from surelist.promises.state import Certificate, Cutoff


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
