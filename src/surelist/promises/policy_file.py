"""Policy files: strict, versioned JSON. No code in it, ever.

Loading rejects unknown versions, unknown or missing fields, non-finite numbers, a promise that
was edited, and a threshold or count that its own evidence contradicts.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from surelist import bounds
from surelist._dataclasses import dataclass, field, fields, replace
from surelist._files import hold, parse, plain, writing
from surelist._shapes import MAY_BE_ABSENT
from surelist.bounds.sequential import first_crossing_counts
from surelist.errors import InvalidInput, PolicyFileError, SurelistError
from surelist.promises import wording
from surelist.promises.proof_file import AnyProof
from surelist.promises.shift import widened
from surelist.promises.state import Certificate, Cutoff, Facts, Looks, Step
from surelist.promises.target_file import TargetFields, target_fields, target_of
from surelist.promises.targets import MOST_SIZES, Expected, Level, PerPool, Recall, Target
from surelist.score_summary import INTERVALS, ScoreSummary
from surelist.ties import Salt

FORMAT: Literal[2] = 2
READS = (1, 2)
NEW_IN_2: dict[str, dict[str, Any]] = {  # what files of version 1 do not say: nothing is known of it
    "steps": {"reached": None, "share": None, "share_untied": None},
    "cutoffs": {"fingerprint_by": None, "scores": None},
    "shift": {"seed_from": "version 1"},
}
ONLY_IN_2 = {
    "": {"choice", "thinning", "reading", "nested", "group_keys"},
    "cutoffs": {"proof"},
    "shift": {"within"},
}  # left out where there is none
FIRST = ("format", "promise", "alpha", "rule", "calibration_share", "cutoffs")  # what a reader wants first
HEX = frozenset("0123456789abcdef")
MOST_GROUPS, MOST_LOOKS, MOST_ROWS = 10_000, 1_000, 2 * 10**9


@dataclass(frozen=True)
class _Cutoff:
    group: str | None
    target: TargetFields
    alpha: float
    rows: int
    qualified: int
    steps: tuple[Step, ...]
    fingerprint: str | None
    fingerprint_by: str | None
    scores: ScoreSummary | None
    proof: AnyProof | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, kw_only=True)
class _File(Facts):
    format: Literal[2]
    promise: str
    calibration_share: float
    cutoffs: tuple[_Cutoff, ...]
    salt_sha256: str | None


@dataclass(frozen=True)
class _SaltFile:
    warning: str
    key: str
    spent: tuple[int, ...]


def save(policy: Certificate, path: Path) -> None:
    """Write the policy (and its salt beside it), complete or not at all."""
    text, secret = dumps(policy), dump_salt(policy)
    if secret is None:
        with writing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        salt_path(path).unlink(missing_ok=True)  # of the policy that was here before
        return
    with writing(path) as temporary, writing(salt_path(path), mode=0o600) as hidden:
        hidden.write_text(secret, encoding="utf-8")
        temporary.write_text(text, encoding="utf-8")


def dump_salt(policy: Certificate) -> str | None:
    """The text of the secret file that goes with the policy, if it has a salt."""
    if policy.salt is None:
        return None
    secret = _SaltFile(
        warning="Secret. Whoever knows this can steer ties. Never publish or redraw it.",
        key=policy.salt.key,
        spent=tuple(sorted(policy.salt.spent)),
    )
    return json.dumps(plain(secret), indent=1) + "\n"


def salt_path(path: Path) -> Path:
    return path.with_name(path.name + ".salt")


def load(path: Path) -> Certificate:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"policy: cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"policy: {path} is no policy file: expected JSON in UTF-8.") from error
    except ValueError as error:
        raise InvalidInput(f"policy: cannot read {str(path)!r}: {error}.") from error
    try:
        secret = salt_path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        secret = None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyFileError(f"policy: cannot read the salt file {salt_path(path)}.") from error
    return loads(text, name=str(path), salt_text=secret)


def dumps(policy: Certificate) -> str:
    """The policy as JSON text, without its salt."""
    return json.dumps(to_dict(policy), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_dict(policy: Certificate) -> dict[str, Any]:
    """The policy as plain values, in the order of the file."""
    file = _File(
        format=FORMAT,
        promise=wording.promise(policy),
        calibration_share=policy.cutoffs[0].level.calibration_share,
        cutoffs=tuple(_dump_cutoff(cutoff) for cutoff in policy.cutoffs),
        salt_sha256=policy.salt_hash,
        **_facts(policy),
    )
    raw = plain(file)
    return {name: raw[name] for name in (*FIRST, *raw)}


def _facts(known: Facts) -> dict[str, Any]:
    return {each.name: getattr(known, each.name) for each in fields(Facts)}


def loads(text: str, name: str = "policy", salt_text: str | None = None) -> Certificate:
    """A policy from JSON text; every contradiction is an error that says what is wrong."""
    file = parse(text, _File, READS, f"policy: {name}", _upgraded)
    try:
        policy = _build(file, _read_salt(file, salt_text, name))
        _verify(policy, file)
    except SurelistError as error:
        raise PolicyFileError(f"policy: {name}: {error}") from error
    return policy


def _upgraded(raw: Any) -> Any:
    """A file of version 1 as one of version 2; a field that version 1 did not have is refused there."""
    return {**_filled(raw, ""), "format": FORMAT} if raw["format"] == 1 else raw


def _filled(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_filled(each, name) for each in value]
    if not isinstance(value, dict):
        return value
    new = NEW_IN_2.get(name, {})
    unknown = value.keys() & (new.keys() | ONLY_IN_2.get(name, set()))
    named = {f"{key} (unknown in version 1)": None for key in unknown}
    return {key: _filled(each, key) for key, each in value.items()} | new | named


def _read_salt(file: _File, text: str | None, name: str) -> Salt | None:
    if file.salt_sha256 is None or text is None:
        return None
    try:
        secret = parse(text, _SaltFile, None, "salt")
        hold(len(secret.key) == 64 and HEX.issuperset(secret.key), "the key is not a key")
    except PolicyFileError as error:
        raise PolicyFileError(f"the salt file of {name} is damaged.") from error
    salt = Salt(secret.key, frozenset(secret.spent))
    if salt.hash != file.salt_sha256:
        raise PolicyFileError("the salt file beside it belongs to another policy.")
    return salt


def _build(file: _File, salt: Salt | None) -> Certificate:
    hold(bool(file.cutoffs) and all(each.steps for each in file.cutoffs), "its cutoffs have no threshold")
    _require_checkable(file)
    return Certificate(
        cutoffs=tuple(
            Cutoff(
                target=target_of(each.target),
                level=Level(each.alpha, file.rule, file.calibration_share),
                **_in_both(each),
            )
            for each in file.cutoffs
        ),
        salt_hash=file.salt_sha256,
        salt=salt,
        **_facts(file),
    )


def _require_checkable(file: _File) -> None:
    """No file may ask for more work than the largest that calibration writes."""
    steps = max(len(each.steps) for each in file.cutoffs)
    hold(steps <= MOST_SIZES + 1, f"a cutoff has {steps:,} steps; there are at most {MOST_SIZES + 1:,}")
    hold(len(file.cutoffs) <= MOST_GROUPS, f"it has {len(file.cutoffs):,} cutoffs, too many")
    rows = sum(each.rows for each in file.cutoffs)
    hold(rows <= MOST_ROWS, f"it speaks of {rows:,} calibration rows, more than can be checked")
    looks = len(file.looks.rows) if file.looks is not None else 0
    hold(looks <= MOST_LOOKS, f"it has {looks:,} looks; campaigns have at most {MOST_LOOKS:,}")


def _keys_fit(policy: Certificate) -> bool:
    """Whether the names of groups can be read as the keys they are said to have been."""
    names = [str(each.group) for each in policy.cutoffs]
    if policy.group_keys == "true or false":
        return policy.grouped and set(names) <= {"True", "False"}
    if policy.group_keys == "whole numbers":
        return policy.grouped and all(re.fullmatch("0|-?[1-9][0-9]*", each) for each in names)
    return True


def _verify(policy: Certificate, file: _File) -> None:
    """Recompute what follows from the evidence; the file may not claim anything else."""
    groups = [cutoff.group for cutoff in policy.cutoffs]
    grouped = None not in groups
    hold(not grouped or len(set(groups)) == len(groups), "a group appears twice")
    hold(grouped or set(groups) == {None}, "only some cutoffs name a group")
    hold(
        grouped == (policy.group_split is not None) == (policy.group_rows is not None),
        "groups and their settings do not go together",
    )
    hold(_keys_fit(policy), "its groups are not named as it says")
    hold(0 < policy.alpha < 1, f"alpha {policy.alpha} is not between 0 and 1")
    hold(grouped or not policy.overlapping, "groups overlap, and there are none")
    kinds = {type(cutoff.target) for cutoff in policy.cutoffs}
    hold(not grouped or len(kinds) == 1, "groups have targets of several kinds")
    hold(grouped or len(kinds) == len(groups), "a promise appears twice")
    hold(Recall not in kinds or policy.group_rows != "all", "Recall does not go with all rows")
    hold(Recall not in kinds or not policy.missing_labels, "Recall does not go with missing labels")
    hold(
        policy.group_split != "sidak" or not (policy.overlapping or policy.group_rows == "all"),
        "sidak needs disjoint groups with rows of their own",
    )
    hold(min(policy.missing_labels, policy.dropped_rows) >= 0, "missing_labels or dropped_rows is negative")
    shift = policy.shift
    hold(
        shift is None
        or (shift.weight_bound > 0 and shift.rows_before > 0 and shift.seed >= 0 and (shift.within or 2) > 1),
        "its weights are impossible",
    )
    share = file.calibration_share
    hold(0 < share < 1, f"calibration_share {share} is not between 0 and 1")
    for cutoff in policy.cutoffs:
        hold(cutoff.level.alpha == policy.each_alpha, "a group's alpha is not its share of alpha")
        if shift is not None and shift.within is not None:
            cutoff = replace(cutoff, target=widened(cutoff.target, shift.within))
        _verify_cutoff(cutoff, ties=policy.salt_hash is not None, looks=policy.looks)
    if not grouped:
        hold(
            len({each.steps[0].threshold for each in policy.cutoffs}) == 1, "its promises have several lists"
        )
    if policy.choice is not None:
        scores = policy.choice.scores
        hold(len(set(scores)) == len(scores) > 0, "a score appears twice")
        hold(policy.choice.chosen in scores, "the score chosen is none of those looked at")
    hold(
        _as_today(file.promise) in (wording.promise(policy), wording.promise_before(policy)),
        "the promise does not say what the evidence says",
    )


def _as_today(promise: str) -> str:
    """Earlier versions wrote "1 calibration rows" and "1 candidates"."""
    return re.sub(r"(?<= 1 )(calibration row|candidate)s\b", r"\1", promise)


def _verify_cutoff(cutoff: Cutoff, *, ties: bool, looks: Looks | None) -> None:
    rule, digest = cutoff.level.rule, cutoff.fingerprint
    hold(digest is None or (len(digest) == 64 and HEX.issuperset(digest)), "a fingerprint is not SHA-256")
    hold(rule in cutoff.target.rules, f"rule {rule!r} does not certify this target")
    hold(0 <= cutoff.qualified <= cutoff.rows and cutoff.rows > 0, "the row counts are impossible")
    if cutoff.proof is not None:
        _verify_proof(cutoff, ties, looks)
        return
    hold(isinstance(cutoff.target, (Expected, PerPool, Recall)), "its target needs a proof of its own")
    if looks:
        claimed = [(step.pool_size, step.critical_count) for step in cutoff.steps]
        hold(claimed == _looks_require(cutoff, looks), f"critical counts {claimed} contradict its looks")
    else:
        _verify_counts(cutoff)
    hold(max(step.critical_count for step in cutoff.steps) <= cutoff.qualified, "too few qualified rows")
    _verify_summary(cutoff)
    order = [(step.threshold, step.tie_break or 0) for step in cutoff.steps]
    hold(order == sorted(order), "thresholds fall while critical counts fall")
    hold(
        all((step.tie_break is not None) == ties for step in cutoff.steps),
        "tie breaks and salt do not go together",
    )


def _verify_proof(cutoff: Cutoff, ties: bool, looks: Looks | None) -> None:
    """A proof knows what its numbers have to be; it stands beside one threshold for all pools."""
    assert cutoff.proof is not None
    hold(not ties and looks is None, "its proof goes with no tie or look")
    hold(cutoff.group == getattr(cutoff.proof, "group", None), "its proof is of another group")
    hold(len(cutoff.steps) == 1 and cutoff.steps[0].pool_size == 0, "its proof has one threshold")
    rows, threshold = (cutoff.rows, cutoff.qualified), cutoff.steps[0].threshold
    try:
        cutoff.proof.check(cutoff.target, cutoff.level, *rows, threshold)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, SurelistError):
            raise
        raise PolicyFileError("its proof does not go with its target.") from error


def _verify_summary(cutoff: Cutoff) -> None:
    """What is kept of the rows may not contradict the counts."""
    for step in cutoff.steps:
        if step.reached is not None:
            hold(step.critical_count <= step.reached <= cutoff.qualified, "too few rows reach a threshold")
        for share in (step.share, step.share_untied):
            hold(share is None or 0 <= share <= 1, "a share is not between 0 and 1")
    scores = cutoff.scores
    if scores is None:
        return
    hold(scores.auc is None or 0 <= scores.auc <= 1, "the AUC is not between 0 and 1")
    hold(len(scores.scores) == len(scores.rows) > 0, "the sketch of scores is not complete")
    hold(len(scores.scores) <= 2 * INTERVALS, "the sketch of scores is too long")
    ends = [scores.lowest, *scores.scores[1:], scores.highest]
    hold(scores.lowest == scores.scores[0] and ends == sorted(ends), "the sketch of scores is out of order")
    hold(min(scores.rows) >= 0 and cutoff.qualified <= scores.total <= cutoff.rows, "the sketch lacks rows")
    hold(
        all(scores.lowest <= step.threshold <= scores.highest for step in cutoff.steps),
        "a threshold lies outside the scores",
    )


def _verify_counts(cutoff: Cutoff) -> None:
    """Every step needs the count its pool size asks for. More is valid too, less a contradiction."""
    assert isinstance(cutoff.target, (Expected, PerPool, Recall))
    target, rows = cutoff.target, (cutoff.rows, cutoff.qualified, cutoff.level)
    smallest = target.sizes[0] if isinstance(target, PerPool) else 0
    hold(cutoff.steps[0].pool_size == smallest, "it has no threshold for the smallest pool")
    for step in cutoff.steps:
        if not _is_enough(target, step, *rows):
            needed = target.count_at(step.pool_size, *rows)
            claimed = f"critical count {step.critical_count}"
            hold(
                needed <= step.critical_count,
                f"{claimed} is less than the {needed} that {cutoff.rows} rows need",
            )
    sizes = [(step.pool_size, -step.critical_count) for step in cutoff.steps]
    hold(sizes == sorted(set(sizes)), "its steps are out of order")


def _is_enough(target: Target, step: Step, rows: int, qualified: int, level: Level) -> bool:
    """Whether the count of a step is seen to be enough by one tail of the exact rule, without a search."""
    count = step.critical_count
    if level.rule != "exact":
        return False
    if isinstance(target, PerPool):
        return bounds.pool_certifies(rows, target.k, step.pool_size, level.alpha, count)
    units, rate = (qualified, target.share) if isinstance(target, Recall) else (rows, target.rate)
    return bounds.certifies(units, rate, level.alpha, count)


def _looks_require(cutoff: Cutoff, looks: Looks) -> list[tuple[int, int]]:
    """A campaign's counts follow from its row numbers and its spending of alpha [theory: reviews]."""
    target, budgets = cutoff.target, list(looks.budgets)
    hold(bool(budgets), "a campaign has at least one look")
    hold(isinstance(target, Expected) and cutoff.group is None, "campaigns have one Expected target")
    assert isinstance(target, Expected)
    hold(len(looks.rows) == len(budgets) == len(looks.counts), "a look lacks its rows or count")
    hold(budgets[0] > 0 and budgets == sorted(budgets), "the budgets fall")
    hold(budgets[-1] <= cutoff.level.alpha, "the looks spend more than alpha")
    hold(0 <= looks.chosen < len(looks.rows), "no look gave the threshold")
    hold(looks.rows[0] > 0 and looks.rows[looks.chosen] == cutoff.rows, "the row counts differ")
    hold(looks.audit_rate is None or 0 < looks.audit_rate < 1, "the audit rate is impossible")
    counts = first_crossing_counts(looks.rows, target.rate, budgets)
    hold(counts == list(looks.counts), f"the looks' counts should be {counts}")
    return [(0, counts[looks.chosen])]


def _dump_cutoff(cutoff: Cutoff) -> _Cutoff:
    return _Cutoff(target=target_fields(cutoff.target), alpha=cutoff.level.alpha, **_in_both(cutoff))


def _in_both(cutoff: Cutoff | _Cutoff) -> dict[str, Any]:
    """What a cutoff and its file say in the same words."""
    names = (each.name for each in fields(_Cutoff) if each.name not in ("target", "alpha"))
    return {name: getattr(cutoff, name) for name in names}
