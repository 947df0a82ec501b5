"""Reviews on record, on both databases: who marked what, disagreements, notes, and what verify-log says of them."""

from __future__ import annotations

import pytest

from surelist.errors import InvalidInput
from surelist.service.record.database import Database
from surelist.service.record.log import Key
from surelist.service.record.marks import SETTLED_NO, TAKEN_BACK
from surelist.service.record.record import Registry
from surelist.service.record.verify import verify
from tests.helpers.record import by, forge, selection

LIST = "a" * 16


@pytest.fixture
def book(registry):
    forge(registry, "ann", "policy.saved", "p", {"name": "p", "policy": ""}).result()
    facts = {"candidates": 10, "shortlisted": 4, "groups": {}}
    by(registry, "ann").record_selection(LIST, selection("p", **facts)).result()
    return by(registry, "ann")


def marked(book, **marks: dict[str, int]):
    for reviewer, reviews in marks.items():
        by(book.registry, reviewer).record_reviews(LIST, reviews).result()
    return book.marks(LIST)


def problems(registry) -> list[str]:
    """Without what the made-up policy lacks."""
    return [
        each
        for each in verify(registry.database).problems
        if "entry 1:" not in each and "policy p" not in each
    ]


def test_two_reviewers_agree_disagree_and_settle(registry, book):
    marks = marked(book, ann={"x": True, "y": True, "z": False}, bob={"x": True, "y": False})
    assert [marks.status(each) for each in "xyzw"] == ["yes", "split", "no", "open"]
    assert marks.counts() == {"yes": 1, "no": 1, "split": 1, "seen": 0}
    assert marks.outcomes() == {"x": True, "z": False}
    assert [(m.reviewer, m.qualified) for m in marks.of("y")] == [("ann", True), ("bob", False)]
    assert marks.reviewers() == {"ann": 3, "bob": 2}
    by(book.registry, "cy").record_reviews(LIST, {"y": SETTLED_NO}).result()
    marks = book.marks(LIST)
    assert marks.status("y") == "no"
    assert marks.of("y")[-1].settles
    assert marked(book, ann={"y": True}).status("y") == "no"  # what is settled stays
    assert problems(registry) == []


def test_a_mark_is_taken_back(registry, book):
    marks = marked(book, ann={"x": True}, bob={"x": False})
    assert marks.status("x") == "split"
    assert marked(book, bob={"x": TAKEN_BACK}).status("x") == "yes"
    assert marked(book, ann={"x": TAKEN_BACK}).status("x") == "open"
    assert book.marks(LIST).counts() == {"yes": 0, "no": 0, "split": 0, "seen": 0}
    assert problems(registry) == []


def test_another_process_sees_what_was_added(registry, book, address):
    marked(book, ann={"x": True})
    other = Registry(Database(address))
    try:
        assert by(other).marks(LIST).status("x") == "yes"
        marked(book, ann={"x": False})
        assert by(other).marks(LIST).status("x") == "no"
    finally:
        other.close()


def test_marks_of_strangers_and_strange_marks_are_refused(book):
    marked(book, ann={"x": True, "y": True, "z": True})
    with pytest.raises(InvalidInput, match="4 candidates, but 5 different"):
        book.record_reviews(LIST, {"v": True, "w": True}).result()
    with pytest.raises(InvalidInput, match="expected yes or no"):
        book.record_reviews(LIST, {"x": 3})
    assert book.marks(LIST).status("v") == "open"


def test_the_same_key_marks_once(book, registry):
    book.key = Key("k", "r")
    first = book.record_reviews(LIST, {"x": True}).result()
    again = book.record_reviews(LIST, {"x": True}).result()
    assert (first.entry.seq, True) == (again.entry.seq, again.replayed)


def test_notes_are_vouched_for_until_their_list_is_removed(registry, book):
    book.write_note(LIST, "x", "called on Monday").result()
    by(book.registry, "bob").write_note(LIST, "x", "no answer").result()
    assert [(n.by, n.text) for n in book.notes(LIST, "x")] == [
        ("ann", "called on Monday"),
        ("bob", "no answer"),
    ]
    assert book.all_notes(LIST) == {"x": "called on Monday / no answer"}
    assert problems(registry) == []
    assert "Monday" not in "".join(entry.details for entry in registry.entries())
    connection = registry.database.connect()
    connection.execute("UPDATE notes SET text = 'hired' WHERE text = 'no answer'")
    assert "not what the log says" in problems(registry)[0]
    connection.execute("DELETE FROM notes WHERE text = 'hired'")
    assert "is gone" in problems(registry)[0]
    book.forget_list(LIST, "no longer needed").result()
    assert book.notes(LIST, "x") == []
    assert problems(registry) == []
    with pytest.raises(InvalidInput, match="1 to 4,000"):
        book.write_note(LIST, "x", " ")
