"""The chained log on both databases: order, append-only, and every kind of edit is found."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from surelist import Expected, calibrate, examples
from surelist.errors import InvalidInput
from surelist.service.errors import Conflict, NotFound, StorageError
from surelist.service.record.chain import GENESIS, Entry
from surelist.service.record.database import Database
from surelist.service.record.record import Key, Registry
from surelist.service.record.verify import verify


@pytest.fixture(scope="module")
def policy():
    import numpy as np

    return calibrate(*examples.population(np.random.default_rng(0), 2000), Expected(5, 100))


def saved(registry: Registry, policy) -> str:
    return registry.save_policy(policy, "p", "ann", {}).result().entry.subject


def made(registry: Registry, digest: str, name: str = "a" * 16, listed: int = 3) -> Entry:
    facts = {"candidates": 9, "shortlisted": listed}
    return registry.record_selection(name, digest, "ann", facts).result().entry


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
    assert registry.save_policy(policy, "p", "bob", {}).result().replayed
    assert len(registry.entries()) == 1
    with pytest.raises(NotFound):
        registry.policy("0" * 64)


def test_a_salt_stays_out_of_the_log(registry):
    import numpy as np

    scores, labels = examples.population(np.random.default_rng(0), 500)
    ids = [str(i) for i in range(500)]
    policy = calibrate(scores.round(1), labels, Expected(5, 100), ties="hash", ids=ids)
    digest = saved(registry, policy)
    assert registry.policy(digest).policy.salt == policy.salt
    assert policy.salt.key not in registry.entries()[0].details


def test_a_retired_policy_makes_no_selection(registry, policy):
    digest = saved(registry, policy)
    registry.retire_policy(digest, "ann", "outdated").result()
    assert registry.policy(digest).retired.facts == {"reason": "outdated"}
    with pytest.raises(Conflict, match="retired"):
        made(registry, digest)
    with pytest.raises(Conflict, match="retired"):
        registry.retire_policy(digest, "ann", "again").result()
    assert len(registry.entries()) == 2


def test_the_same_key_is_recorded_once(registry, policy):
    digest = saved(registry, policy)
    facts = {"candidates": 9, "shortlisted": 3}
    first = registry.record_selection("a" * 16, digest, "ann", facts, Key("k", "r")).result()
    again = registry.record_selection("b" * 16, digest, "ann", facts, Key("k", "r")).result()
    assert again.entry == first.entry
    assert again.replayed
    assert not first.replayed
    with pytest.raises(Conflict, match="another request"):
        registry.record_selection("c" * 16, digest, "ann", facts, Key("k", "other")).result()
    other = registry.record_selection("d" * 16, digest, "bob", facts, Key("k", "other")).result()
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
    good = [registry.record_selection(f"{i:016d}", digest, "a", {"shortlisted": 0}) for i in range(3)]
    bad = registry.record_selection("f" * 16, "0" * 64, "a", {"shortlisted": 0})
    more = registry.record_selection("e" * 16, digest, "a", {"shortlisted": 0})
    with pytest.raises(NotFound):
        bad.result()
    assert [f.result().entry.seq for f in [*good, more]] == [2, 3, 4, 5]
    assert verify(registry.database).intact


def test_a_job_that_breaks_in_the_database_spares_its_batch(registry, policy):
    digest = saved(registry, policy)
    registry.writer.submit(lambda batch: __import__("time").sleep(0.2))
    broken = registry.writer.submit(lambda batch: batch.connection.execute("SELECT nonsense FROM nowhere"))
    good = registry.record_selection("e" * 16, digest, "a", {"shortlisted": 0})
    with pytest.raises(StorageError):
        broken.result()
    assert good.result().entry.seq == 2
    assert verify(registry.database).intact


def test_reviews_replace_earlier_ones_and_stay_out_of_the_log(registry, policy):
    made(registry, saved(registry, policy), listed=2)
    name = "a" * 16
    registry.record_reviews(name, "ann", {"Jane Roe": True, "John Doe": False}).result()
    registry.record_reviews(name, "ann", {"John Doe": True}).result()
    assert registry.reviews(name) == {"Jane Roe": True, "John Doe": True}
    assert not any("Doe" in entry.details for entry in registry.entries())
    with pytest.raises(InvalidInput, match="2 candidates, but 3"):
        registry.record_reviews(name, "ann", {"Someone Else": True}).result()
    assert verify(registry.database).intact


def test_the_database_refuses_changes(registry, policy):
    made(registry, saved(registry, policy))
    registry.record_reviews("a" * 16, "ann", {"x": True}).result()
    for statement in ("UPDATE log SET actor = 'eve'", "DELETE FROM log WHERE seq = 2", "DELETE FROM reviews"):
        connection = registry.database.connect()
        with pytest.raises(StorageError, match="append-only"):
            connection.execute(statement)


EDITS = {
    "one word": "UPDATE log SET actor = 'eve' WHERE seq = 2",
    "the details": "UPDATE log SET details = replace(details, '9', '8') WHERE seq = 2",
    "the time": "UPDATE log SET at = '2020' WHERE seq = 1",
    "an entry gone": "DELETE FROM log WHERE seq = 2",
    "the first entry gone": "DELETE FROM log WHERE seq = 1",
    "the end gone": "DELETE FROM log WHERE seq = 4",
    "a review": "UPDATE reviews SET qualified = 1 - qualified",
    "a review gone": "DELETE FROM reviews",
    "a review added": "INSERT INTO reviews (selection, candidate, qualified, seq) VALUES ('x', 'y', 1, 99)",
    "numbers swapped": "UPDATE log SET seq = seq + 10 WHERE seq > 2",
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_found(registry, policy, edit):
    made(registry, saved(registry, policy), listed=2)
    registry.record_reviews("a" * 16, "ann", {"x": True}).result()
    head = made(registry, registry.policies()[0].hash, "b" * 16).receipt
    assert verify(registry.database, (head,)).intact
    tamper(registry.database, EDITS[edit])
    assert not verify(registry.database, (head,)).intact


def test_a_rehashed_forgery_is_found_by_a_receipt(registry, policy):
    """Whoever can write to the database can recompute the chain; a receipt kept elsewhere shows it."""
    made(registry, saved(registry, policy))
    receipt = registry.entries()[0].receipt
    entry = registry.entries()[0]
    forged = Entry(**{**vars(entry), "actor": "eve"})
    tamper(
        registry.database,
        f"UPDATE log SET actor = 'eve', hash = '{forged.expected_hash()}' WHERE seq = {entry.seq}",
    )
    assert verify(registry.database).intact
    assert verify(registry.database, (receipt,)).problems == ["entry 2 is not the one noted elsewhere"]


def tamper(database: Database, statement: str) -> None:
    """As someone with full rights would: without the triggers."""
    connection = database.connect()
    if database.kind == "sqlite":
        for name in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            connection.execute(f"DROP TRIGGER {name[0]}")
    else:
        for table in ("log", "reviews"):
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    connection.execute(statement)


def test_a_database_of_another_version_is_refused(address):
    database = Database(address)
    database.prepare()
    database.connect().execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(InvalidInput, match="version"):
        Database(address).prepare()
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


def test_a_full_disk_is_a_clear_error_and_passes(tmp_path, policy):
    from surelist.service.errors import DiskFull

    database = Database(str(tmp_path / "r.db"))
    database.prepare()
    registry = Registry(database)
    digest = saved(registry, policy)
    connection = registry.writer._connection
    pages = connection.execute("PRAGMA page_count")[0][0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own "disk is full"
    big = {"candidates": 1, "shortlisted": 1, "groups": {str(i): [1, 1] for i in range(20_000)}}
    limited(registry, pages)  # both the batch and its second try run into it
    with pytest.raises(DiskFull, match="full"):
        registry.record_selection("b" * 16, digest, "a", big).result()
    unlimited(registry)
    assert registry.record_selection("b" * 16, digest, "a", big).result().entry.seq == 2
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
    with pytest.raises(StorageError, match=r"r\.db"):
        Database(str(path)).prepare()


def test_sqlite_is_a_plain_file_that_others_can_read(registry, policy, address):
    if registry.database.kind != "sqlite":
        pytest.skip("SQLite only")
    made(registry, saved(registry, policy))
    rows = sqlite3.connect(address).execute("SELECT action FROM log ORDER BY seq").fetchall()
    assert rows == [("policy.saved",), ("selection.made",)]
