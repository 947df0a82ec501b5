"""The chained log on both databases: order, append-only, and every kind of edit is found."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from surelist import Expected, Hash, calibrate, examples
from surelist.cli import run
from surelist.errors import InvalidInput
from surelist.service.errors import Conflict, NotFound, StorageError
from surelist.service.record import access
from surelist.service.record.database import Database, add_guards
from surelist.service.record.event import GENESIS, Entry, Unknown, next_entry
from surelist.service.record.events import hash_of
from surelist.service.record.log import Key
from surelist.service.record.record import Registry
from surelist.service.record.verify import verify
from tests.helpers.record import by, forge, save, selection
from tests.helpers.service import close


@pytest.fixture(scope="module")
def policy():
    return calibrate(*examples.population(np.random.default_rng(0), 2000), Expected(5, 100))


class Storied:
    """A record in which everything has happened once."""

    def __init__(self, registry: Registry, policy) -> None:
        self.registry, self.database = registry, registry.database
        scores, labels = examples.population(np.random.default_rng(0), 500)
        salted = calibrate(scores.round(1), labels, Expected(5, 100), ties=Hash([str(i) for i in range(500)]))
        saved(registry, salted)
        self.policy = saved(registry, policy)
        made(registry, self.policy, listed=2)
        made(registry, self.policy, "b" * 16)
        by(registry, "ann").record_reviews("a" * 16, {"x": True}).result()
        token, _ = access.create_token(by(registry, "ann"), "bob", "viewer", policies=[self.policy], days=3)
        access.begin_session(registry, token, 60)
        self.revoked = access.create_token(by(registry, "ann"), "old", "viewer")[0].id
        access.revoke_token(by(registry, "ann"), self.revoked)
        by(registry, "bob", Key("k", "r")).retire_policy(self.policy, "outdated").result()
        self.head = registry.entries(limit=1)[0].receipt


@pytest.fixture
def storied(registry, policy) -> Storied:
    return Storied(registry, policy)


def saved(registry: Registry, policy) -> str:
    return save(registry, policy, "p", "ann").entry.subject


def made(registry: Registry, digest: str, name: str = "a" * 16, listed: int = 3) -> Entry:
    facts = {"candidates": 9, "shortlisted": listed}
    return by(registry, "ann").record_selection(name, selection(digest, **facts)).result().entry


def test_entries_are_chained_in_order(registry, policy):
    digest = saved(registry, policy)
    first, second = registry.entries()[0], made(registry, digest)
    assert (first.seq, second.seq) == (1, 2)
    assert first.previous == GENESIS
    assert second.previous == first.hash
    assert verify(registry.database).intact
    assert verify(registry.database).head == second.receipt


def test_a_policy_comes_back_and_is_known_by_its_hash(registry, policy):
    found = registry.policy(saved(registry, policy))
    assert found.policy == policy
    assert found.retired is None
    assert save(registry, policy, "p", "bob").replayed
    assert len(registry.entries()) == 1
    with pytest.raises(NotFound):
        registry.policy("0" * 64)


def test_a_salt_stays_out_of_the_log(registry):
    scores, labels = examples.population(np.random.default_rng(0), 500)
    ids = [str(i) for i in range(500)]
    policy = calibrate(scores.round(1), labels, Expected(5, 100), ties=Hash(ids))
    digest = saved(registry, policy)
    assert registry.policy(digest).policy.salt == policy.salt
    assert policy.salt.key not in registry.entries()[0].details


def test_a_retired_policy_makes_no_selection(registry, policy):
    digest = saved(registry, policy)
    by(registry, "ann").retire_policy(digest, "outdated").result()
    assert registry.policy(digest).retired.facts == {"reason": "outdated"}
    with pytest.raises(Conflict, match="retired"):
        made(registry, digest)
    with pytest.raises(Conflict, match="retired"):
        by(registry, "ann").retire_policy(digest, "again").result()
    assert len(registry.entries()) == 2


def test_the_same_key_is_recorded_once(registry, policy):
    digest = saved(registry, policy)
    facts = {"candidates": 9, "shortlisted": 3}
    first = by(registry, "ann", Key("k", "r")).record_selection("a" * 16, selection(digest, **facts)).result()
    again = by(registry, "ann", Key("k", "r")).record_selection("b" * 16, selection(digest, **facts)).result()
    assert again.entry == first.entry
    assert again.replayed
    assert not first.replayed
    with pytest.raises(Conflict, match="another request"):
        by(registry, "ann", Key("k", "other")).record_selection("c" * 16, selection(digest, **facts)).result()
    other = (
        by(registry, "bob", Key("k", "other")).record_selection("d" * 16, selection(digest, **facts)).result()
    )
    assert not other.replayed
    assert len(registry.entries()) == 3


def test_eight_writers_and_two_processes_worth_of_connections_keep_one_chain(address, policy):
    database = Database(address)
    database.prepare()
    registries = [Registry(database), Registry(Database(address))]
    digest = saved(registries[0], policy)
    failures = []

    def work(number: int) -> None:
        registry = registries[number % 2]
        try:
            for i in range(50):
                made(registry, digest, f"{number:08d}{i:08d}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    verdict = verify(database)
    assert failures == []
    assert verdict.intact, verdict.problems
    assert verdict.entries == 401
    for registry in registries:
        registry.close()
    database.close()


def test_one_refused_job_leaves_the_others_of_its_batch(registry, policy):
    digest = saved(registry, policy)
    registry.writer.submit(lambda batch: __import__("time").sleep(0.2))  # the others gather behind this one
    good = [
        by(registry, "a").record_selection(f"{i:016d}", selection(digest, shortlisted=0)) for i in range(3)
    ]
    bad = by(registry, "a").record_selection("f" * 16, selection("0" * 64, shortlisted=0))
    more = by(registry, "a").record_selection("e" * 16, selection(digest, shortlisted=0))
    with pytest.raises(NotFound):
        bad.result()
    assert [f.result().entry.seq for f in [*good, more]] == [2, 3, 4, 5]
    assert verify(registry.database).intact


def test_a_job_that_breaks_in_the_database_spares_its_batch(registry, policy):
    digest = saved(registry, policy)
    registry.writer.submit(lambda batch: __import__("time").sleep(0.2))
    broken = registry.writer.submit(lambda batch: batch.connection.execute("SELECT nonsense FROM nowhere"))
    good = by(registry, "a").record_selection("e" * 16, selection(digest, shortlisted=0))
    with pytest.raises(StorageError):
        broken.result()
    assert good.result().entry.seq == 2
    assert verify(registry.database).intact


def test_reviews_replace_earlier_ones_and_stay_out_of_the_log(registry, policy):
    made(registry, saved(registry, policy), listed=2)
    name = "a" * 16
    by(registry, "ann").record_reviews(name, {"Jane Roe": True, "John Doe": False}).result()
    by(registry, "ann").record_reviews(name, {"John Doe": True}).result()
    assert by(registry).marks(name).outcomes() == {"Jane Roe": True, "John Doe": True}
    assert not any("Doe" in entry.details for entry in registry.entries())
    with pytest.raises(InvalidInput, match="2 candidates, but 3"):
        by(registry, "ann").record_reviews(name, {"Someone Else": True}).result()
    assert verify(registry.database).intact


def test_the_database_refuses_changes(registry, policy):
    made(registry, saved(registry, policy))
    by(registry, "ann").record_reviews("a" * 16, {"x": True}).result()
    for statement in ("UPDATE log SET actor = 'eve'", "DELETE FROM log WHERE seq = 2", "DELETE FROM reviews"):
        connection = registry.database.connect()
        with pytest.raises(StorageError) as refused:
            connection.execute(statement)
        assert "append-only" in refused.value.detail


def test_what_the_software_writes_is_intact(storied):
    assert verify(storied.database, (storied.head,)).problems == []


ATTACKS = {
    "one word": ("UPDATE log SET actor = 'eve' WHERE seq = 2", "was edited"),
    "the details": ("UPDATE log SET details = replace(details, '9', '8') WHERE seq = 2", "was edited"),
    "the time": ("UPDATE log SET at = '2020' WHERE seq = 1", "was edited"),
    "the action": ("UPDATE log SET action = 'rows.looked' WHERE action = 'policy.retired'", "was edited"),
    "an entry gone": ("DELETE FROM log WHERE seq = 2", "is missing"),
    "the first entry gone": ("DELETE FROM log WHERE seq = 1", "is missing"),
    "the end gone": ("DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)", "cut off"),
    "everything gone": ("DELETE FROM log", "the log is empty"),
    "numbers swapped": ("UPDATE log SET seq = seq + 100 WHERE seq > 2", "is missing"),
    "a review": ("UPDATE reviews SET qualified = 1 - qualified", "reviews were edited"),
    "a review gone": ("DELETE FROM reviews", "reviews were edited"),
    "a review added": ("INSERT INTO reviews (selection, candidate, qualified, seq) VALUES ('x', 'y', 1, 99)",
                       "reviews, but"),
    "reviews moved": ("UPDATE reviews SET selection = 'bbbbbbbbbbbbbbbb'", "moved to another selection"),
    "a reviewed person exchanged": ("UPDATE reviews SET candidate = 'someone else'", "reviews were edited"),
    "a role raised": ("UPDATE log SET details = replace(details, '\"viewer\"', '\"admin\"') WHERE action = 'token.created'", "was edited"),
    "a scope widened": ("UPDATE log SET details = replace(details, 'policy', 'police') WHERE action = 'token.created'", "was edited"),
    "an expiry put off": ("UPDATE log SET details = replace(details, '\"20', '\"29') WHERE action = 'token.created'", "was edited"),
    "a revoked token revived": ("DELETE FROM log WHERE action = 'token.revoked'", "is missing"),
    "a secret exchanged": ("UPDATE log SET details = replace(details, '\"fingerprint\":\"', '\"fingerprint\":\"a') "
                           "WHERE action = 'token.created'", "was edited"),
    "a token added": ("INSERT INTO log SELECT 99, at, actor, action, 'e', details, previous, 'x' || hash FROM log "
                      "WHERE seq = (SELECT min(seq) FROM log WHERE action = 'token.created')", "entry 99 was edited"),
    "a token gone": ("DELETE FROM log WHERE action = 'token.created'", "is missing"),
    "a session slipped in": ("INSERT INTO sessions (digest, token, expires) SELECT 'x' || subject, subject, '2999' FROM log "
                             "WHERE action = 'token.created'", "was never begun"),
    "a salt exchanged": ("UPDATE salts SET secret = replace(secret, 'key', 'kez')", "cannot be read"),
    "a salt gone": ("DELETE FROM salts", "salt of its policy is gone"),
    "a salt added": ("INSERT INTO salts (policy, secret) VALUES ('x', 'y')", "which has none"),
    "a key led astray": ("UPDATE replays SET seq = 1, at = (SELECT at FROM log WHERE seq = 1)", "not theirs"),
    "guards removed": (None, "guard against changes"),
    "a review neither 0 nor 1": ("UPDATE reviews SET qualified = qualified + 0.5", "reviews were edited"),
    "an earlier end of a token": ("UPDATE log SET at = '2020-01-01T00:00:00.000+00:00' WHERE action = 'token.revoked'", "was edited"),
    "a token made older": ("UPDATE log SET at = '2020-01-01T00:00:00.000+00:00' WHERE action = 'token.created'", "was edited"),
    "a session prolonged": ("UPDATE sessions SET expires = '2999-01-01'", "expires was changed"),
}  # fmt: skip


SWALLOWING = {
    "sqlite": ["CREATE TRIGGER quiet BEFORE INSERT ON log WHEN NEW.action = 'token.revoked' "
               "BEGIN SELECT RAISE(IGNORE); END"],
    "postgresql": ["CREATE RULE quiet AS ON INSERT TO log WHERE NEW.action = 'token.revoked' DO INSTEAD NOTHING"],
}  # fmt: skip
HOLLOW = {
    "sqlite": ["DROP TRIGGER log_no_update", "CREATE TRIGGER log_no_update BEFORE update ON log WHEN 0 "
               "BEGIN SELECT RAISE(ABORT, 'log is append-only'); END"],
    "postgresql": ["CREATE OR REPLACE FUNCTION surelist_append_only() RETURNS trigger LANGUAGE plpgsql AS "
                   "$$ BEGIN RETURN NULL; END $$"],
}  # fmt: skip
ASLEEP = {  # a trigger that fires on replicas only
    "sqlite": ["DROP TRIGGER reviews_no_delete"],
    "postgresql": ["ALTER TABLE reviews ENABLE REPLICA TRIGGER reviews_append_only"],
}


@pytest.mark.parametrize(
    ("change", "symptom"),
    [
        (SWALLOWING, "quiet was added"),
        (HOLLOW, "guard against changes"),
        (ASLEEP, "changes of the table reviews"),
    ],
)
def test_a_guard_made_hollow_and_a_trigger_that_swallows_entries_are_noticed(storied, change, symptom):
    connection = storied.database.connect()
    for statement in change[storied.database.kind]:
        connection.execute(statement)
    assert any(symptom in problem for problem in verify(storied.database, (storied.head,)).problems)


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_is_noticed(storied, attack):
    statement, symptom = ATTACKS[attack]
    tamper(storied.database, statement, restore=statement is not None)
    problems = verify(storied.database, (storied.head,)).problems
    assert any(symptom in problem for problem in problems), problems


def test_an_entry_in_the_middle_with_a_hash_made_anew_is_noticed_by_the_next_one(storied):
    entry = storied.registry.entries(limit=1000)[-2]
    forged = replace(entry, at="2020-01-01T00:00:00.000+00:00")
    tamper(
        storied.database,
        f"UPDATE log SET at = '{forged.at}', hash = '{forged.expected_hash()}' WHERE seq = {entry.seq}",
    )
    problems = verify(storied.database).problems
    assert f"entry {entry.seq + 1} does not follow the entry before it" in problems


def test_an_insert_without_a_sequence_number_is_noticed(tmp_path, policy):
    """SQLite let a BIGINT PRIMARY KEY be NULL; records made before NOT NULL stay readable and are checked."""
    database = Database(str(tmp_path / "r.db"))
    database.prepare()
    connection = database.connect()
    for name in (
        "log_no_update",
        "log_no_delete",
        "log_by_action",
        "log_by_subject",
        "log_by_policy",
        "log_by_file",
    ):
        connection.execute(f"DROP {'TRIGGER' if '_no_' in name else 'INDEX'} {name}")
    connection.execute("DROP TABLE log")
    connection.execute(
        "CREATE TABLE log (seq BIGINT PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, "
        "subject TEXT NOT NULL, details TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)"
    )
    add_guards("sqlite", connection, ("log",))
    registry = Registry(database)
    saved(registry, policy)
    assert verify(database).intact
    row = "'2026', 'eve', 'policy.saved', 'x', '{}', 'p', "
    connection.execute(f"INSERT INTO log VALUES (NULL, {row} 'h1')")
    assert "rows without a number" in verify(database).problems[0]
    connection.execute(f"INSERT INTO log VALUES ('zzz', {row} 'h2')")
    assert any("no entry, numbered 'zzz'" in problem for problem in verify(database).problems)
    registry.close()


def test_the_database_refuses_an_entry_without_a_number(registry):
    with pytest.raises(StorageError):
        registry.database.connect().execute(
            "INSERT INTO log VALUES (NULL, '2026', 'eve', 'policy.saved', 'x', '{}', 'p', 'h')"
        )


FORGERIES = {
    "a selection with a retired policy": (
        "selection.made", "c" * 16, lambda s: to_builtins(selection(s.policy)), "was retired before"
    ),
    "a selection with no policy": (
        "selection.made", "c" * 16, lambda s: to_builtins(selection("0" * 64)), "was never saved"
    ),
    "a policy retired twice": ("policy.retired", None, lambda s: {"reason": "x"}, "was retired before"),
    "reviews of nothing": (
        "reviews.received", "d" * 16, lambda s: {"reviews": 0, "qualified": 0, "sha256": hash_of([])},
        "selection was never made",
    ),
    "a policy under another hash": ("policy.saved", "0" * 64, lambda s: {"name": "p", "policy": "{}"}, "does not have the hash"),
    "a session after the end": (
        "session.begun", "revoked", lambda s: {"fingerprint": "f", "expires": "2999"}, "revoked before"
    ),
    "a token changed after the end": (
        "token.changed", "revoked", lambda s: {"role": "admin", "policy": None}, "revoked before"
    ),
    "a token made twice": (
        "token.created", "revoked",
        lambda s: {"name": "eve", "role": "admin", "policy": None, "expires": None, "fingerprint": "f"}, "made before",
    ),
    "nonsense": ("policy.saved", "0" * 64, lambda s: {"policy": 7}, "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES)
def test_an_entry_that_contradicts_the_record_is_noticed(storied, forgery):
    """Whoever can append a well-chained entry still cannot make it fit what is there."""
    action, subject, facts, symptom = FORGERIES[forgery]
    subject = storied.policy if subject is None else storied.revoked if subject == "revoked" else subject
    head = storied.registry.entries(limit=1)[0]
    event = Unknown(kind=action, facts=facts(storied))
    entry = next_entry((head.seq, head.hash), event, at="2026", actor="eve", subject=subject)
    storied.database.connect().execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", list(entry.row()))
    assert any(symptom in problem for problem in verify(storied.database).problems)


def test_contradictory_receipts_are_noticed(storied):
    seq, _, _ = storied.head.partition(":")
    verdict = verify(storied.database, (storied.head, f"{seq}:{'0' * 64}"))
    assert verdict.problems == [f"two receipts of entry {seq} contradict each other"]


def test_a_record_can_be_checked_while_it_is_written(registry, policy):
    digest = saved(registry, policy)
    stop = threading.Event()

    def write() -> None:
        for number in range(200):  # not more than checks can follow, whichever of the two is faster
            if stop.is_set():
                return
            made(registry, digest, f"{number:016d}", listed=1)
            by(registry, "ann").record_reviews(f"{number:016d}", {"x": True}).result()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        verdicts = [verify(registry.database) for _ in range(30)]
    finally:
        stop.set()
        writer.join()
    assert [problem for verdict in verdicts for problem in verdict.problems] == []


def check(address: str, *more: str) -> int:
    return run(["verify-log", "--database", address, *more])


def test_a_missing_record_is_refused_and_not_made(tmp_path, capsys):
    assert check(str(tmp_path / "nowhere" / "r.db")) == 2
    assert "there is no file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_a_record_is_refused(address, tmp_path, capsys):
    if "://" not in address:
        Path(address).touch()
    assert check(address) == 2
    assert "holds no record" in capsys.readouterr().err
    if "://" not in address:
        assert Path(address).read_bytes() == b""


def test_checking_creates_and_changes_nothing(tmp_path, policy):
    folder = tmp_path / "record"
    database = Database(str(folder / "r.db"))
    database.prepare()
    registry = Registry(database)
    saved(registry, policy)
    while_open = contents(folder)
    assert check(str(folder / "r.db")) == 0
    assert contents(folder).keys() == while_open.keys()
    registry.close()
    closed = contents(folder)
    assert check(str(folder / "r.db")) == 0
    assert contents(folder) == closed


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("crashed", [False, True])
def test_a_record_on_a_read_only_medium_is_checked(tmp_path, policy, crashed):
    """A backup on a read-only disk, or what a crash left there: entries in the log of pending writes count."""
    live, medium = tmp_path / "live", tmp_path / "medium"
    medium.mkdir()
    database = Database(str(live / "r.db"))
    database.prepare()
    registry = Registry(database)
    saved(registry, policy)
    names = ["r.db", "r.db-wal"] if crashed else ["r.db"]
    if not crashed:
        registry.close()
    for name in names:
        shutil.copyfile(live / name, medium / name)
        (medium / name).chmod(0o400)
    mounted = (
        os.getuid() == 0
        and not subprocess.run(
            ["mount", "--bind", "-o", "ro", str(medium), str(medium)], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        medium.chmod(0o500)
    try:
        before = contents(medium)
        assert check(str(medium / "r.db"), "--receipt", f"1:{registry_head(live)}") == 0
        assert contents(medium) == before
    finally:
        if mounted:
            subprocess.run(["umount", str(medium)], check=True)
        medium.chmod(0o700)
        if crashed:
            registry.close()


def registry_head(folder: Path) -> str:
    database = Database(str(folder / "r.db"), read_only=True)
    with database.snapshot() as connection:
        return str(connection.execute("SELECT hash FROM log WHERE seq = 1")[0][0])


def test_a_policys_selections_are_found_by_an_index(registry, policy):
    digest = saved(registry, policy)
    made(registry, digest)
    assert [entry.subject for entry in by(registry).selections(digest)] == ["a" * 16]
    assert by(registry).selections("0" * 64) == []
    connection = registry.database.connect()
    where = registry.database.json_text("policy")
    query = f"SELECT seq FROM log WHERE action = 'selection.made' AND {where} = 'x' AND seq < 9"
    if registry.database.kind == "sqlite":
        plan = str(connection.execute(f"EXPLAIN QUERY PLAN {query}"))
    else:
        connection.execute("SET enable_seqscan = off")
        plan = str(connection.execute(f"EXPLAIN {query}"))
    assert "log_by_policy" in plan


def test_looks_at_rows_are_read_from_an_index(registry, monkeypatch):
    asked: list[Any] = []
    read = registry.database.read

    def noted(sql: str, values: Any = ()) -> Any:
        asked.extend([sql, values])
        return read(sql, values)

    monkeypatch.setattr(registry.database, "read", noted)
    by(registry).looks("a" * 64, "b" * 64)
    monkeypatch.setattr(registry.database, "read", read)
    if registry.database.kind == "sqlite":
        plan = [row[-1] for row in registry.database.read("EXPLAIN QUERY PLAN " + asked[0], asked[1])]
        assert not [step for step in plan if step.startswith("SCAN log")]
        assert any("log_by_subject" in step for step in plan)
        assert any("log_by_file" in step for step in plan)
    for number, (rows, file) in enumerate([("r1", "f1"), ("r2", "f1"), ("r3", "f3"), ("f1", "f9")]):
        question = {"targets": {}, "alpha": number / 10, "rule": "exact"}
        forge(registry, "me", "rows.looked", rows, {"file": file, "how": "h", "asked": question}).result()
    assert [look.asked.alpha for look in by(registry).looks("r1", "f1")] == [0, 0.1, 0.3]


def test_requests_that_come_together_share_a_transaction(registry, policy, monkeypatch):
    """From an event loop the writer is woken when the loop has run what was ready."""
    digest = saved(registry, policy)
    sizes: list[int] = []
    run = registry.writer._run

    def counted(jobs: Any) -> None:
        sizes.append(len(jobs))
        run(jobs)

    monkeypatch.setattr(registry.writer, "_run", counted)

    async def one(number: int) -> int:
        future = by(registry, "a").record_selection(f"{number:016d}", selection(digest, shortlisted=0))
        return (await asyncio.wrap_future(future)).entry.seq

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    assert asyncio.run(all_at_once()) == list(range(2, 22))
    assert sizes == [20]
    assert asyncio.run(one(99)) == 22  # in another loop
    assert verify(registry.database).intact


def test_a_closed_record_takes_no_more_writes(registry, policy):
    saved(registry, policy)
    registry.writer.close()
    with pytest.raises(StorageError, match="stopping"):
        forge(registry, "me", "x", "y", {}).result()


def test_a_nul_character_is_refused_in_words(registry, policy):
    made(registry, saved(registry, policy))
    with pytest.raises(InvalidInput, match="NUL"):
        by(registry, "ann").record_reviews("a" * 16, {"Jane\0Roe": True}).result()
    with pytest.raises(InvalidInput, match="NUL"):
        registry.policy("a\0b")
    assert verify(registry.database).intact


SECRETS = [
    "postgresql://zoe1:s3cr3t@127.0.0.1:1/records",
    "postgresql://127.0.0.1:1/records?user=zoe1&password=s3cr3t",
    "postgresql://zoe1:s3cr3t%40x@127.0.0.1:1,127.0.0.1:2/records",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_about_the_database_address_leaves(secret, tmp_path, caplog):
    from starlette.testclient import TestClient

    from surelist.service.app import create_app
    from surelist.service.settings import Settings

    app = create_app(Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "data"))
    app.state.runtime.registry.database = Database(secret)
    client = TestClient(app, base_url="http://localhost")
    for url in ("/readyz", "/api/v1/policies", "/policies", "/api/v1/log"):
        answer = client.get(url)
        assert answer.status_code == 503
        for part in ("s3cr3t", "zoe1", "127.0.0.1", "records", str(tmp_path)):
            assert part not in answer.text
    close(app)
    assert "s3cr3t" not in caplog.text
    assert "postgresql://127.0.0.1" in caplog.text


def test_a_broken_address_is_not_repeated(capsys):
    assert run(["token", "list", "--database", "postgresql://ann:x@h/db?pass=s3cr3t"]) == 2
    error = capsys.readouterr().err
    assert "s3cr3t" not in error
    assert "cannot be read" in error


def test_the_command_line_says_where_the_record_is(tmp_path, capsys):
    path = tmp_path / "r.db"
    path.write_bytes(b"not a database at all" * 100)
    assert check(str(path)) == 2
    assert str(path) in capsys.readouterr().err


def test_a_rehashed_forgery_is_found_by_a_receipt(registry, policy):
    """Whoever can write to the database can recompute the chain; a receipt kept elsewhere shows it."""
    made(registry, saved(registry, policy))
    receipt = registry.entries()[0].receipt
    entry = registry.entries()[0]
    forged = replace(entry, actor="eve")
    tamper(
        registry.database,
        f"UPDATE log SET actor = 'eve', hash = '{forged.expected_hash()}' WHERE seq = {entry.seq}",
    )
    assert verify(registry.database).intact
    assert verify(registry.database, (receipt,)).problems == ["entry 2 is not the one noted elsewhere"]


def tamper(database: Database, statement: str | None, restore: bool = True) -> None:
    """As someone with full rights would: the triggers out of the way, and back afterwards."""
    connection = database.connect()
    guards = []
    if database.kind == "sqlite":
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
    else:
        for table in ("log", "reviews"):
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    if statement is not None:
        connection.execute(statement)
    if restore:
        for _, sql in guards:
            connection.execute(sql)
        if database.kind == "postgresql":
            for table in ("log", "reviews"):
                connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")


@pytest.mark.parametrize("change", ["value = '99'", "name = 'schema', value = '3'"])
def test_a_record_of_another_format_is_refused_untouched(address, change):
    database = Database(address)
    database.prepare()
    connection = database.connect()
    connection.execute(f"UPDATE meta SET {change} WHERE name = 'format'")
    before = connection.execute("SELECT * FROM meta")
    with pytest.raises(InvalidInput, match=r"another format than 1.*Nothing was changed"):
        database.prepare()
    assert connection.execute("SELECT * FROM meta") == before
    database.close()


def test_a_lost_connection_is_opened_again(address, policy):
    database = Database(address)
    database.prepare()
    registry = Registry(database)
    digest = saved(registry, policy)
    for connection in list(database._opened):
        connection.close()
    assert made(registry, digest).seq == 2
    assert registry.policy(digest).name == "p"
    registry.close()


def test_sqlite_settings_are_the_durable_ones(tmp_path):
    database = Database(str(tmp_path / "r.db"))
    database.prepare()
    connection = database.connect()
    assert connection.execute("PRAGMA journal_mode") == [("wal",)]
    assert connection.execute("PRAGMA synchronous") == [(2,)]
    assert oct((tmp_path / "r.db").stat().st_mode)[-3:] == "600"
    database.close()


def test_a_record_that_a_service_has_open_is_read_as_one_that_may_change(tmp_path, policy):
    """Nothing is pending yet after a restart; entries that are written while it is verified are no tampering."""
    for _ in range(2):
        database = Database(str(tmp_path / "r.db"))
        database.prepare()
        registry = Registry(database)
        registry.entries(limit=1)  # opens it
        assert (tmp_path / "r.db-shm").exists()
        reading = Database(str(tmp_path / "r.db"), read_only=True)
        connection = reading.connect()
        connection.begin_snapshot()
        before = connection.execute("SELECT count(*) FROM log")
        saved(registry, policy)
        registry.writer._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        assert connection.execute("SELECT count(*) FROM log") == before
        connection.rollback()
        assert connection.execute("SELECT count(*) FROM log") > before or before[0][0] > 0
        assert verify(Database(str(tmp_path / "r.db"), read_only=True)).intact
        registry.close()


def test_a_full_disk_is_a_clear_error_and_passes(tmp_path, policy):
    from surelist.service.errors import DiskFull

    database = Database(str(tmp_path / "r.db"))
    database.prepare()
    registry = Registry(database)
    digest = saved(registry, policy)
    connection = registry.writer._connection
    pages = connection.execute("PRAGMA page_count")[0][0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own "disk is full"
    big = {"candidates": 1, "shortlisted": 1, "groups": {str(i): (1, 1) for i in range(20_000)}}
    limited(registry, pages)  # both the batch and its second try run into it
    with pytest.raises(DiskFull, match="full"):
        by(registry, "a").record_selection("b" * 16, selection(digest, **big)).result()
    unlimited(registry)
    assert by(registry, "a").record_selection("b" * 16, selection(digest, **big)).result().entry.seq == 2
    assert verify(database).intact
    registry.close()


def limited(registry: Registry, pages: int) -> None:
    plain = registry.database.connect

    def connect():
        connection = plain()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    vars(registry.database)["connect"] = connect


def unlimited(registry: Registry) -> None:
    del vars(registry.database)["connect"]
    registry.writer._drop()


def test_garbage_instead_of_a_database_is_a_clear_error(tmp_path):
    path = tmp_path / "r.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StorageError) as refused:
        Database(str(path)).prepare()
    assert "r.db" in refused.value.detail


def test_sqlite_is_a_plain_file_that_others_can_read(registry, policy, address):
    if registry.database.kind != "sqlite":
        pytest.skip("SQLite only")
    made(registry, saved(registry, policy))
    rows = sqlite3.connect(address).execute("SELECT action FROM log ORDER BY seq").fetchall()
    assert rows == [("policy.saved",), ("selection.made",)]
