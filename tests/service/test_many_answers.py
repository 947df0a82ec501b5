"""However many answers, entries, looks and policies: nothing is forgotten, and one more costs what the first did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from surelist import Expected, calibrate, examples
from surelist.promises import policy_file
from surelist.service import pages
from surelist.service.app import create_app
from surelist.service.errors import Conflict
from surelist.service.record.connections import Postgres, Sqlite
from surelist.service.record.event import KINDS
from surelist.service.record.events import PolicySaved, PolicyWithdrawn
from surelist.service.record.labellings import AnswersSoFar, LabellingListed, LabellingStarted
from surelist.service.record.record import LOCAL_ACTOR, Registry
from surelist.service.record.verify import verify
from surelist.service.record.view import View
from surelist.service.uploads import Spool
from surelist.workflows.labelling_record import Told, resumed
from tests.helpers.record import by, forge, save, selection
from tests.service.test_record import tamper

CSV = {"content-type": "text/csv"}
SIZE = LABELS = 10_200  # all of them: one stage


def collection(size: int = SIZE) -> str:
    scores = np.random.default_rng(6).random(size).round(6)
    return "person,score\n" + "".join(f"p{at:05d},{score}\n" for at, score in enumerate(scores))


def begin(client: TestClient, labels: int = LABELS, size: int = SIZE) -> str:
    address = f"/api/v1/labellings?score=score&id=person&promise=recall&share=0.5&labels={labels}"
    started = client.post(address, content=collection(size), headers=CSV)
    assert started.status_code == 201, started.text
    return str(started.json()["id"])


def registry_of(client: TestClient) -> Registry:
    app: Any = client.app
    made: Registry = app.state.runtime.registry
    return made


class Teller:
    """Answers one by one, straight to the record, as fast as it takes them."""

    def __init__(self, registry: Registry, ident: str) -> None:
        self.registry, self.ident = registry, ident
        self.answered = resumed(registry.one(KINDS["labelling.started"], ident, "labelling").facts["state"])
        self.left = self.answered.ask().tolist()

    def tell(self, many: int) -> None:
        last, waiting = by(self.registry).progress(self.ident).seq, []
        head = self.registry.entries(limit=1)[0].seq
        for number in range(1, many + 1):
            told = Told([self.left.pop()], [int(number % 3 == 0)])
            self.answered.tell(told.rows, told.labels)
            marks = self.answered.marks
            waiting.append(by(self.registry).tell_labels(self.ident, told, marks, AnswersSoFar(last)))
            last = head + number
        for each in waiting:
            each.result()

    def take(self, row: int) -> None:
        """One that was told by API."""
        self.left.remove(row)
        self.answered.tell([row], [1])


@pytest.fixture
def rows_read(monkeypatch) -> Callable[[], Any]:
    """Counts the rows that come from the record's database, those of requests alone."""
    monkeypatch.setattr("surelist.service.app.SWEEP_SECONDS", 1e6)
    counts: list[int] = []
    for kind in (Sqlite, Postgres):
        real = kind.execute

        def counted(self: Any, sql: str, values: Any = (), real: Any = real) -> Any:
            rows = real(self, sql, values)
            counts.append(len(rows))
            return rows

        monkeypatch.setattr(kind, "execute", counted)

    @contextmanager
    def counting() -> Iterator[list[int]]:
        counts.clear()
        yield counts

    return counting


def one_more(client: TestClient, teller: Teller, rows_read: Any) -> int:
    """Answer one row by API; how many rows of the database that took."""
    address, row = f"/api/v1/labellings/{teller.ident}", teller.left[0]
    with rows_read() as counts:
        sent = client.post(f"{address}/labels", json={"labels": [{"row": row, "qualified": True}]})
        total = sum(counts)
    assert sent.status_code == 200, sent.text
    teller.take(row)
    assert sent.json()["waiting"] == len(teller.left)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("many", [1_100, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_thousands_of_answers_one_by_one_work_and_each_reads_as_few_rows_as_the_first(
    settings, rows_read, many
):
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        ident = begin(client)
        teller = Teller(registry_of(client), ident)
        first = one_more(client, teller, rows_read)
        teller.tell(99)
        early = one_more(client, teller, rows_read)
        teller.tell(many - 101)
        late = one_more(client, teller, rows_read)
        assert first <= early == late <= 20
        with rows_read() as counts:
            standing = client.get(f"/api/v1/labellings/{ident}").json()
            page = client.get(f"/labellings/{ident}").text
            assert sum(counts) <= 40
        assert standing["waiting"] == len(teller.left) == LABELS - many - 1
        assert f"{many + 1:,} answers count" in page
        asked = client.get(f"/api/v1/labellings/{ident}/next?limit=10000").json()
        assert {each["row"] for each in asked} == set(teller.left)
    with TestClient(create_app(settings), base_url="http://localhost") as client:  # started anew
        teller.registry = registry_of(client)
        assert one_more(client, teller, rows_read) == late
        verdict = verify(teller.registry.database)
        assert verdict.intact, verdict.problems[:3]
        assert verdict.actions["labelling.told"] == many + 2


@pytest.mark.parametrize(
    ("forged", "noticed"),
    [
        ("UPDATE progress SET marks = replace(marks, '0', '1')", "not those in the log"),
        ("UPDATE progress SET seq = seq - 1", "not those in the log"),
        ("DELETE FROM progress", "no longer kept beside it"),
        ("INSERT INTO progress VALUES ('another', 3, '1')", "labelling another are not those in the log"),
        ("UPDATE log SET details = replace(details, '\"labels\":[0]', '\"labels\":[1]')", "was edited"),
    ],
)  # fmt: skip
def test_answers_that_were_edited_beside_the_log_are_noticed(settings, forged, noticed):
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        ident = begin(client, 40, 300)
        registry = registry_of(client)
        Teller(registry, ident).tell(5)
        assert verify(registry.database).intact
        tamper(registry.database, forged)
        assert noticed in " ".join(verify(registry.database).problems)
        answer = client.get(f"/api/v1/labellings/{ident}")
        if "log SET" not in forged and "INSERT" not in forged:  # seen at once, not only by verify-log
            assert answer.status_code == 409
            assert "They were edited: verify the record" in answer.json()["error"]["message"]


def test_an_entry_that_claims_other_answers_than_those_told_is_noticed(settings):
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        ident = begin(client, 40, 300)
        registry = registry_of(client)
        teller = Teller(registry, ident)
        teller.tell(2)
        told = Told([teller.left.pop()], [1])
        marks = teller.answered.marks  # without the new one
        eve = by(registry, "eve")
        eve.tell_labels(ident, told, marks, eve.progress(ident)).result()
        assert "the answers so far are not those it says" in verify(registry.database).problems[0]


def test_an_answer_worked_out_from_older_ones_is_refused(settings):
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        ident = begin(client, 40, 300)
        registry = registry_of(client)
        teller = Teller(registry, ident)
        teller.tell(3)
        told = Told([teller.left.pop()], [1])
        with pytest.raises(Conflict, match="somebody else has just sent others"):
            by(registry, "eve").tell_labels(ident, told, teller.answered.marks, AnswersSoFar()).result()
        assert verify(registry.database).intact


def worklist(registry: Registry, folder: Path) -> dict[str, Any]:
    with closing(Spool(folder / "spool")) as spool:
        return pages.waiting_for(View(registry, LOCAL_ACTOR), spool)


@pytest.mark.slow
def test_a_retired_policy_is_never_listed_as_active_however_many_entries_follow(registry, tmp_path):
    made = calibrate(*examples.population(np.random.default_rng(0), 500), Expected(2, 100))
    old = save(registry, made, "old", "me").entry.subject
    forge(registry, "me", "policy.described", old, {"name": "older", "note": ""}).result()
    by(registry, "me").retire_policy(old, "enough").result()
    for part in (0, 5_050):  # so many wait at once
        waiting = [
            forge(registry, "me", "policy.retired", f"{part + each:064x}", {"reason": "r"})
            for each in range(5_050)
        ]
        assert all(each.result() for each in waiting)
    (saved,) = by(registry).policies()
    assert saved.retired is not None
    assert saved.name == "older"
    view = View(registry, LOCAL_ACTOR)
    assert worklist(registry, tmp_path)["policies"] == []
    assert [each.retired for each in pages.found_policies(view, "", "retired")[0]] == [True]
    assert pages.found_policies(view, "", "use") == ([], False)
    assert view.policy_names() == {old: "older"}


def test_all_looks_at_the_same_rows_are_known_however_many_there_were(registry):
    for number in range(130):
        asked = {"targets": {}, "alpha": number, "rule": "exact"}
        forge(registry, "me", "rows.looked", "f" * 64, {"file": "a", "how": "h", "asked": asked}).result()
    assert [look.asked.alpha for look in View(registry, LOCAL_ACTOR).looks("f" * 64, "a")] == [*range(130)]


def test_work_that_waits_is_on_the_worklist_however_much_was_begun_since(registry, tmp_path):
    """An alarm, reviews that are due, a labelling: each older than hundreds of others."""
    made = calibrate(*examples.population(np.random.default_rng(0), 500), Expected(2, 100))
    policy = save(registry, made, "first", "me").entry.subject
    registry.append("me", "a" * 16, selection(policy, watched=True)).result()
    registry.append("me", policy, PolicyWithdrawn(reason="r", pools=1, e_value=20.0)).result()
    started = LabellingStarted(
        name="Spring", file="f", collection_sha256="c", candidates=9, target="t", alpha=0.1, labels=5,
        state="", kept_until="",
    )  # fmt: skip
    registry.append("me", "b" * 16, started).result()
    for number in range(600):
        later = calibrate(
            *examples.population(np.random.default_rng(0), 500), Expected(2, 100), alpha=0.11 + number / 1e5
        ) if number < 230 else None  # fmt: skip
        if later is not None:
            saved = PolicySaved(
                name=f"p{number}", policy=policy_file.dumps(later), labelling=f"{number:016x}"
            )
            by(registry, "me").save_policy(saved)
            registry.append("me", f"{number:016x}", started)
        registry.append("me", f"{number:016d}", selection(policy))
    registry.append("me", "c" * 16, LabellingListed(shortlisted=0, result_sha256="")).result()
    shown = worklist(registry, tmp_path)
    assert [each.hash for each in shown["alarms"]] == [policy]
    assert [each["entry"].subject for each in shown["due"]] == ["a" * 16]
    assert [each.subject for each in shown["labellings"]] == ["b" * 16]
    assert [each["policy"] for each in shown["due"]] == ["first"]
