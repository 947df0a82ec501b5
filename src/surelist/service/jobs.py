"""What the service does, once for the API and the page: call one workflow, put it on record.

Runs in worker threads. Errors name the file as the person knows it, never the path on disk.
"""

from __future__ import annotations

import csv
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surelist.errors import InvalidInput, NotCertifiable, SurelistError
from surelist.promises.calibration import Targets
from surelist.promises.policy import Policy
from surelist.service.record.access import Actor
from surelist.service.record.record import Key, Registry, Written
from surelist.service.settings import Settings
from surelist.service.uploads import Spool, TooLarge, Upload
from surelist.workflows import tables as workflows
from surelist.workflows.report import evidence_of, pool_size_of, selection_facts, sha256_of


@dataclass(frozen=True)
class Request:
    """A calibration as asked for: columns, targets, and how to certify them."""

    score: str
    label: str
    target: Targets
    alpha: float = 0.1
    rule: str = "exact"
    group: str | None = None
    purpose: str | None = None
    group_split: str = "bonferroni"
    group_rows: str = "own"
    calibration_share: float = 0.5
    ties: str = "include"
    id: str | None = None
    missing_labels: str = "error"

    @property
    def pool_size(self) -> float:
        if isinstance(self.target, Mapping):
            return pool_size_of(list(self.target.values()), self.group_rows == "own")
        return pool_size_of([self.target], False)

    @property
    def said(self) -> dict[str, Any]:
        """For the record: what was asked of the rows."""
        targets = self.target if isinstance(self.target, Mapping) else {"everyone": self.target}
        return {
            "targets": {str(name): each.describe() for name, each in targets.items()},
            "alpha": self.alpha,
            "rule": self.rule,
        }


def admit(upload: Upload, settings: Settings, *, past: bool, name: str = "the upload") -> None:
    """Refuse, before any work, what would unfold to more than the service can hold."""
    with named(upload, name):
        rows, names = workflows.shape(upload.path)
    limit = settings.max_calibration_rows if past else settings.max_rows
    if rows > limit:
        raise TooLarge(limit, f"{name} has {rows:,} rows; this service takes {limit:,} at most here.")
    if len(names) > settings.max_columns:
        raise TooLarge(
            settings.max_columns,
            f"{name} has {len(names):,} columns; this service takes {settings.max_columns:,} at most. "
            "Leave out those that are not needed.",
        )
    seen: set[str] = set()
    for column in names:
        if column.lower() in seen:
            raise InvalidInput(f"file: the column {column!r} appears twice. Give each column its own name.")
        seen.add(column.lower())


@contextmanager
def named(upload: Upload, name: str) -> Iterator[None]:
    """In errors, the name a person gave the file instead of where it lies."""
    try:
        yield
    except NotCertifiable:
        raise
    except SurelistError as error:
        if str(upload.path) in str(error):
            raise type(error)(str(error).replace(str(upload.path), name)) from error
        raise


def calibrate(request: Request, upload: Upload, name: str = "the upload") -> Policy:
    """One look at the rows; raises ``NotCertifiable``."""
    if request.group is not None and not (request.purpose or "").strip():
        raise InvalidInput(
            "purpose: cutoffs by group need a sentence on what they are for; it is recorded in the policy."
        )
    options = {k: v for k, v in vars(request).items() if k not in ("score", "label", "target")}
    if request.ties != "hash":
        options["id"] = None
    with named(upload, name):
        return workflows.calibrate(
            upload.path, score=request.score, label=request.label, target=request.target, **options
        )


def evidence(request: Request, upload: Upload, rules: tuple[str, ...]) -> dict[str, Any]:
    """What a report shows of these rows."""
    return evidence_of(
        upload.path, score=request.score, label=request.label, pool_size=request.pool_size,
        alpha=request.alpha, rules=rules, missing_labels=request.missing_labels,
    )  # fmt: skip


def record_look(
    registry: Registry, upload: Upload, actor: Actor, how: str, said: dict[str, Any]
) -> list[dict[str, Any]]:
    """Put on record that these rows were looked at; returns the looks before this one."""
    earlier = earlier_looks(registry, upload)
    registry.append(actor.name, "rows.looked", upload.sha256, {"how": how, **said}).result()
    return earlier


def earlier_looks(registry: Registry, upload: Upload) -> list[dict[str, Any]]:
    """What was asked of the very same rows before, oldest first."""
    entries = registry.entries(action="rows.looked", subject=upload.sha256, limit=100)
    return [{"seq": entry.seq, "at": entry.at, **entry.facts} for entry in reversed(entries)]


def save(
    registry: Registry,
    policy: Policy,
    request: Request,
    upload: Upload,
    actor: Actor,
    name: str,
    looks: list[dict[str, Any]],
    key: Key | None = None,
) -> Written:
    """The policy with its evidence, on record in one entry."""
    rules = ("exact", "dkw") if request.rule != "simultaneous" else ("simultaneous", "dkw")
    facts = {
        "rows_sha256": upload.sha256,
        "evidence": evidence(request, upload, rules),
        "earlier_looks": looks,
    }
    return registry.save_policy(policy, name, actor.name, facts, key).result()


@dataclass(frozen=True)
class Chosen:
    """A selection made: its entry, and the shortlist as a file or as rows."""

    written: Written
    file: Upload | None = None
    rows: Sequence[Mapping[str, Any]] = ()


def select_file(
    registry: Registry,
    spool: Spool,
    digest: str,
    upload: Upload,
    actor: Actor,
    *,
    name: str = "the pool",
    columns: dict[str, str | None],
    attributes: Sequence[str] = (),
    format: str | None = None,
    key: Key | None = None,
) -> Chosen:
    """Shortlist a file: the result keeps the pool's format unless another is asked for."""
    saved = registry.policy(digest)
    if saved.policy.salt_hash is None:
        columns = {**columns, "id": None}  # only ties need it; a check for repeats would name candidates
    if not saved.policy.grouped:
        columns = {**columns, "group": None}
    output = spool.new_path(format or upload.format)
    try:
        with named(upload, name):
            done = workflows.select(
                upload.path, saved.policy, output=output, score=columns.get("score"),
                group=columns.get("group"), id=columns.get("id"),
            )  # fmt: skip
            tables = workflows.impact(upload.path, output, attributes) if attributes else []
        result = hashed(output)
        facts = selection_facts(done, upload.sha256, upload.format, result.sha256, result.format)
        if tables:
            facts["impact"] = [asdict(table) for table in tables]
        written = registry.record_selection(secrets.token_hex(8), digest, actor.name, facts, key).result()
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    return Chosen(written, file=result)


def rows_facts(policy: Policy, body: bytes, rows: Sequence[Mapping[str, Any]], **columns: Any) -> Any:
    """Shortlist rows in memory: the shortlist, and what goes on record about it."""
    places, done = workflows.select_rows(rows, policy, **columns)
    shortlist = [rows[place] for place in places]
    text = json.dumps(places, separators=(",", ":"))
    result = hashlib.sha256(text.encode()).hexdigest()
    return shortlist, selection_facts(done, hashlib.sha256(body).hexdigest(), "json", result, "row numbers")


def write_rows(spool: Spool, rows: Sequence[Mapping[str, Any]], body: bytes) -> Upload:
    """JSON rows as a CSV file, for use cases that read files."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    path = spool.new_path("csv")
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Upload(path, path.stat().st_size, hashlib.sha256(body).hexdigest(), "csv")


def _cell(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        raise InvalidInput("rows: expected plain values, got a nested list or object.")
    return str(value).lower() if isinstance(value, bool) else value


def hashed(path: Path) -> Upload:
    return Upload(path, path.stat().st_size, sha256_of(path), path.suffix[1:])
