"""The record by page: sentences for every kind of entry, search, and verifying now; on both databases."""

from __future__ import annotations

import html
import re

import pytest
from msgspec import ValidationError
from msgspec.structs import replace

from surelist.service import team_pages
from surelist.service.errors import TooMuchWork
from surelist.service.record import access, event, view as sentences
from surelist.service.record.events import PolicyWithdrawn
from surelist.service.record.record import LOCAL_ACTOR, Actor
from surelist.service.record.verify import verify
from surelist.service.record.view import KINDS, Search, View
from tests.helpers.record import by, forge
from tests.helpers.service import close
from tests.service.test_workspace import Person, Team


@pytest.fixture
def team(settings):
    team = Team(replace(settings, login=True))
    yield team
    close(team.app)


def told(team: Team, **asked: str) -> list[str]:
    view = View(team.runtime.registry, LOCAL_ACTOR)
    told = sentences.lines(view, view.find(Search(**asked), limit=100))
    return [f"{each.who} {''.join(piece.text for piece in each.pieces)}" for each in told]


def text(page) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text)))


def ids(team: Team, path: str) -> list[str]:
    return [line.split(",")[1] for line in team.ann.get(path + "/reviews.csv").text.splitlines()[1:]]


@pytest.mark.slow
def test_a_week_in_sentences(team):
    path = team.shortlist(watch="1")
    names = ids(team, path)
    marks = "candidate,review\n" + "".join(f"{each},{int(n < 7)}\n" for n, each in enumerate(names[:12]))
    team.ann.post(path + "/reviews", files={"file": ("r.csv", marks)}, id="candidate", label="review")
    team.bob.post(path + "/marks", rank="1", mark="no")
    team.ann.post(path + "/marks", rank="1", mark="settle-yes")
    team.bob.post(path + "/marks", rank="1", mark="back")
    team.bob.post(path + "/notes", rank="1", text="call back")
    team.ann.post(path + "/describe", name="March pool", note="")
    team.ann.post(path + "/finish", missing="1")
    registry = team.runtime.registry
    access.change_token(by(registry, "x"), access.list_tokens(registry)[1].id, "viewer", [])
    boss = Person(team.app, "Cleo", "admin")
    boss.post(f"/policies/{team.policy}/retire", reason="a new model.")
    team.ann.post(path + "/forget")
    rest = len(names) - 12
    assert told(team)[: -len(["token", "session"] * 2) or None] == [
        "Ann deleted the candidates of March pool: deleted by hand.",
        "Cleo retired the policy Trial: a new model.",
        "Cleo logged in.",
        "test let Cleo in as admin.",
        "x made Bob viewer, for all policies.",
        f"Ann finished the reviews of March pool: 7 qualified, {rest} without a review.",
        "Ann named the shortlist March pool “March pool”.",
        "Bob wrote a note about a candidate of March pool.",
        "Bob took back 1 mark, in March pool.",
        "Ann settled 1 disagreement (1 as qualified), in March pool.",
        "Bob marked 1 candidate as not qualified, in March pool.",
        "Ann marked 7 candidates as qualified and 5 as not qualified, in March pool.",
        f"Ann shortlisted {len(names)} of 300 candidates of March pool, by the policy Trial.",
        "Ann saved the policy Trial.",
        "Ann looked at past rows and asked: at least 5 qualified candidates on average in pools of 100.",
    ]
    assert verify(team.runtime.registry.database).problems == []
    page = boss.get("/record")
    assert "Ann marked 7 candidates as qualified" in text(page).replace("  ", " ")
    assert f'<a href="{path}">March pool</a>' in page.text
    assert "reviews.received" in page.text  # behind the details
    # search: people, names that came later, kinds, policies, days
    assert [each.split()[0] for each in told(team, words="bob", kind="reviews")] == ["Bob"] * 3
    assert len(told(team, words="march POOL")) == 9
    assert told(team, words="100%") == []
    assert told(team, words="cleo", kind="team") == ["Cleo logged in.", "test let Cleo in as admin."]
    assert len(told(team, policy=team.policy)) == 11
    assert told(team, since="2100-01-01") == []
    assert told(team, until="2100-01-01", kind="policies") == told(team, kind="policies")
    assert told(team, since="nonsense", kind="looks")
    assert len(boss.get("/record?q=march&kind=reviews").text) < len(page.text)


def test_long_records_have_pages(team):
    registry = team.runtime.registry
    for number in range(120):
        forge(registry, "x", "rows.looked", "f" * 64, {"how": "curve", "number": number})
    forge(registry, "x", "rows.looked", "f" * 64, {}).result()
    boss, seen = Person(team.app, "Cleo", "admin"), 0
    address = "/record?kind=looks"
    while address:
        page = boss.get(address).text
        seen += page.count("Receipt</dt>")
        older = re.search(r'href="([^"]+before=[0-9]+)"', page)
        address = html.unescape(older[1]) if older else ""
        assert not older or "kind=looks" in address
    assert seen == 122
    assert "Nothing fits" in boss.get("/record?q=nobody").text


def test_every_kind_of_entry_has_a_sentence_and_a_kind():
    """Its class has both; an unknown one is shown by its code."""
    beginnings = tuple(each for _, many in KINDS.values() for each in many)
    assert len(event.KINDS) == 25
    for action, kind in event.KINDS.items():
        assert action.startswith(beginnings)
        assert kind.sentence or "said" in vars(kind)


def test_an_event_is_added_by_one_class(team, monkeypatch):
    monkeypatch.setattr(event, "KINDS", dict(event.KINDS))

    class MoonLanded(event.Event, frozen=True, kw_only=True):
        action = "moon.landed"
        feet: int

        def said(self, subject, names, seq):
            return [f"set {self.feet} feet on {subject}."]

        def verify(self, entry, story):
            if self.feet != 2:
                story.problem(entry, "nobody has so many feet")

    registry = team.runtime.registry
    registry.append("x", "the moon", MoonLanded(feet=2)).result()
    assert verify(registry.database).intact
    written = registry.append("x", "the moon", MoonLanded(feet=3)).result()
    verdict = verify(registry.database)
    assert verdict.problems == [f"entry {written.entry.seq}: nobody has so many feet"]
    assert told(team)[:2] == ["x set 3 feet on the moon.", "x set 2 feet on the moon."]


def test_what_could_not_be_read_again_is_not_written(team):
    registry = team.runtime.registry
    before = len(registry.entries(limit=None))
    with pytest.raises(ValidationError):
        registry.append("x", "p", PolicyWithdrawn(reason="r", pools=1, e_value=float("nan"))).result()
    assert len(registry.entries(limit=None)) == before
    assert verify(registry.database).intact


def test_entries_that_cannot_be_told_are_shown_by_their_code(team):
    registry = team.runtime.registry
    forge(registry, "x", "moon.landed", "m", {}).result()
    forge(registry, "command line (root)", "labelling.told", "nobody", {}).result()
    forge(
        registry, "local", "reviews.received", "gone", {"reviews": 2, "qualified": 0, "sha256": ""}
    ).result()
    assert told(team)[:3] == [
        "Somebody at this machine sent 2 marks, in gone.",
        "root, at the command line, entered 'labelling.told', which cannot be read.",
        "x entered 'moon.landed'.",
    ]


def test_who_may_read_it(team):
    with pytest.raises(Exception, match="one policy only"):
        View(team.runtime.registry, Actor("x", "admin", (team.policy,))).find(Search())
    assert Person(team.app, "Lim", "admin", team.policy).post("/record/verify").status_code == 403


# -- verify now


@pytest.mark.slow
def test_verify_now_says_what_was_and_what_was_not_verified(team):
    team.shortlist()
    auditor = Person(team.app, "Vera", "viewer")
    head = re.search(r"To note now: <code>([^<]+)", auditor.get("/record").text)[1]
    before = verify(team.runtime.registry.database)
    done = text(auditor.post("/record/verify"))
    assert "The record is intact" in done
    assert f"{before.entries} entries are as written" in done
    assert "Every entry: its hash" in done
    assert "only a receipt noted elsewhere shows that" in done
    done = text(auditor.post("/record/verify", receipt=f" {head}\n"))
    assert "your receipt is among them" in done
    assert f"What came after entry {head.partition(':')[0]} could have been cut off" in done
    assert auditor.post("/record/verify", receipt="nonsense").status_code == 400
    assert auditor.post("/record/verify", receipt="1:0 " * 30).status_code == 400
    assert verify(team.runtime.registry.database).entries == before.entries
    done = text(auditor.post("/record/verify", receipt="2:" + "0" * 64))
    assert "The record is not intact" in done
    assert "Entry 2 is not the one noted elsewhere." in done


@pytest.mark.slow
def test_verify_now_finds_a_changed_row(team):
    registry = team.runtime.registry
    registry.writer.submit(
        lambda batch: batch.connection.execute("UPDATE sessions SET expires = '2999-01-01'")
    ).result()
    done = text(Person(team.app, "Vera", "viewer").post("/record/verify"))
    assert "The record is not intact" in done
    assert "expires was changed" in done


def test_verifying_takes_a_process_that_can_be_stopped(team, monkeypatch):
    def stopped(gone, function, *args):
        assert function is team_pages._verify_there
        raise TooMuchWork("it was stopped after 300 seconds")

    monkeypatch.setattr(team.runtime.heavy.workers, "run", stopped)
    answer = Person(team.app, "Vera", "viewer").post("/record/verify")
    assert answer.status_code == 413
    assert "was stopped after 300 seconds" in answer.text
