"""A label that was wrong is corrected in API and page as on the command line: on record, and only while nothing rests on it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from surelist.service.record.event import KINDS
from surelist.service.record.verify import verify
from tests.helpers.record import forge
from tests.helpers.service import close
from tests.service.test_api import CSV
from tests.service.test_labelling_pages import COLLECTION, LABELS
from tests.service.test_workspace import Team


@pytest.fixture
def team(settings):
    team = Team(replace(settings, login=True))
    yield team
    close(team.app)


class Work:
    """A labelling by API."""

    def __init__(self, team: Team) -> None:
        self.client = team.ann.client
        address = "/api/v1/labellings?score=score&id=person&labels=200"
        self.ident = self.client.post(address, content=COLLECTION, headers=CSV).json()["id"]
        self.address = f"/api/v1/labellings/{self.ident}"

    def asked(self) -> list[int]:
        return [each["row"] for each in self.client.get(f"{self.address}/next").json()]

    def send(self, to: str, labels: dict[int, bool], **headers: str) -> Any:
        sent = {"labels": [{"row": row, "qualified": label} for row, label in labels.items()]}
        return self.client.post(f"{self.address}/{to}", json=sent, headers=headers)

    def tell(self, rows: list[int], wrong: int | None = None) -> dict[str, Any]:
        answer = self.send("labels", {row: bool(LABELS[row]) ^ (row == wrong) for row in rows})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def correct(self, row: int, **headers: str) -> Any:
        return self.send("corrections", {row: bool(LABELS[row])}, **headers)


def refused(answer: Any) -> str:
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]["message"]


@pytest.mark.slow
def test_a_correction_goes_on_record_beside_what_it_corrects(team):
    work, registry = Work(team), team.runtime.registry
    rows = work.asked()
    work.tell(rows[:3], wrong=rows[1])
    assert "no label yet; there is none to correct" in refused(work.correct(rows[5]))
    assert "there is nothing to correct" in refused(work.correct(rows[0]))
    key = {"Idempotency-Key": "mend"}
    now = work.correct(rows[1], **key).json()
    assert work.correct(rows[1], **key).json() == now  # once
    told, mended = (registry.entries(KINDS[f"labelling.{each}"]) for each in ("told", "corrected"))
    assert [each.facts["labels"][1] for each in told] == [int(not LABELS[rows[1]])]
    assert [(each.facts["rows"], each.facts["labels"]) for each in mended] == [
        ([rows[1]], [int(LABELS[rows[1]])])
    ]
    assert now["receipt"]["seq"] == mended[0].seq
    assert "corrected 1 answer of" in team.ann.get("/record").text
    work.tell(rows[3:])  # and it goes on from there
    assert verify(registry.database).intact


@pytest.mark.slow
def test_a_label_of_the_pilot_is_corrected_until_a_label_of_those_it_chose_is_known(team):
    work = Work(team)
    pilot = work.asked()
    wrong = next(row for row in pilot if LABELS[row])
    work.tell(pilot, wrong=wrong)
    assert work.correct(wrong).status_code == 200
    chosen = work.asked()
    assert chosen
    assert not set(chosen) & set(pilot)
    work.tell(chosen[:1])
    assert "are here. It can no longer be corrected" in refused(work.send("corrections", {wrong: False}))
    done = work.tell(chosen[1:])
    assert done["waiting"] == 0
    assert "the result was shown with it" in refused(
        work.send("corrections", {chosen[0]: not LABELS[chosen[0]]})
    )
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_answers_on_the_page_that_do_not_count_yet_are_known_all_the_same(team):
    """Also one that was taken back: whoever corrects the pilot has seen it."""
    work = Work(team)
    pilot = work.asked()
    wrong = pilot[0]
    work.tell(pilot, wrong=wrong)
    team.ann.get(f"/selections/{work.ident}/review")
    team.ann.post(f"/selections/{work.ident}/marks", rank="1", mark="yes")
    team.ann.post(f"/selections/{work.ident}/marks", rank="1", mark="back")
    assert "answered on the page already" in refused(work.correct(wrong))
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_the_page_corrects_by_the_candidates_name(team):
    work = Work(team)
    rows = work.asked()
    work.tell(rows[:2], wrong=rows[0])
    page = team.ann.get(f"/labellings/{work.ident}")
    assert "Correct an answer that counts" in page.text
    form = {"candidate": f"p{rows[0]:05d}", "qualified": "yes" if LABELS[rows[0]] else "no"}
    assert team.ann.post(f"/labellings/{work.ident}/correct", **form).status_code == 200
    (entry,) = team.runtime.registry.entries(KINDS["labelling.corrected"])
    assert entry.facts["rows"] == [rows[0]]
    nobody = team.ann.post(f"/labellings/{work.ident}/correct", candidate="p99999", qualified="yes")
    assert nobody.status_code == 400
    assert "there is none to correct" in nobody.text
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_forged_correction_is_noticed(team):
    """Of a pilot's label, when labels of those it chose are known."""
    work = Work(team)
    pilot = work.asked()
    work.tell(pilot)
    work.tell(work.asked()[:1])
    forged = {"rows": pilot[:1], "labels": [int(not LABELS[pilot[0]])], "sha256": ""}
    forge(team.runtime.registry, "eve", "labelling.corrected", work.ident, forged).result()
    assert "cannot be read (InvalidInput)" in verify(team.runtime.registry.database).problems[0]
