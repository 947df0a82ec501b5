"""A second reviewer learns nothing of the first one's marks before marking: on no page, in no file, by no API."""

from __future__ import annotations

import csv
import io
import re

import pytest
from msgspec.structs import replace

from surelist.service.record.verify import verify
from tests.helpers.service import close
from tests.service.test_workspace import Person, Team


@pytest.fixture
def team(settings):
    team = Team(replace(settings, login=True))
    yield team
    close(team.app)


def csv_rows(person: Person, path: str) -> dict[str, dict[str, str]]:
    text = person.get(f"{path}/reviews.csv").text.removeprefix("\ufeff")
    return {row["rank"]: row for row in csv.DictReader(io.StringIO(text))}


def shown_in(page: str) -> list[str]:
    """The ids on the list beside the candidate."""
    return re.findall(r'class="id">([^<]+)<', page)


def read(person: Person, path: str) -> dict[str, str]:
    """Whatever a reviewer can read of one list, without ids and times."""
    ident = path.rpartition("/")[2]
    addresses = [
        f"{path}/review?show={show}{more}"
        for show in ("all", "open", "todo", "mine", "split", "yes", "no")
        for more in ("", "&q=c", "&sort=score", "&at=1")
    ]
    answers = [person.get(each) for each in (*addresses, f"{path}/reviews.csv")]
    answers.append(person.client.get(f"/api/v1/selections/{ident}/reviews"))
    assert {each.status_code for each in answers} == {200}
    texts = [re.sub(r"[0-9a-f]{16,}|\d\d:\d\d", "-", each.text) for each in answers]
    return {str(each.url).replace(ident, "-"): text for each, text in zip(answers, texts, strict=True)}


@pytest.mark.slow
def test_a_second_reviewer_reads_the_same_whatever_the_first_one_said(team):
    """Two lists of the same pool; the first reviewer says yes on one and no on the other."""
    seen = []
    for said in ("yes", "no"):
        path = team.shortlist()
        for rank in ("1", "2"):
            assert team.ann.post(f"{path}/marks", rank=rank, mark=said).status_code == 200
        seen.append(read(team.bob, path))
    for address, text in seen[0].items():
        assert text == seen[1][address], address


def test_filters_files_and_counts_show_the_other_ones_marks_once_one_has_marked(team):
    path = team.shortlist()
    team.ann.post(f"{path}/marks", rank="1", mark="yes")
    team.ann.post(f"{path}/marks", rank="2", mark="no")
    for show in ("yes", "no", "split", "mine"):
        assert shown_in(team.bob.get(f"{path}/review?show={show}").text) == [], show
    page = team.bob.get(f"{path}/review?show=all").text
    assert page.count("marked by someone else") >= 2
    assert "0 yes, 0 no, 2 by others" in page
    rows = csv_rows(team.bob, path)
    assert [rows[rank]["review"] for rank in ("1", "2")] == ["", ""]
    assert [rows[rank]["reviewers"] for rank in ("1", "2")] == ["marked by someone else"] * 2
    assert csv_rows(team.ann, path)["1"]["review"] == "yes"  # her own
    team.bob.post(f"{path}/marks", rank="1", mark="yes")
    assert len(shown_in(team.bob.get(f"{path}/review?show=yes").text)) == 1
    rows = csv_rows(team.bob, path)
    assert (rows["1"]["review"], rows["2"]["review"]) == ("yes", "")
    assert "Ann" in rows["1"]["reviewers"]
    team.bob.post(f"{path}/marks", rank="2", mark="yes")  # now they disagree
    assert csv_rows(team.bob, path)["2"]["review"] == "disagreement"


def test_the_record_tells_of_open_reviews_how_many_and_not_how(team):
    path = team.shortlist()
    team.ann.post(f"{path}/marks", rank="1", mark="yes")
    told = team.bob.get("/record?kind=reviews").text
    assert "sent 1 mark, in" in told
    assert "as qualified" not in told
    hidden = team.bob.client.get("/api/v1/log?limit=1").json()[0]
    assert hidden["details"] == {"reviews": 1}
    assert "as qualified" in team.ann.get("/record?kind=reviews").text  # her own
    viewer = Person(team.app, "Vi", "viewer")  # marks nobody, and audits
    assert "as qualified" in viewer.get("/record?kind=reviews").text
    assert viewer.client.get("/api/v1/log?limit=50").json()
    ident = path.rpartition("/")[2]
    assert team.bob.client.get(f"/api/v1/selections/{ident}/reviews").json()["qualified"] is None
    assert team.ann.client.get(f"/api/v1/selections/{ident}/reviews").json()["qualified"] == 1
    assert verify(team.runtime.registry.database).intact


def test_marks_are_everybodys_once_the_review_is_finished(team):
    path = team.shortlist(watch="1")
    team.ann.post(f"{path}/marks", rank="1", mark="yes")
    assert team.ann.post(f"{path}/finish", missing="1").status_code == 200
    assert len(shown_in(team.bob.get(f"{path}/review?show=yes").text)) == 1
    assert csv_rows(team.bob, path)["1"]["review"] == "yes"
    assert "as qualified" in team.bob.get("/record?kind=reviews").text
