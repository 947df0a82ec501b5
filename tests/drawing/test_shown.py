"""Every object that a person meets shows itself: short in a prompt, safe in a notebook, in any state."""

from __future__ import annotations

import html
import html.parser
from functools import cache
from typing import Any

import numpy as np
import pytest

import surelist as sl
from surelist.drawing.display import Display, as_html
from surelist.examples import population
from surelist.promises.curve import curve_by
from tests.helpers.randomness import seeded

EVIL = "<script>alert('x')</script>&\"<img src=x onerror=y>"
ALLOWED = {"div", "strong", "table", "tr", "th", "td", "details", "summary", "ul", "li", "pre", "br"}


class Tags(html.parser.HTMLParser):
    """Collects tags and attributes, and that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@cache
def rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(4)
    scores, labels = population(rng, 1_500)
    return scores, labels, np.where(rng.random(1_500) < 0.5, EVIL, "other")


@cache
@seeded("objects that show themselves")
def objects() -> dict[str, Any]:
    scores, labels, groups = rows()
    rng = np.random.default_rng(5)
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
    by_group = {EVIL: sl.Expected(2, 50), "other": sl.Expected(2, 50)}
    grouped = sl.calibrate(scores, labels, by_group, groups=sl.Groups(groups, EVIL))
    many = np.arange(1_500) % 10
    crowd = sl.calibrate(
        scores, labels, {name: sl.Expected(0.1, 10) for name in range(10)}, groups=sl.Groups(many, "x")
    )
    withdrawn = policy.withdraw(EVIL)
    monitor, alarmed = sl.Monitor(policy), sl.Monitor(policy)
    monitor.observe(qualified=6, pool_size=100, review_id=EVIL)
    for _ in range(40):
        alarmed.observe(qualified=0, pool_size=100)
    campaign = sl.Campaign(scores, labels, sl.Expected(5, 100), schedule=(2, 9))
    early = sl.Campaign(scores[:20], labels[:20], sl.Expected(5, 100), uncertified="everyone")
    screened = sl.Campaign(scores, labels, sl.Expected(5, 100), schedule=(2,))
    while not screened.alarm:
        listed = screened.screen(rng.random(100), pool=f"{EVIL}{screened.pools}")
        screened.review(f"{EVIL}{screened.pools - 1}", np.zeros(int(listed.sum())))
    labelling = sl.Labelling(scores, sl.Expected(5, 100), labels=200)
    refused = sl.Labelling(scores, sl.AtLeast(300), labels=60)
    done = sl.Labelling(scores, sl.Expected(5, 100), labels=200)
    for work, answer in ((refused, np.zeros(1_500)), (done, labels)):
        while not work.done:
            asked = work.ask()
            work.tell(asked, np.asarray(answer)[asked].astype(float))
    stop, over = sl.StopTest(50, 400, 0.9), sl.StopTest(50, 400, 0.9)
    over.tell(np.zeros(len(over.ask())))
    return {
        "policy": policy, "grouped": grouped, "crowd": crowd, "withdrawn": withdrawn,
        "per pool": sl.calibrate(scores, labels, sl.PerPool(3, (50, 200))),
        "recall": sl.calibrate(scores, labels, sl.Recall(0.9)),
        "precision": sl.calibrate(scores, labels, sl.Precision(0.3, 0.1), unlabelled=scores + 1e-9),
        "by rank": sl.calibrate(
            scores, labels, sl.NextPool(k=1, by="rank"), pools=np.repeat(np.arange(75), 20)
        ),
        "monitor": monitor, "alarmed": alarmed, "campaign": campaign, "early": early, "screened": screened,
        "plan": sl.plan(sl.Expected(5, 100), base_rate=0.19, auc=0.85, sizes=(100, 300)),
        "hopeless": sl.plan(sl.Expected(50, 100), base_rate=0.19, auc=0.85, sizes=(100,)),
        "drift": sl.drift(scores, scores[:200] + 0.1), "curve": sl.guarantee_curve(scores, labels),
        "pointwise": curve_by("exact", scores, labels),
        "labelling": labelling, "refused": refused, "done": done, "stop": stop, "over": over,
        "evaluation": sl.evaluate(policy, scores, labels),
        "by group": sl.evaluate(grouped, scores, labels, groups=groups),
    }  # fmt: skip


NAMES = [
    "policy", "grouped", "crowd", "withdrawn", "per pool", "recall", "precision", "by rank", "monitor", "alarmed",
    "campaign", "early", "screened", "plan", "hopeless", "drift", "curve", "pointwise", "labelling", "refused", "done",
    "stop", "over", "evaluation", "by group",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_object_in_every_state_shows_itself(name):
    shown = objects()[name]
    line = repr(shown)
    assert line.startswith(f"<{type(shown).__name__}: ")
    assert line.endswith(">")
    assert len(line) < 420
    assert "\n" not in line
    text = shown.describe()
    assert len(text) > 40
    page = shown._repr_html_()
    found = Tags(page)
    assert found.tags <= ALLOWED
    assert found.attributes <= {"style", "class", "scope"}
    assert "<script" not in page.lower()
    assert "onerror=" not in page or "&lt;img" in page


@pytest.mark.parametrize("name", [name for name in NAMES if name != "early"])
def test_every_object_draws_itself(name, tmp_path):
    shown = objects()[name]
    if name in ("by rank", "precision") and all(each.scores is None for each in shown.cutoffs):
        pytest.skip("keeps no sketch of its scores")
    shown.plot(path=tmp_path / "picture.svg")
    assert b"</svg>" in (tmp_path / "picture.svg").read_bytes()


def test_the_html_of_a_policy_says_promise_list_evidence_and_folds_the_conditions():
    policy = objects()["policy"]
    page = html.unescape(policy._repr_html_())
    assert policy.promise in page
    assert f"about {policy.cutoffs[0].steps[0].share * 100:.3g} of 100 candidates" in page
    assert f"AUC {policy.cutoffs[0].scores.auc:.2f}" in page
    assert "as many as needed" in page
    folded = page[page.index("<details>") :]
    assert all(condition in folded for condition in policy.conditions)
    assert all(condition not in page[: page.index("<details>")] for condition in policy.conditions)


def test_hostile_names_are_text():
    page = as_html(
        EVIL, Display("x", EVIL, [(EVIL, EVIL)], [EVIL], [(EVIL, [EVIL]), (EVIL, [f"a   {EVIL}"])])
    )
    assert Tags(page).tags <= ALLOWED
    assert html.unescape(page).count(EVIL) == 9
    assert EVIL not in page
    assert EVIL not in objects()["grouped"]._repr_html_()
    assert html.escape(EVIL) in objects()["grouped"]._repr_html_()


def test_what_was_never_finished_still_has_a_repr():
    assert repr(sl.Campaign.__new__(sl.Campaign)).startswith("<surelist.lifecycle.campaign.Campaign object")


def test_a_selection_shows_itself():
    import polars as pl

    scores, _, groups = rows()
    table = pl.DataFrame({"score": scores, "group": groups, "pool": [EVIL] * 750 + ["b"] * 750})
    done = sl.select_table(table, objects()["grouped"], score="score", group="group", pool="pool")
    assert repr(done) == f"<Selection: {done.shortlisted:,} of 1,500 candidates on the shortlist>"
    assert Tags(done._repr_html_()).tags <= ALLOWED
    bars: Any = done.plot().patches
    assert bars[0].get_height() == pytest.approx(done.pools[0].shortlisted / done.pools[0].candidates)
    assert "pools; " in done.describe()


def test_the_curve_marks_the_point_that_was_chosen():
    curve = objects()["curve"]
    size, certified = curve.shortest(5)
    marked = curve.plot(k=5).lines[-1]
    assert (marked.get_xdata()[0], marked.get_ydata()[0]) == (size, certified)
    assert certified >= 5
    assert (curve.qualified[curve.list_size < size] < 5).all()
    with pytest.raises(sl.InvalidInput, match="at most"):
        curve.shortest(99)


def test_the_headline_is_true_of_the_state():
    shown = objects()
    assert "Not certifiable" in shown["refused"]._display().promise
    assert shown["done"]._display().promise == shown["done"].policy.promise
    for name in ("withdrawn", "screened"):
        assert "Nothing is promised any more" in shown[name]._display().promise
        assert not any("rests on" in heading for heading, _ in shown[name]._display().folded)
    assert "1 pool," in repr(shown["monitor"])
    assert "no number of rows" in repr(shown["hopeless"])
