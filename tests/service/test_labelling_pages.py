"""From no labels at all to a certified list, by plain forms: draw, answer, count, save; all of it on record."""

from __future__ import annotations

import asyncio
import html
from typing import Any

import httpx
import numpy as np
import pytest
import xlsxwriter
from msgspec import structs
from msgspec.structs import replace

from surelist import examples
from surelist._numerals import about
from surelist.errors import InvalidInput
from surelist.service.record.event import KINDS
from surelist.service.record.labellings import AnswersSoFar
from surelist.service.record.log import Key
from surelist.service.record.record import LOCAL_ACTOR
from surelist.service.record.verify import verify
from surelist.service.record.view import View
from surelist.workflows import labelling_record
from tests.helpers.furnished import LABELLING
from tests.helpers.record import by, forge, save
from tests.helpers.service import BUSY, close
from tests.service.test_api import CSV
from tests.service.test_workspace import Person, Team

SCORES, LABELS = examples.population(np.random.default_rng(6), 4000)
SCORES = SCORES.round(9)  # as the file has them
COLLECTION = "person,score\n" + "".join(f"p{i:05d},{score:.9f}\n" for i, score in enumerate(SCORES))


@pytest.fixture
def team(settings):
    team = Team(replace(settings, login=True))
    yield team
    close(team.app)


def begin(team: Team, **form: str):
    page = team.ann.post("/labellings", files={"file": ("people.csv", COLLECTION)})
    return team.ann.post(page.url.path, **{**LABELLING, "labels": "200", "name": "Spring", **form})


def answer(team: Team, ident: str, leave: int = 0):
    """Answer all that is asked, but the last ones; in a file, as a fast person would."""
    path = f"/selections/{ident}"
    ids = [line.split(",")[1] for line in team.ann.get(path + "/reviews.csv").text.splitlines()[1:]]
    rows = [(each, int(LABELS[int(each[1:])])) for each in ids[: len(ids) - leave]]
    text = "person,review\n" + "".join(f"{each},{label}\n" for each, label in rows)
    sent = team.ann.post(path + "/reviews", files={"file": ("a.csv", text)}, id="person", label="review")
    assert sent.status_code == 200, sent.text
    return len(ids)


@pytest.mark.slow
def test_from_no_labels_to_a_policy(team):
    page = begin(team)
    ident = page.url.path.rpartition("/")[2]
    assert "candidates to label now" in page.text
    assert "Spring" in team.ann.get("/").text
    one = team.bob.post(f"/selections/{ident}/marks", rank="1", mark="yes")
    assert "Label " in one.text
    assert "saved" in one.text
    team.bob.post(f"/selections/{ident}/marks", rank="1", mark="back")
    early = team.ann.post(f"/labellings/{ident}/tell")
    assert early.status_code == 400
    assert "none is in yet" in early.text
    asked = 0
    for _ in range(4):
        asked += answer(team, ident)
        page = team.ann.post(f"/labellings/{ident}/tell")
        if "candidates to label now" not in page.text:
            break
    assert asked <= 200
    assert "This can be promised" in page.text
    assert "at least 5 qualified candidates on average over pools of 100" in page.text
    saved = team.ann.post(f"/labellings/{ident}/save", name="Spring policy")
    assert saved.url.path.startswith("/policies/")
    policy = team.runtime.registry.policy(saved.url.path.rpartition("/")[2]).policy
    listed = policy.threshold <= SCORES
    assert listed.mean() < 0.25
    done = team.ann.client.post(
        f"/api/v1/policies/{saved.url.path.rpartition('/')[2]}/select", json={"rows": [{"score": 0.99}]}
    )
    assert done.status_code == 200
    assert "Spring</strong>" not in team.ann.get("/").text  # it waits no more
    assert verify(team.runtime.registry.database).intact
    assert "p0" not in "".join(
        entry.details for entry in team.runtime.registry.entries(KINDS["labelling.started"])
    )


@pytest.mark.slow
def test_the_labelling_page_says_of_answers_that_do_not_count_yet_that_they_do_not(team):
    """Not that all are answered, and below that none is."""
    ident = begin(team).url.path.rpartition("/")[2]
    page = team.ann.get(f"/labellings/{ident}").text
    assert "None of them is answered yet." in page
    asked = answer(team, ident)
    page = team.ann.get(f"/labellings/{ident}").text
    assert "All of them are answered; these answers do not count yet." in page
    before_the_design = page.partition("<details")[0]
    assert "None yet." in before_the_design
    assert f"of {asked}" not in before_the_design
    page = team.ann.post(f"/labellings/{ident}/tell").text
    assert f"Pilot: {asked} of {asked}, " in page
    assert "None of them is answered yet." in page
    assert f"{asked} answers count" in page


def test_answers_that_came_by_api_are_not_asked_for_on_the_page(team):
    started = team.ann.client.post(
        "/api/v1/labellings?score=score&id=person&labels=60", content=COLLECTION, headers=CSV
    ).json()
    address = f"/api/v1/labellings/{started['id']}"
    rows = [each["row"] for each in team.ann.client.get(f"{address}/next").json()]
    for row in rows[:3]:
        sent = {"labels": [{"row": row, "qualified": False}]}
        assert team.ann.client.post(f"{address}/labels", json=sent).status_code == 200
    page = team.ann.get(f"/selections/{started['id']}/review").text
    assert f"Label {len(rows) - 3} candidates" in page
    file = team.ann.get(f"/selections/{started['id']}/reviews.csv").text
    assert len(file.splitlines()) == len(rows) - 3 + 1
    assert f"{len(rows) - 3} candidates to label now" in team.ann.get(f"/labellings/{started['id']}").text
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_answers_that_are_in_count_and_the_others_are_asked_for_again(team):
    ident = begin(team).url.path.rpartition("/")[2]
    asked = answer(team, ident, leave=3)
    page = team.ann.post(f"/labellings/{ident}/tell").text
    assert "3 candidates to label now" in page
    assert f"Pilot: {asked - 3} of {asked}, " in page
    assert "Label 3 candidates" in team.ann.get(f"/selections/{ident}/review").text
    assert answer(team, ident) == 3
    assert f"Pilot: {asked} of {asked}, " in team.ann.post(f"/labellings/{ident}/tell").text
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_triage_of_these_candidates_says_of_everyone_which_list_they_are_on(team):
    promise = {"promise": "triage", "accept": "60", "reject_recall": "80", "labels": "800"}
    ident = begin(team, **promise).url.path.rpartition("/")[2]
    for _ in range(12):
        answer(team, ident)
        page = team.ann.post(f"/labellings/{ident}/tell").text
        if "candidates to label now" not in page:
            break
    assert "<dt>Accepted</dt>" in page
    assert f'href="/labellings/{ident}/report"' in page
    report = team.ann.get(f"/labellings/{ident}/report").text
    assert "accepted are qualified, and they hold at least 80% of all qualified" in report
    assert "<title>Spring</title>" in report
    assert "accepted are qualified, and they hold at least 80% of all qualified" in page
    lines = team.ann.post(f"/labellings/{ident}/list").text.splitlines()
    assert lines[0] == "\ufeffperson,score,triage"
    assert len(lines) == len(SCORES) + 1
    lists = np.array([line.rpartition(",")[2] for line in lines[1:]])
    accepted, good = lists == "accept", np.array(LABELS, dtype=bool)
    assert set(lists) == {"accept", "reject"}
    assert good[accepted].mean() >= 0.6  # the draws are seeded by this test's name
    assert good[accepted].sum() >= 0.8 * good.sum()
    made = team.runtime.registry.entries(KINDS["labelling.listed"], subject=ident)
    assert made[0].facts["shortlisted"] == accepted.sum()
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_what_is_kept_of_a_labelling_is_shown_and_goes_with_its_notes_also_after_the_last_answer(team):
    ident = begin(team, promise="at-least", many="3", labels="40").url.path.rpartition("/")[2]
    team.ann.post(f"/selections/{ident}/notes", rank="1", text="rang twice")
    while "candidates to label now" in team.ann.get(f"/labellings/{ident}").text:
        answer(team, ident)
        team.ann.post(f"/labellings/{ident}/tell")
    spool = team.runtime.spool
    assert spool.result(ident) is None
    assert f"/selections/{ident}/forget" in team.ann.get("/kept").text
    kept = spool.collection(ident)
    spool._write("labelling", replace(kept, until=0))
    assert spool.sweep() == [ident]  # whose notes then go
    spool._write("labelling", kept)
    team.ann.post(f"/selections/{ident}/forget")
    assert not list(team.runtime.settings.spool.iterdir())
    assert not by(team.runtime.registry).all_notes(ident)
    assert verify(team.runtime.registry.database).intact


def test_a_collection_whose_list_goes_a_moment_before_it_is_forgotten_once(team):
    ident = begin(team).url.path.rpartition("/")[2]
    spool = team.runtime.spool
    spool._write("result", replace(spool.result(ident), until=0))
    assert spool.sweep() == []
    spool._write("labelling", replace(spool.collection(ident), until=0))
    assert spool.sweep() == [ident]


def test_those_to_label_can_be_taken_home_with_all_columns(team):
    ident = begin(team, id="").url.path.rpartition("/")[2]
    header, first, *_ = team.ann.get(f"/selections/{ident}/reviews.csv").text.lstrip("\ufeff").splitlines()
    assert header == "rank,surelist_row,review,reviewers,last,notes,person,score"
    row = int(first.split(",")[1])
    assert first == f"1,{row},,,,,p{row:05d},{SCORES[row]:.9f}"


@pytest.mark.slow
def test_answers_that_will_not_come_end_a_stage(team):
    ident = begin(team).url.path.rpartition("/")[2]
    answer(team, ident, leave=3)
    page = team.ann.post(f"/labellings/{ident}/tell", missing="1")
    assert page.status_code == 200
    told = team.runtime.registry.entries(KINDS["labelling.told"], subject=ident)
    assert told[0].facts["labels"].count(None) == 3
    again = team.ann.post(f"/labellings/{ident}/tell")
    assert again.status_code == 400  # the next stage has no answers yet
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_recall_needs_every_answer(team):
    page = begin(team, promise="recall", share="80", labels="100")
    ident = page.url.path.rpartition("/")[2]
    assert "this promise needs every answer" in page.text
    answer(team, ident, leave=1)
    refused = team.ann.post(f"/labellings/{ident}/tell", missing="1")
    assert refused.status_code == 400
    assert "recall needs the label of every row" in refused.text


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["recall", "precision"])
def test_a_promise_about_the_collection_gives_its_list(team, promise):
    ident = begin(team, promise=promise, share="60", purity="60", labels="300").url.path.rpartition("/")[2]
    page = "candidates to label now"
    while "candidates to label now" in page:
        answer(team, ident)
        page = team.ann.post(f"/labellings/{ident}/tell").text
    assert "Download the list" in page
    assert "Save as a policy" not in page
    refused = team.ann.post(f"/labellings/{ident}/save", name="x")
    assert refused.status_code == 400
    assert "these very candidates" in refused.text
    listed = team.ann.post(f"/labellings/{ident}/list").text.splitlines()[1:]
    told = team.runtime.registry.entries(KINDS["labelling.told"], subject=ident)[::-1]
    names = {line.split(",")[0] for line in listed}
    begun = team.runtime.registry.one(KINDS["labelling.started"], ident, "labelling").facts["state"]
    answered = labelling_record.resumed(begun)
    for each in told:
        answered.tell(each.facts["rows"], each.facts["labels"])
    listed_rows = np.flatnonzero(answered.select(SCORES)).tolist()
    assert names == {f"p{row:05d}" for row in listed_rows}
    facts = team.runtime.registry.entries(KINDS["labelling.listed"])[0].facts
    assert facts["shortlisted"] == len(listed)
    assert "Spring</strong>" not in team.ann.get("/").text
    assert verify(team.runtime.registry.database).intact


def test_what_does_not_fit_is_said_on_the_form(team):
    for wrong, message in (
        ({"labels": "many"}, "expected a number"),
        ({"score": ""}, "choose the column"),
        ({"alpha": "0"}, "above 0"),
    ):
        page = begin(team, **wrong)
        assert page.status_code == 400
        assert message in page.text
    assert not team.runtime.registry.entries(KINDS["labelling.started"])


@pytest.mark.slow
def test_forged_labels_are_noticed(team):
    ident = begin(team).url.path.rpartition("/")[2]
    forge(
        team.runtime.registry,
        "eve",
        "labelling.told",
        ident,
        {"rows": [1, 2, 3], "labels": [1, 1, 1], "sha256": ""},
    ).result()
    assert "cannot be read (InvalidInput)" in verify(team.runtime.registry.database).problems[0]


@pytest.mark.slow
def test_a_token_for_one_policy_labels_nothing(team):
    ident = begin(team).url.path.rpartition("/")[2]
    cy = Person(team.app, "Cy", policy=team.policy)
    assert cy.get(f"/labellings/{ident}").status_code == 403
    assert cy.get(f"/selections/{ident}/review").status_code == 403
    assert cy.post(f"/selections/{ident}/marks", rank="1", mark="yes").status_code == 403
    assert ident not in cy.get("/").text + cy.get("/kept").text
    viewer = Person(team.app, "Vi", "viewer").get(f"/labellings/{ident}").text
    assert "Answer</a>" not in viewer
    team.ann.post(f"/selections/{ident}/forget")
    assert not list(team.runtime.settings.spool.iterdir())
    assert "no longer kept here" in team.ann.get(f"/labellings/{ident}").text


@pytest.mark.slow
def test_a_labelling_by_api(team):
    post, get = team.ann.client.post, team.ann.client.get
    started = post("/api/v1/labellings?score=score&id=person&labels=200", content=COLLECTION, headers=CSV)
    assert started.status_code == 201, started.text
    address = f"/api/v1/labellings/{started.json()['id']}"
    now = started.json()
    assert now["waiting"]
    for turn in range(4):
        rows = get(f"{address}/next").json()
        assert len(rows) == now["waiting"]
        assert rows[0]["columns"]["score"] == COLLECTION.splitlines()[rows[0]["row"] + 1].split(",")[1]
        sent = {"labels": [{"row": each["row"], "qualified": bool(LABELS[each["row"]])} for each in rows]}
        keys = {"Idempotency-Key": f"turn {turn}".replace(" ", "-")}
        now = post(f"{address}/labels", json=sent, headers=keys).json()
        assert post(f"{address}/labels", json=sent, headers=keys).json() == now  # once
        if not now["waiting"]:
            break
    assert "at least 5 qualified" in now["promise"]
    again = post(f"{address}/labels", json=sent)
    assert again.status_code == 400
    assert "not asked for now" in again.json()["error"]["message"]
    saved = post(f"{address}/save", json={"name": "Spring"})
    assert saved.status_code == 201
    assert get(address).json()["policy"] == saved.json()["hash"]
    assert get(f"{address}/next").json() == []
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_draw_that_is_asked_for_twice_is_made_once(team):
    def ask(key: str = "spring", labels: int = 200) -> Any:
        address = f"/api/v1/labellings?score=score&id=person&labels={labels}"
        return team.ann.client.post(address, content=COLLECTION, headers={**CSV, "Idempotency-Key": key})

    def kept() -> int:
        return len(list(team.runtime.settings.spool.iterdir()))

    answers = [ask() for _ in range(3)]
    assert {each.status_code for each in answers} == {201}
    assert len({each.json()["id"] for each in answers}) == 1
    files = kept()
    assert ask(labels=100).status_code == 409
    assert kept() == files
    assert ask("autumn").json()["id"] != answers[0].json()["id"]
    assert kept() == 2 * files


@pytest.mark.slow
def test_a_draw_and_its_labels_sent_twice_at_the_same_moment_are_made_once(team):
    head = {"Authorization": team.ann.client.headers["authorization"], "Idempotency-Key": "spring"}
    start = "/api/v1/labellings?score=score&id=person&labels=60"

    async def twice(path: str, headers: dict[str, str], **body: Any) -> list[Any]:
        transport = httpx.ASGITransport(team.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", timeout=BUSY
        ) as client:
            asked = [client.post(path, headers={**head, **headers}, **body) for _ in range(4)]
            return await asyncio.gather(*asked)

    def equal(answers: list[Any], status: int) -> dict[str, Any]:
        assert [each.status_code for each in answers] == [status] * 4, answers[0].text
        assert all(each.json() == answers[0].json() for each in answers)
        return answers[0].json()

    ident = equal(asyncio.run(twice(start, CSV, content=COLLECTION)), 201)["id"]
    assert [each.subject for each in team.runtime.registry.entries(KINDS["labelling.started"])] == [ident]
    kept = sorted(each.name.split("-")[0] for each in team.runtime.settings.spool.iterdir())
    assert kept == ["labelling", "made", "made", "made", "result"]  # one collection, one list, its pages
    address = f"/api/v1/labellings/{ident}"
    rows = team.ann.client.get(f"{address}/next").json()
    sent = {"labels": [{"row": each["row"], "qualified": True} for each in rows[:5]]}
    now = equal(asyncio.run(twice(f"{address}/labels", {"Idempotency-Key": "five"}, json=sent)), 200)
    assert now["waiting"] == len(rows) - 5
    assert len(team.runtime.registry.entries(KINDS["labelling.told"])) == 1
    assert len(team.ann.client.get(f"{address}/next").json()) == now["waiting"]


def test_the_slower_of_two_under_one_key_gets_what_the_faster_one_did(registry):
    """Refused because of the other: its rows are no longer asked for."""
    key = Key("five", "0" * 64)

    def slower() -> Any:
        forge(registry, "local", "labelling.told", "a" * 16, {"rows": [3]}, key=key).result()
        raise InvalidInput("labels", "row 3 is not asked for now.")

    made = View(registry, LOCAL_ACTOR, key).once(slower)
    assert (made.replayed, made.entry.facts) == (True, {"rows": [3]})
    assert len(registry.entries(KINDS["labelling.told"])) == 1
    with pytest.raises(InvalidInput, match="not asked for"):
        View(registry, LOCAL_ACTOR).once(slower)  # without a key they are two requests


@pytest.mark.slow
@pytest.mark.parametrize("laid_out", [True, False])
def test_a_labelling_goes_on_when_the_service_ended_between_an_answer_and_the_next_stage(team, laid_out):
    started = team.ann.client.post(
        "/api/v1/labellings?score=score&id=person&labels=60", content=COLLECTION, headers=CSV
    ).json()
    address, registry = f"/api/v1/labellings/{started['id']}", team.runtime.registry
    rows = [each["row"] for each in team.ann.client.get(f"{address}/next").json()]
    told = labelling_record.Told(rows, [1] * len(rows))
    marks, _ = labelling_record.told(registry.entries(KINDS["labelling.started"])[0].facts["state"], "", told)
    by(registry).tell_labels(started["id"], told, marks, AnswersSoFar()).result()
    if not laid_out:
        team.runtime.spool.drop_result(team.runtime.spool.result(started["id"]))
    now = team.ann.client.get(address).json()
    asked = [each["row"] for each in team.ann.client.get(f"{address}/next").json()]
    assert len(asked) == now["waiting"] > 0
    assert not set(asked) & set(rows)
    assert f"{len(asked)} " in team.ann.get(f"/labellings/{started['id']}").text
    assert len(team.ann.get(f"/selections/{started['id']}/reviews.csv").text.splitlines()) == len(asked) + 1


@pytest.mark.slow
def test_a_sheet_is_chosen(team, tmp_path):
    with xlsxwriter.Workbook(str(tmp_path / "people.xlsx")) as book:
        book.add_worksheet("Notes").write_row(0, 0, ["nothing to see"])
        sheet = book.add_worksheet("People")
        sheet.write_row(0, 0, ["person", "score"])
        for at, score in enumerate(SCORES[:400], 1):
            sheet.write_row(at, 0, [f"p{at:05d}", float(score)])
    page = team.ann.post(
        "/labellings", files={"file": ("people.xlsx", (tmp_path / "people.xlsx").read_bytes())}
    )
    assert "Which sheet?" in page.text
    ident = page.url.path.rpartition("/")[2]
    page = team.ann.post(f"/drafts/{ident}/sheet", sheet="People")
    assert page.url.path == f"/collections/{ident}"
    assert "400 candidates" in page.text


def begin_by_sex(team: Team, promise: str) -> tuple[str, dict[str, Any]]:
    """A labelling by API with a promise to each group, all answers in: its id, and what it says."""
    text = "person,score,sex\n" + "".join(
        f"{line},{'fm'[at % 2]}\n" for at, line in enumerate(COLLECTION.splitlines()[1:])
    )
    query = f"score=score&id=person&labels=600&group=sex&{promise}"
    bare = team.ann.client.post(f"/api/v1/labellings?{query}", content=text, headers=CSV)
    assert bare.status_code == 400
    assert "purpose" in bare.json()["error"]["message"]
    made = team.ann.client.post(
        f"/api/v1/labellings?{query}&purpose=both+wards", content=text, headers=CSV
    ).json()
    ident = made["id"]
    for _ in range(6):
        rows = team.ann.client.get(f"/api/v1/labellings/{ident}/next").json()
        if not rows:
            break
        sent = {"labels": [{"row": each["row"], "qualified": bool(LABELS[each["row"]])} for each in rows]}
        now = team.ann.client.post(f"/api/v1/labellings/{ident}/labels", json=sent).json()
    assert now["promise"], now
    assert "both wards" in team.runtime.registry.entries(KINDS["labelling.started"])[0].details
    return ident, now


@pytest.mark.slow
def test_a_promise_to_each_group(team):
    ident, _ = begin_by_sex(team, "promise=at-least&many=20&alpha=0.0001")
    listed = [line.split(",") for line in team.ann.post(f"/labellings/{ident}/list").text.splitlines()[1:]]
    for sex in "fm":
        assert sum(LABELS[int(row[0][1:])] for row in listed if row[2] == sex) >= 20
    assert len(listed) < len(LABELS)
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_promise_to_each_group_is_saved_as_a_policy_and_says_the_same_everywhere(team):
    ident, _ = begin_by_sex(team, "promise=expected&k=4&pool_size=100")
    page = html.unescape(team.ann.get(f"/labellings/{ident}").text)
    saved = team.ann.post(f"/labellings/{ident}/save", name="Wards", note="").url.path
    policy = team.runtime.registry.policy(saved.rpartition("/")[2]).policy
    assert [each.group for each in policy.cutoffs] == ["f", "m"]
    for each in policy.cutoffs:
        mine = SCORES["fm".index(each.group) :: 2]
        length = about(100 * float((mine >= policy.thresholds[each.group]).mean()))
        said = f"for group '{each.group}', on average at least 4 of about {length} candidates listed per 100"
        assert said in policy.two_lines.what.replace("For", "for")
    pool = "person,score,sex\n" + "".join(f"n{at},{SCORES[at]},{'fm'[at % 2]}\n" for at in range(400))
    form = team.ann.post(f"{saved}/pool", files={"file": ("pool.csv", pool)})
    made = team.ann.post(form.url.path, score="score", group="sex", id="person", name="Monday")
    for shown in (page, *(html.unescape(each.text) for each in (team.ann.get(saved), form, made))):
        assert policy.two_lines.what in shown
    facts = by(team.runtime.registry).selection(made.url.path.rpartition("/")[2]).facts
    assert set(facts["groups"]) == {"f", "m"}
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_policy_on_record_that_its_labels_do_not_certify_is_a_problem(team):
    """Also where nothing but the length of its list differs."""
    ident = begin(team).url.path.rpartition("/")[2]
    while (
        answer(team, ident) and "candidates to label now" in team.ann.post(f"/labellings/{ident}/tell").text
    ):
        pass
    registry = team.runtime.registry
    saved = team.ann.post(f"/labellings/{ident}/save", name="Spring policy").url.path.rpartition("/")[2]
    assert verify(registry.database).intact
    policy = registry.policy(saved).policy
    (cutoff,) = policy.cutoffs
    for changes in ({"share": 0.5}, {"threshold": 0.1}):
        steps = (structs.replace(cutoff.steps[0], **changes),)
        other = structs.replace(policy, cutoffs=(structs.replace(cutoff, steps=steps),))
        written = save(registry, other, "other", "Ann", labelling=ident)
        problems = verify(registry.database).problems
        assert problems.pop() == f"entry {written.entry.seq}: the labels on record do not certify this policy"


def test_the_sheet_of_those_to_label_comes_back_from_a_spreadsheet_whatever_begins_an_id(team):
    """Spreadsheets show the apostrophe before what might be a formula, and drop zeros."""
    ids = [f"{'=@0'[row % 3]}{row:04d}" for row in range(600)]
    people = "person,score\n" + "".join(f"{each},{row}\n" for row, each in enumerate(ids))
    page = team.ann.post("/labellings", files={"file": ("people.csv", people)})
    page = team.ann.post(
        page.url.path, **{**LABELLING, "promise": "precision", "purity": "50", "labels": "60"}
    )
    path = f"/selections/{page.url.path.rpartition('/')[2]}"
    names = [line.split(",")[1] for line in team.ann.get(path + "/reviews.csv").text.splitlines()[1:]]
    assert {name[:2] for name in names} >= {"'=", "'@"}
    text = "person,review\n" + "".join(f"{name.lstrip('0')},ja\n" for name in names)
    sent = team.ann.post(path + "/reviews", files={"file": ("a.csv", text)}, id="person", label="review")
    assert sent.status_code == 200, sent.text
    back = [line.split(",")[2] for line in team.ann.get(path + "/reviews.csv").text.splitlines()[1:]]
    assert back == ["yes"] * len(names)
    twice = "person,review\n" + f"{names[0]},ja\n{names[0].removeprefix(chr(39))},nein\n"
    sent = team.ann.post(path + "/reviews", files={"file": ("a.csv", twice)}, id="person", label="review")
    assert "both yes and no" in sent.text


@pytest.mark.slow
def test_those_between_the_lists_of_a_triage_are_asked_from_the_lowest_score_up_for_as_long_as_people_like(
    team,
):
    form = {"promise": "triage", "accept": "60", "reject_recall": "60", "labels": "150", "alpha": "20"}
    page = begin(team, **form)
    ident = page.url.path.rpartition("/")[2]
    while "looks at most" not in page.text:
        assert "candidates to label now" in page.text
        answer(team, ident)
        page = team.ann.post(f"/labellings/{ident}/tell")
    asked = [
        line.split(",") for line in team.ann.get(f"/selections/{ident}/reviews.csv").text.splitlines()[1:]
    ]
    scores = [SCORES[int(each[1][1:])] for each in asked]
    assert len(scores) > 10
    assert scores == sorted(scores)
    review = team.ann.get(f"/selections/{ident}/review").text
    assert asked[0][1] in review
    assert "by score" not in review
    ended = team.ann.post(f"/labellings/{ident}/tell", missing="1")
    assert "left to look at" in ended.text
    assert f"Band: 0 of {len(asked)}, 0 qualified" not in ended.text  # nobody answered there
    assert (
        f"band: 0 of {len(asked):,} labels are here, 0 qualified; {len(asked):,} will not come." in ended.text
    )
    lines = team.ann.post(f"/labellings/{ident}/list").text.splitlines()
    assert lines[0].endswith("triage")
    assert len(lines) == 4001
    parts = [line.rpartition(",")[2] for line in lines[1:]]
    assert parts.count("look") > 10
    assert verify(team.runtime.registry.database).intact
