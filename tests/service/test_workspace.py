"""The review workspace by plain forms: two people mark, search, sort, disagree, settle, and see what is kept."""

from __future__ import annotations

import re
import time

import pytest
from starlette.testclient import TestClient

from surelist.errors import InvalidInput
from surelist.service import jobs, worklist
from surelist.service.app import create_app
from surelist.service.choices import ChosenColumns
from surelist.service.errors import NotFound
from surelist.service.record import access
from surelist.service.record.verify import verify
from surelist.service.settings import Settings
from surelist.service.worklist import Asked, Worklist
from tests.helpers.record import by
from tests.helpers.service import close, csv_text
from tests.service.test_api import CSV

ROWS = "id,score,city,pay\n" + "".join(
    f"c{i:03d},{i / 200},{'Ulm' if i % 3 else 'bonn'},{999 - 7 * i}\n" for i in range(120)
)


@pytest.fixture
def laid_out(tmp_path):
    (tmp_path / "list.csv").write_text(ROWS)
    assert (
        worklist.build(tmp_path / "list.csv", tmp_path / "x.list", ChosenColumns(id="id", score="score"))
        == 120
    )
    return tmp_path / "x.list"


def test_a_list_is_ranked_searched_and_sorted(laid_out):
    status = {"c119": "yes", "c118": "split"}
    with Worklist(laid_out, lambda c: status.get(c, "open"), lambda c: c == "c119") as work:
        assert work.length == 120
        assert [work.candidate(rank).id for rank in work.ranks(Asked("all"))[:2]] == ["c119", "c118"]
        assert len(work.ranks(Asked("open"))) == 118
        assert list(work.ranks(Asked("mine"))) == [1]
        assert len(work.ranks(Asked("todo"))) == 119
        assert list(work.ranks(Asked("split"))) == [2]
        by_pay = [work.candidate(rank).cells[3] for rank in work.ranks(Asked("all", sort="pay"))]
        assert [int(each) for each in by_pay] == sorted(int(each) for each in by_pay)  # numbers as numbers
        down = work.ranks(Asked("all", sort="city", down=True))
        assert [work.candidate(rank).cells[2] for rank in (down[0], down[-1])] == ["Ulm", "bonn"]
        assert len(work.ranks(Asked("all", search="BONN"))) == 40
        assert work.ranks(Asked("all", search="' OR 1=1 --")) == []
        assert work.strangers(["c001", "nobody"]) == ["nobody"]
        with pytest.raises(InvalidInput, match="no column 'nonsense'"):
            work.ranks(Asked("all", sort="nonsense"))


def test_a_list_that_was_just_removed_is_not_there(tmp_path):
    for name in ("gone.list", "gone?mode=rwc#.list"):
        with pytest.raises(NotFound, match="no longer kept"):
            Worklist(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("rows", "message"), [("a,1\na,2", "two candidates on the shortlist alike"), ("a,1\n,2", "has none")]
)
def test_ids_that_cannot_be_told_apart_are_refused(tmp_path, rows, message):
    (tmp_path / "list.csv").write_text(f"id,score\n{rows}\n")
    with pytest.raises(InvalidInput, match=message):
        worklist.build(tmp_path / "list.csv", tmp_path / "x.list", ChosenColumns(id="id", score="score"))
    assert not (tmp_path / "x.list").exists()


class Person:
    """A browser without script, logged in."""

    def __init__(self, app, name: str, role: str = "operator", policy: str | None = None) -> None:
        self.client = TestClient(app, base_url="http://localhost")
        self.client.headers["accept"] = "text/html"
        registry = app.state.runtime.registry
        policies = [policy] if policy else []
        token, text = access.create_token(by(registry, "test"), name, role, policies)
        self.client.headers["authorization"] = f"Bearer {text}"
        cookie = access.begin_session(registry, token, 3600)
        self.client.cookies.set("surelist", cookie, domain="localhost.local")
        self.csrf = access.csrf_token(cookie)

    def get(self, path: str):
        return self.client.get(path)

    def post(self, path: str, files=None, **form: str):
        return self.client.post(path, data={"csrf": self.csrf, **form}, files=files)


class Team:
    def __init__(self, settings: Settings) -> None:
        self.app = create_app(settings)
        self.runtime = self.app.state.runtime
        self.ann, self.bob = Person(self.app, "Ann"), Person(self.app, "Bob")
        past = csv_text(2000, labelled=True)
        made = self.ann.client.post(
            "/api/v1/calibrate?k=5&pool_size=100&name=Trial", content=past, headers=CSV
        )
        self.policy = made.json()["hash"]

    def shortlist(self, **form: str) -> str:
        pool = {"file": ("monday.csv", csv_text(300, labelled=False, seed=1))}
        page = self.ann.post(f"/policies/{self.policy}/pool", files=pool)
        chosen = {"score": "score", "id": "candidate", "name": "Monday", "note": "site north", **form}
        done = self.ann.post(page.url.path, **chosen)
        assert done.status_code == 200, done.text
        return done.url.path


@pytest.fixture
def team(settings):
    from msgspec.structs import replace

    team = Team(replace(settings, login=True))
    yield team
    close(team.app)


def current(page) -> str:
    return re.search(r'<h2 id="who" tabindex="-1">(.*?)</h2>', page.text).group(1)


@pytest.mark.slow
def test_two_people_review_a_list(team):
    path = team.shortlist()
    page = team.ann.get(path + "/review")
    best = current(page)
    scores = [
        float(each)
        for each in re.findall(r'</span><span class="n">([0-9.]+)</span><span class="mark', page.text)
    ]
    assert scores == sorted(scores, reverse=True)
    assert "Kept until" in page.text
    after = team.ann.post(path + "/marks", rank="1", mark="yes", show="open")
    assert current(after) != best
    assert f"{best}: <strong>yes</strong>, saved." in after.text
    theirs = team.bob.get(path + "/review?show=todo&at=1")
    assert current(theirs) == best
    assert "You see how once you have marked it yourself" in theirs.text
    assert "Ann" not in theirs.text[theirs.text.index('id="candidate"') : theirs.text.index('class="cells"')]
    split = team.bob.post(path + "/marks", rank="1", mark="no", show="todo")
    assert "1 disagreement" in split.text
    assert current(team.ann.get(path + "/review?show=split")) == best
    settled = team.bob.post(path + "/marks", rank="1", mark="settle-yes", show="split")
    assert "disagreement</strong>" not in settled.text
    undone = team.bob.post(path + "/marks", rank="2", mark="no", show="all")
    assert "saved" in undone.text
    undone = team.bob.post(path + "/marks", rank="2", mark="back", show="all")
    assert re.search(r"1 of \d+ reviewed: 1 yes, 0 no\.", undone.text)
    noted = team.bob.post(path + "/notes", rank="2", text="<b>speaks Dutch</b>")
    assert "&lt;b&gt;speaks Dutch&lt;/b&gt;" in noted.text
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_reviewed_file_comes_back(team):
    path = team.shortlist()
    text = team.ann.get(path + "/reviews.csv").content.decode("utf-8-sig")
    lines = text.splitlines()
    assert lines[0] == "rank,candidate,review,reviewers,last,notes,age,site,score"
    ids = [line.split(",")[1] for line in lines[1:]]
    said = "candidate;review\n" + "".join(
        f"{each};{word}\n" for each, word in zip(ids, ("Ja", "nein", "1", ""), strict=False)
    )
    file = {"file": ("back.csv", said)}
    page = team.ann.post(path + "/reviews", files=file, id="candidate", label="review")
    assert re.search(r"3 of \d+ reviewed: 2 yes, 1 no\.", page.text), re.findall("counts.*", page.text)
    for wrong, message in (
        (said + "nobody;yes\n", "&#39;nobody&#39; are not on this list"),
        (said + f"{ids[4]};maybe\n", "expected yes or no, got &#39;maybe&#39; in row 6"),
    ):
        page = team.ann.post(
            path + "/reviews", files={"file": ("back.csv", wrong)}, id="candidate", label="review"
        )
        assert page.status_code == 400
        assert message in page.text
    assert "3 of" in team.ann.get(path).text


@pytest.mark.slow
def test_what_is_kept_is_said_and_can_be_deleted(team):
    began = time.time()
    path = team.shortlist(keep="86400")
    ended = time.time()
    team.ann.post(path + "/notes", rank="1", text="call back")
    team.ann.post(path + "/marks", rank="1", mark="yes")
    kept = team.ann.get("/kept").text
    assert "Monday" in kept
    assert any(time.strftime("%Y-%m-%d", time.gmtime(made + 86400)) in kept for made in (began, ended))
    spool = team.runtime.settings.spool
    assert [file.suffix for file in sorted(spool.glob("made-*"))] == [".csv", ".list"]
    gone = team.ann.post(path + "/forget")
    assert "No list is kept now" in gone.text
    assert not list(spool.iterdir())
    assert team.ann.get(path + "/review").status_code == 404
    assert "1 yes" in team.ann.get(path).text  # marks stay
    assert [e.action for e in team.runtime.registry.entries(limit=1)] == ["list.removed"]
    assert verify(team.runtime.registry.database).intact
    assert team.ann.post(path + "/marks", rank="1", mark="no").status_code == 404


def test_uploads_that_wait_are_shown_to_whoever_sent_them_and_can_be_deleted(team):
    pool = {"file": ("monday <b>.csv", csv_text(300, labelled=False, seed=1))}
    began = time.time()
    page = team.ann.post(f"/policies/{team.policy}/pool", files=pool)
    ended = time.time()
    ident = page.url.path.rpartition("/")[2]
    kept = team.ann.get("/kept").text
    assert f'<a href="/pools/{ident}">monday &lt;b&gt;.csv</a>' in kept
    assert any(time.strftime("%Y-%m-%d %H", time.gmtime(sent + 3600)) in kept for sent in (began, ended))
    other = team.bob.get("/kept").text
    assert "monday" not in other
    assert "1 upload waits for other people" in other
    assert team.bob.post(f"/kept/uploads/{ident}/delete").status_code == 404
    gone = team.ann.post(f"/kept/uploads/{ident}/delete")
    assert "monday" not in gone.text
    assert not list(team.runtime.settings.spool.iterdir())
    assert team.ann.get(f"/pools/{ident}").status_code == 404


def test_a_download_outlives_the_list_that_somebody_removes(team):
    ident = team.shortlist().rpartition("/")[2]
    spool, kept = team.runtime.spool, team.runtime.spool.result(ident)
    text = kept.upload.path.read_bytes()
    path = jobs.unchanged(spool, kept)
    spool.drop_result(kept)
    assert path.read_bytes() == text
    with pytest.raises(NotFound, match="no longer kept"):
        jobs.unchanged(spool, kept)


@pytest.mark.slow
def test_lists_go_when_their_time_is_up(team):
    path = team.shortlist()
    ident = path.rpartition("/")[2]
    kept = team.runtime.spool.result(ident)
    team.runtime.spool.keep_result(ident, kept.upload, -1, kept.columns)
    assert team.runtime.spool.sweep() == [ident]
    assert not list(team.runtime.settings.spool.iterdir())


def test_a_time_that_is_not_offered_is_refused(team):
    pool = {"file": ("monday.csv", csv_text(300, labelled=False, seed=1))}
    page = team.ann.post(f"/policies/{team.policy}/pool", files=pool)
    refused = team.ann.post(page.url.path, score="score", id="candidate", keep="999999999")
    assert refused.status_code == 400
    assert "choose for how long" in refused.text


@pytest.mark.slow
def test_names_and_files_are_on_record(team):
    path = team.shortlist()
    facts = by(team.runtime.registry).selection(path.rpartition("/")[2]).facts
    assert (facts["name"], facts["note"], facts["file"]) == ("Monday", "site north", "monday.csv")
    assert facts["kept_until"].endswith("UTC")
    assert "Monday: site north" in team.ann.get(path).text
