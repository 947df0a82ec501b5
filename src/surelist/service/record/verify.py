"""``surelist verify-log``: recompute the whole chain and check what hangs on it. Changes nothing.

Beside the log a record has tables that the log vouches for: reviews (their hash and their selection), notes,
the answers of labellings, tokens (role, scope, expiry, end), salts, sessions and idempotency keys. A row
that the log does not explain is a problem, as is an entry that contradicts an earlier one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from surelist.errors import InvalidInput, SurelistError
from surelist.promises.policy import Policy
from surelist.service.record import live_settings
from surelist.service.record.access import fingerprint
from surelist.service.record.chain import GENESIS, Entry
from surelist.service.record.connections import Connection
from surelist.service.record.database import Database
from surelist.service.record.guards import check_guards
from surelist.service.record.labellings import marks_hash
from surelist.service.record.log import COLUMNS
from surelist.service.record.marks import CODES, MARKS, Marks
from surelist.service.record.reviews import note_hash, reviews_hash, total_of
from surelist.service.record.verify_campaigns import CampaignStory
from surelist.workflows import labelling_record
from surelist.workflows.watching import WatchedPool, watch

PAGE = 2_000
EMPTY = "the log is empty: nothing was ever recorded, or everything was removed"
NEAR_SECONDS = 60  # between a row's time and that of the entry written with it


@dataclass
class Verdict:
    """``problems`` is empty if the record is as it was written."""

    entries: int = 0
    head: str = f"0:{GENESIS}"
    problems: list[str] = field(default_factory=list)
    actions: dict[str, int] = field(default_factory=dict)  # how many entries of each kind were looked at

    @property
    def intact(self) -> bool:
        return not self.problems


def verify(database: Database, noted: tuple[str, ...] = ()) -> Verdict:
    """Check every entry's hash, link and content, and every row of the tables beside the log.

    A chain by itself cannot show that its last entries were cut off: ``noted`` holds receipts
    (``seq:hash``) kept elsewhere, each of which must be in the chain.
    """
    verdict = Verdict()
    receipts = _receipts(noted, verdict)
    with database.snapshot() as connection:
        story = _Story(connection, verdict)
        previous = GENESIS
        for entry in _entries(connection, verdict):
            verdict.entries += 1
            verdict.actions[entry.action] = verdict.actions.get(entry.action, 0) + 1
            if entry.seq != verdict.entries:
                verdict.problems.append(
                    f"entry {verdict.entries} is missing: entry {entry.seq} follows instead"
                )
                verdict.entries = entry.seq
            if entry.previous != previous:
                verdict.problems.append(f"entry {entry.seq} does not follow the entry before it")
            if entry.expected_hash() != entry.hash:
                verdict.problems.append(f"entry {entry.seq} was edited: its hash does not fit its content")
            else:
                story.tell(entry)
            if receipts.pop(entry.seq, entry.hash) != entry.hash:
                verdict.problems.append(f"entry {entry.seq} is not the one noted elsewhere")
            previous, verdict.head = entry.hash, entry.receipt
        story.compare_tables()
        verdict.problems += check_guards(database.kind, connection)
    if verdict.entries == 0:
        verdict.problems.append(EMPTY)
    for seq in receipts:
        verdict.problems.append(f"entry {seq}, noted elsewhere, is not in the log: its end was cut off")
    return verdict


def _entries(connection: Connection, verdict: Verdict) -> Iterator[Entry]:
    """In order. Rows without a proper number or with other than text are problems by themselves."""
    last, passed = -(1 << 62), 0
    while rows := connection.execute(
        f"SELECT {COLUMNS} FROM log WHERE seq > ? ORDER BY seq LIMIT ?", [last, PAGE]
    ):
        for row in rows:
            if isinstance(row[0], int) and all(isinstance(value, str) for value in row[1:]):
                passed += 1
                yield Entry(*row)
            else:
                verdict.problems.append(f"the log holds a row that is no entry, numbered {row[0]!r}")
                passed += 1
        if not isinstance(rows[-1][0], int):
            break
        last = rows[-1][0]
    total = int(connection.execute("SELECT count(*) FROM log")[0][0])
    if total != passed:
        verdict.problems.append(f"the log holds {total - passed:,} rows without a number in the chain")


class _Story:
    """What the entries say, in order, against each other and against the other tables."""

    def __init__(self, connection: Connection, verdict: Verdict) -> None:
        self._connection, self._verdict = connection, verdict
        self._policies: dict[str, bool] = {}  # saved, and whether in use
        self._loaded: dict[str, Policy] = {}
        self._labellings: dict[str, labelling_record.Answered] = {}
        self._told: dict[str, int] = {}  # labelling: the last entry with answers
        self._salted: set[str] = set()
        self._selections: dict[str, int] = {}  # and how many were shortlisted
        self._tokens: dict[str, dict[str, Any]] = {}
        self._sessions: dict[str, dict[str | None, str | None]] = {}  # fingerprint and end, by token
        self._reviews = 0
        self._closed: dict[str, dict[str, Any]] = {}  # selections whose reviews have ended: what they show
        self._watched: dict[str, dict[str, float | None]] = {}  # policy: selections that count, audit rates
        self._audits: dict[str, int] = {}  # selection: how many were drawn for its audit
        self._audited_here: set[str] = set()  # selections whose audit is among the reviews on record
        self._withdrawn: dict[str, int] = {}  # policy: the entry
        self._notes: dict[int, tuple[str, str]] = {}  # entry: selection and hash
        self._campaigns = CampaignStory(self._problem)

    def tell(self, entry: Entry) -> None:
        action = getattr(self, "_" + entry.action.replace(".", "_"), None)
        if action is None:
            return
        try:
            action(entry, entry.facts)
        except (SurelistError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._problem(entry, f"what it says cannot be read ({type(error).__name__})")

    def _problem(self, entry: Entry, text: str) -> None:
        self._verdict.problems.append(f"entry {entry.seq}: {text}")

    def _policy_saved(self, entry: Entry, facts: dict[str, Any]) -> None:
        text = facts["policy"]
        if hashlib.sha256(text.encode()).hexdigest() != entry.subject:
            self._problem(entry, "the policy does not have the hash it is known by")
        if entry.subject in self._policies:
            self._problem(entry, "the same policy was saved before")
        self._policies[entry.subject] = True
        secret = self._connection.execute("SELECT secret FROM salts WHERE policy = ?", [entry.subject])
        policy = Policy.loads(text, salt_text=secret[0][0] if secret else None)
        self._loaded[entry.subject] = policy
        work = self._labellings[facts["labelling"]] if facts.get("labelling") else None
        if work is not None and work.work.policy.cutoffs != policy.cutoffs:
            self._problem(entry, "the labels on record do not certify this policy")
        if policy.salt_hash is not None:
            self._salted.add(entry.subject)
            if not secret:
                self._problem(entry, "the salt of its policy is gone")

    def _policy_retired(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._in_use(entry, entry.subject)
        self._policies[entry.subject] = False

    def _policy_described(self, entry: Entry, facts: dict[str, Any]) -> None:
        if entry.subject not in self._policies:
            self._problem(entry, "it names a policy that was never saved")

    def _selection_described(self, entry: Entry, facts: dict[str, Any]) -> None:
        if entry.subject not in self._selections:
            self._problem(entry, "it names a selection that was never made")

    def _selection_made(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._in_use(entry, facts["policy"])
        if entry.subject in self._selections:
            self._problem(entry, "the same selection was made before")
        self._selections[entry.subject] = facts.get("shortlisted", 0)
        self._audits[entry.subject] = len(facts.get("audit", ()))
        if facts.get("audit_here"):
            self._audited_here.add(entry.subject)
        if facts.get("watched"):
            self._watched.setdefault(facts["policy"], {})[entry.subject] = facts.get("audit_rate")

    def _in_use(self, entry: Entry, policy: str) -> None:
        if not self._policies.get(policy, False):
            ended = "was withdrawn before" if policy in self._withdrawn else "was retired before"
            state = ended if policy in self._policies else "was never saved"
            self._problem(entry, f"its policy {policy[:12]} {state}")

    def _reviews_received(self, entry: Entry, facts: dict[str, Any]) -> None:
        rows = self._connection.execute(
            "SELECT selection, candidate, qualified FROM reviews WHERE seq = ?", [entry.seq]
        )
        self._reviews += len(rows)
        if entry.subject not in self._selections:
            self._problem(entry, "its selection was never made")
        if entry.subject in self._closed:
            self._problem(entry, "the reviews of its selection had ended before")
        if any(selection != entry.subject for selection, _, _ in rows):
            self._problem(entry, "its reviews were moved to another selection")
        if any(q not in CODES for _, _, q in rows) or (
            reviews_hash(sorted((str(c), int(q)) for _, c, q in rows)) != facts["sha256"]
        ):
            self._problem(entry, "its reviews were edited")

    def _reviews_closed(self, entry: Entry, facts: dict[str, Any]) -> None:
        if entry.subject in self._closed:
            self._problem(entry, "the reviews of its selection had ended before")
        outcomes = self._outcomes(entry.subject)
        self._closed[entry.subject] = facts.get("counts", {})
        if "campaign" in facts:
            self._campaigns.step(entry, facts, outcomes)
            return
        counts = facts["counts"]
        qualified, missing = (total_of(counts[name]) for name in ("qualified", "unreviewed"))
        audited = sum(total_of(counts.get(name, 0)) for name in ("missed", "unaudited"))
        if audited > self._audits.get(entry.subject, 0):
            self._problem(entry, "more are counted in its audit than were drawn")
        listed = self._selections[entry.subject]
        if entry.subject in self._audited_here:  # the audit was reviewed with the list
            listed += self._audits[entry.subject]
            qualified += total_of(counts["missed"])
            missing += total_of(counts["unaudited"])
        known = (sum(outcomes.values()), listed - len(outcomes))
        unknown = isinstance(counts["qualified"], dict) or entry.subject in self._campaigns.removed
        nothing = unknown and (qualified, missing) == (0, listed)
        if (qualified, missing) != known and not nothing:  # groups are known as long as the list is kept
            self._problem(entry, "what the reviews are said to show is not what they show")

    def _outcomes(self, selection: str) -> dict[str, bool]:
        marks = Marks()
        marks.take(self._connection.execute(f"{MARKS} WHERE r.selection = ? ORDER BY r.seq", [selection]))
        return marks.outcomes()

    def _campaign_started(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._campaigns.start(entry, facts)

    def _campaign_screened(self, entry: Entry, facts: dict[str, Any]) -> None:
        if entry.subject in self._selections:
            self._problem(entry, "the same pool was screened before")
        self._selections[entry.subject] = facts["shortlisted"]
        self._campaigns.step(entry, facts)

    def _campaign_updated(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._campaigns.step(entry, facts)

    def _campaign_withdrawn(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._campaigns.withdraw(entry)

    def _policy_withdrawn(self, entry: Entry, facts: dict[str, Any]) -> None:
        if entry.subject in self._withdrawn or entry.subject not in self._policies:
            self._problem(entry, "its policy was withdrawn before, or never saved")
        self._policies[entry.subject] = False  # it may have been retired already
        self._withdrawn[entry.subject] = entry.seq
        if watch(self._loaded[entry.subject], self._pools(entry.subject)).alarm is None:
            self._problem(entry, "the reviews on record do not speak against the promise that was withdrawn")

    def _pools(self, policy: str) -> list[WatchedPool]:
        watched = self._watched.get(policy, {})
        return [WatchedPool(each, self._closed.get(each), rate) for each, rate in watched.items()]

    def _note_written(self, entry: Entry, facts: dict[str, Any]) -> None:
        if entry.subject not in self._selections:
            self._problem(entry, "its selection was never made")
        self._notes[entry.seq] = (entry.subject, facts["sha256"])

    def _list_removed(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._campaigns.removed.add(entry.subject)
        self._notes = {seq: note for seq, note in self._notes.items() if note[0] != entry.subject}

    def _labelling_started(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._selections[entry.subject] = facts["labels"]
        self._labellings[entry.subject] = labelling_record.Answered(facts["state"])

    def _labelling_told(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._labellings[entry.subject].tell(facts)
        self._told[entry.subject] = entry.seq
        if facts["sha256"] != marks_hash(self._labellings[entry.subject].marks):
            self._problem(entry, "the answers so far are not those it says")

    def _settings_changed(self, entry: Entry, facts: dict[str, Any]) -> None:
        if facts["before"].keys() != live_settings.checked(facts["settings"]).keys():
            self._problem(entry, "it does not say what each setting was before")

    def _token_created(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._tokens[entry.subject] = {**facts, "ended": None, "begun": entry.at}

    def _token_changed(self, entry: Entry, facts: dict[str, Any]) -> None:
        token = self._tokens[entry.subject]
        if token["ended"] is not None:
            self._problem(entry, "its token was revoked before")
        token |= {"role": facts["role"], "policy": facts["policy"]}

    def _token_revoked(self, entry: Entry, facts: dict[str, Any]) -> None:
        self._tokens[entry.subject]["ended"] = entry.at

    def _session_begun(self, entry: Entry, facts: dict[str, Any]) -> None:
        token = self._tokens[entry.subject]
        if token["ended"] is not None:
            self._problem(entry, "its token was revoked before")
        if token.get("expires") is not None and token["expires"] < entry.at:
            self._problem(entry, "its token had expired before")
        self._sessions.setdefault(entry.subject, {})[facts.get("fingerprint")] = facts.get("expires")

    # -- the tables beside the log

    def compare_tables(self) -> None:
        total = int(self._connection.execute("SELECT count(*) FROM reviews")[0][0])
        if total != self._reviews:
            self._add(f"the log tells of {self._reviews:,} reviews, but {total:,} are kept")
        for policy in self._watched.keys() & self._loaded.keys() - self._withdrawn.keys():
            if watch(self._loaded[policy], self._pools(policy)).alarm is not None:
                self._add(f"the reviews of policy {policy[:12]} raise the alarm, but it was not withdrawn")
        for campaign in self._campaigns.unheard():
            self._add(f"the reviews of campaign {campaign} raise the alarm, but it was not withdrawn")
        self._compare_notes()
        self._compare_progress()
        self._compare_tokens()
        for (policy,) in self._connection.execute("SELECT policy FROM salts"):
            if policy not in self._salted:
                self._add(f"a salt is kept for policy {str(policy)[:12]}, which has none in the log")
        self._compare_sessions()
        for actor, name, entry_actor in self._connection.execute(
            "SELECT r.actor, r.name, l.actor FROM replays r LEFT JOIN log l ON l.seq = r.seq AND l.at = r.at"
        ):
            if actor != entry_actor:
                self._add(f"the idempotency key {name!r} of {actor} leads to an entry that is not theirs")

    def _compare_notes(self) -> None:
        notes = self._connection.execute("SELECT seq, selection, candidate, text FROM notes")
        for seq, selection, candidate, text in notes:
            if self._notes.pop(seq, None) != (selection, note_hash(candidate, text)):
                self._add(f"the note of entry {seq} is not what the log says, or was to be removed")
        for seq in self._notes:
            self._add(f"the note of entry {seq} is gone, and the log does not say that it was removed")

    def _compare_progress(self) -> None:
        known = {name: (seq, self._labellings[name].marks) for name, seq in self._told.items()}
        for labelling, *row in self._connection.execute("SELECT labelling, seq, marks FROM progress"):
            if known.pop(labelling, None) != tuple(row):
                self._add(f"the answers kept for labelling {labelling} are not those in the log")
        for labelling in known:
            self._add(f"the answers of labelling {labelling} are in the log, but no longer kept beside it")

    def _compare_tokens(self) -> None:
        rows = self._connection.execute(
            "SELECT id, name, role, policy, expires, digest, revoked, created FROM tokens"
        )
        for ident, name, role, policy, expires, digest, revoked, created in rows:
            facts = self._tokens.pop(ident, None)
            if facts is None:
                self._add(f"token {ident} was never created in the log")
                continue
            row = {"name": name, "role": role, "policy": policy, "expires": expires}
            row["fingerprint"] = fingerprint(digest) if facts.get("fingerprint") else None
            changed = [key for key, value in row.items() if facts.get(key) != value]
            for key, time in (("ended", revoked), ("begun", created)):
                if (time is None) != (facts[key] is None) or (time and not _near(time, facts[key])):
                    changed.append(key)
            if changed:
                names = {"fingerprint": "secret", "ended": "revocation", "begun": "creation"}
                what = ", ".join(names.get(key, key) for key in changed)
                self._add(f"token {ident} is not as the log says: {what} was changed")
        for ident in self._tokens:
            self._add(f"token {ident} is in the log, but no longer in the table of tokens")

    def _compare_sessions(self) -> None:
        rows = self._connection.execute("SELECT digest, token, expires FROM sessions")
        for digest, token, expires in rows:
            begun, known = self._sessions.get(token, {}), fingerprint(digest)
            if known not in begun and None not in begun:
                self._add(f"a session of token {token} was never begun in the log")
            elif begun.get(known) not in (None, expires):
                self._add(f"a session of token {token} is not as the log says: expires was changed")

    def _add(self, problem: str) -> None:
        self._verdict.problems.append(problem)


def _near(time: str, entry: str) -> bool:
    return abs((datetime.fromisoformat(time) - datetime.fromisoformat(entry)).total_seconds()) < NEAR_SECONDS


def _receipts(noted: tuple[str, ...], verdict: Verdict) -> dict[int, str]:
    receipts: dict[int, str] = {}
    for text in noted:
        seq, digest = _receipt(text)
        if receipts.setdefault(seq, digest) != digest:
            verdict.problems.append(f"two receipts of entry {seq} contradict each other")
    if receipts.get(0) == GENESIS:
        del receipts[0]  # the head of a record before its first entry
    return receipts


def _receipt(text: str) -> tuple[int, str]:
    seq, _, digest = text.partition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19) or len(digest) != 64:
        raise InvalidInput("receipt", expected="SEQ:HASH as printed with an entry", got=repr(text))
    return int(seq), digest
