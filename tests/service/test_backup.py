"""The record can be copied and brought back; a moved record, a second process and odd text are noticed."""

from __future__ import annotations

import csv
import io
import shutil
import sqlite3
import stat

import numpy as np
import pytest
from starlette.testclient import TestClient

from surelist import Expected, calibrate, examples
from surelist.cli import run
from surelist.errors import InvalidInput
from surelist.service.app import create_app
from surelist.service.errors import StorageError
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.record.verify import back_up, restore, verify
from surelist.service.settings import Settings
from surelist.workflows.files import escape_cell
from tests.helpers.record import by, forge, save, selection
from tests.helpers.service import Server

CSV = {"content-type": "text/csv"}
CALIBRATE = "/api/v1/calibrate?k=5&pool_size=100"


def fill(registry: Registry, entries: int = 30) -> str:
    """A record with every kind of row, and the receipt of its last entry."""
    made = calibrate(*examples.population(np.random.default_rng(0), 500), Expected(2, 100))
    policy = save(registry, made, "p", "me").entry.subject
    for number in range(entries):
        by(registry, "me").record_selection(f"{number:016x}", selection(policy, 9, 2)).result()
    written = by(registry, "me").record_reviews("0" * 16, {"anna": True, "ben": False}).result()
    return written.entry.receipt


def test_a_backup_is_verified_and_the_record_comes_back_from_it(address, registry, tmp_path, postgres):
    receipt = fill(registry)
    copy = tmp_path / "copy.db"
    assert back_up(address, copy).head == receipt
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.glob("*copy.db*")) == ["copy.db"]
    for target in (str(tmp_path / "new" / "record.db"), postgres.new_database()):
        assert restore(copy, target).head == receipt
        database = Database(target, read_only=True)
        assert verify(database, (receipt,)).intact
        again = database.read("SELECT candidate, qualified FROM reviews ORDER BY candidate")
        assert again == [("anna", 1), ("ben", 0)]
        database.close()


def test_a_record_with_notes_about_candidates_has_a_backup_and_they_come_back(
    address, registry, tmp_path, postgres
):
    fill(registry, 3)
    me, you, first, second = by(registry, "me"), by(registry, "you"), "0" * 16, f"{1:016x}"
    me.write_note(first, "anna", "called twice, „ja“ 👍\nback on Monday").result()
    me.write_note(second, "carl", "not on the list any more").result()
    me.forget_list(second, "deleted by hand").result()
    last = you.write_note(first, "anna", "=1+1; DROP TABLE notes").result().entry.receipt
    assert back_up(address, tmp_path / "copy.db").head == last
    for target in (str(tmp_path / "new.db"), postgres.new_database()):
        assert restore(tmp_path / "copy.db", target).head == last
        database = Database(target)
        assert verify(database, (last,)).intact
        again = Registry(database)
        there = by(again, "me")
        assert there.notes(first, "anna") == me.notes(first, "anna")
        assert [note.by for note in there.notes(first, "anna")] == ["me", "you"]
        assert there.all_notes(second) == {}
        there.write_note(first, "ben", "goes on").result()
        there.forget_list(first, "deleted by hand").result()
        assert verify(database).intact
        database.connect().execute(
            "INSERT INTO notes (selection, candidate, text, seq) VALUES (?, 'anna', 'forged', 9)", [first]
        )
        assert "note of entry 9" in verify(database).problems[0]
        again.close()


def test_a_record_never_used_has_a_backup_and_an_emptied_one_is_noticed(address, registry, tmp_path):
    assert back_up(address, tmp_path / "unused.db").entries == 0
    assert restore(tmp_path / "unused.db", str(tmp_path / "new.db")).entries == 0
    assert not verify(Database(str(tmp_path / "new.db"), read_only=True)).intact  # unused, or emptied
    fill(registry, 2)
    back_up(address, tmp_path / "used.db")
    with sqlite3.connect(tmp_path / "used.db") as connection:
        connection.execute("DROP TRIGGER log_no_delete")
        connection.execute("DELETE FROM log")
    with pytest.raises(StorageError, match="not intact"):
        restore(tmp_path / "used.db", str(tmp_path / "other.db"))


def test_a_backup_replaces_nothing_and_a_restore_needs_an_empty_place(address, registry, tmp_path):
    fill(registry, 3)
    back_up(address, tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="exists already"):
        back_up(address, tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="holds a record already"):
        restore(tmp_path / "copy.db", address)
    assert registry.entries(limit=1)[0].seq == 5


def test_an_edited_backup_is_refused(tmp_path):
    database = Database(str(tmp_path / "record.db"))
    database.prepare()
    registry = Registry(database)
    fill(registry, 3)
    back_up(str(tmp_path / "record.db"), tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as forger:
        forger.execute("DROP TRIGGER log_no_update")
        forger.execute("UPDATE log SET actor = 'somebody else' WHERE seq = 2")
    with pytest.raises(StorageError, match="the backup is not intact: entry 2 was edited"):
        restore(tmp_path / "copy.db", str(tmp_path / "new.db"))
    assert not (tmp_path / "new.db").exists()
    registry.close()


def test_a_backup_while_the_record_grows_is_one_moment_of_it(address, registry, tmp_path):
    fill(registry)
    waiting = [forge(registry, "me", "note", "n", {"i": i}) for i in range(200)]
    verdict = back_up(address, tmp_path / "copy.db")
    assert 32 <= verdict.entries <= 232
    assert all(future.result() for future in waiting)


def test_the_commands_back_up_and_restore(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SURELIST_HOME", str(tmp_path / "home"))
    assert run(["backup", str(tmp_path / "none.db")]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()
    database = Database(str(tmp_path / "home" / "surelist.db"))
    database.prepare()
    registry = Registry(database)
    receipt = fill(registry, 2)
    registry.close()
    assert run(["backup", str(tmp_path / "copy.db")]) == 0
    assert run(["restore", str(tmp_path / "copy.db"), "--database", str(tmp_path / "new.db")]) == 0
    assert capsys.readouterr().out.count("4 entries in") == 2
    assert run(["verify-log", "--database", str(tmp_path / "new.db"), "--receipt", receipt]) == 0


@pytest.mark.slow
def test_a_record_that_was_moved_away_is_noticed_by_readyz_and_not_written_to(tmp_path, past):
    settings = Settings(database=str(tmp_path / "record.db"), folder=tmp_path / "data")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        assert client.get("/readyz").status_code == 200
        (tmp_path / "record.db").rename(tmp_path / "elsewhere.db")
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert client.post(CALIBRATE, content=past, headers=CSV).status_code == 503
        (tmp_path / "elsewhere.db").rename(tmp_path / "record.db")
        assert client.get("/readyz").status_code == 200
        assert client.post(CALIBRATE, content=past, headers=CSV).status_code == 201


def test_a_record_that_was_moved_away_is_not_made_anew_and_loses_nothing(tmp_path):
    """An empty file in its place would take over its log of pending writes."""
    path, away = tmp_path / "record.db", tmp_path / "elsewhere.db"
    database = Database(str(path))
    database.prepare()
    registry = Registry(database)
    receipt = fill(registry, 2)
    path.rename(away)
    for replaced in (False, True):
        if replaced:
            shutil.copyfile(away, path)
        with pytest.raises(StorageError, match="moved, replaced or deleted"), database.snapshot():
            pass
        assert path.exists() == replaced
    away.rename(path)
    assert verify(database, (receipt,)).intact
    forge(registry, "me", "moon.landed", "f" * 16, {}).result()
    registry.close()


@pytest.mark.slow
def test_a_second_process_on_the_same_folder_is_refused_and_deletes_nothing(tmp_path):
    first = Server(tmp_path / "home")
    try:
        waiting = tmp_path / "home" / "spool" / "body-of-the-first.part"
        waiting.write_text("half an upload")
        with pytest.raises(RuntimeError, match=r"another surelist is running in .*home.*--data"):
            Server(tmp_path / "home")
        assert waiting.exists()
    finally:
        first.stop()
    second = Server(tmp_path / "home")
    second.stop()
    assert not waiting.exists()


def test_a_policys_selections_are_found_without_reading_the_log(address, registry):
    for number in range(40):
        policy = ("a" if number % 4 else "b") * 64
        forge(registry, "me", "selection.made", f"{number:016x}", {"policy": policy}).result()
    chosen = by(registry).selections("b" * 64, limit=5)
    assert [int(entry.subject, 16) for entry in chosen] == [36, 32, 28, 24, 20]
    assert [int(e.subject, 16) for e in by(registry).selections("b" * 64, 5, before=chosen[-1].seq)] == [
        16,
        12,
        8,
        4,
        0,
    ]
    if registry.database.kind == "sqlite":
        expression = registry.database.json_text("policy")
        plan = registry.database.read(
            f"EXPLAIN QUERY PLAN SELECT * FROM log WHERE action = 'selection.made' AND {expression} = ? "
            "AND seq < ? ORDER BY seq DESC LIMIT 5", ["a", 10**6],
        )  # fmt: skip
        assert "log_by_policy" in str(plan)


def test_calibrate_sent_twice_under_one_key_is_one_policy_and_one_look(client, past):
    key = {**CSV, "idempotency-key": "monday"}
    first = client.post(CALIBRATE, content=past, headers=key)
    second = client.post(CALIBRATE, content=past, headers=key)
    assert first.status_code == second.status_code == 201
    assert second.json() == {**first.json(), "receipt": {**first.json()["receipt"], "replayed": True}}
    other = client.post(CALIBRATE + "&alpha=0.05", content=past, headers=key)
    assert other.status_code == 409
    refused = {**CSV, "idempotency-key": "tuesday"}
    for _ in range(2):
        answer = client.post("/api/v1/calibrate?k=99&pool_size=100", content=past, headers=refused)
        assert answer.status_code == 422
    actions = [entry["action"] for entry in client.get("/api/v1/log").json()]
    assert actions.count("policy.saved") == 1
    assert actions.count("rows.looked") == 2


def test_text_with_nul_is_refused_on_either_database(client, past, pool):
    policy = client.post(CALIBRATE, content=past, headers=CSV).json()["hash"]
    made = client.post(f"/api/v1/policies/{policy}/select", content=pool, headers=CSV)
    url = f"/api/v1/selections/{made.headers['surelist-selection']}/reviews"
    answer = client.post(url, json={"reviews": [{"candidate": "a\0b", "qualified": True}]})
    assert answer.status_code == 400, answer.text
    assert "NUL" in answer.json()["error"]["message"]
    assert client.get("/api/v1/policies").status_code == 200


@pytest.mark.parametrize("charset", ["nonsense", "idna", "hex", "utf-7", "a\\0b", "punycode"])
def test_an_odd_charset_of_a_form_is_the_senders_mistake(local_client, charset):
    head = {"content-type": f"multipart/form-data; boundary=x; charset={charset}"}
    body = b'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n\xff\xfe.a\xe4\r\n--x--\r\n'
    assert 400 <= local_client.post("/drafts", content=body, headers=head).status_code < 500


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_spreadsheets_are_escaped_in_any_dialect_and_cells_stay_whole(local_client, past, separator):
    policy = local_client.post(CALIBRATE, content=past, headers=CSV).json()["hash"]
    cells = ["=1+1", "-2,5", "+49 30", '"quoted"', "a,b;c\td|e", "two\nlines", "@x", "-7"]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(["score", "name"])
    writer.writerows([["0.99", cell] for cell in cells])
    url = f"/api/v1/policies/{policy}/select?format=spreadsheet"
    answer = local_client.post(url, content=text.getvalue().encode(), headers=CSV)
    assert answer.status_code == 200, answer.text
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline=""), delimiter=separator))
    assert rows[0] == ["score", "name"]
    assert [row[1] for row in rows[1:]] == [
        "'=1+1", "-2,5", "'+49 30", '"quoted"', "a,b;c\td|e", "two\nlines", "'@x", "-7",
    ]  # fmt: skip


def test_numbers_stay_numbers_and_formulas_do_not_pass_for_them():
    assert [escape_cell(each) for each in ("-1e5", "+3,25", "-", "-1_000", "=5", "\n=5")] == [
        "-1e5", "+3,25", "'-", "'-1_000", "'=5", "'\n=5",
    ]  # fmt: skip
