"""Policy files: strict, versioned JSON. No code in it, ever.

Loading rejects unknown versions, unknown or missing fields, non-finite numbers, and a threshold or count that
its own evidence contradicts. The sentence in a file is for the person who opens it: nothing is read from it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from surelist._files import Digest, hold, parse, writing
from surelist.errors import InvalidInput, PolicyFileError, SurelistError
from surelist.filters import Salt
from surelist.promises import kinds, wording
from surelist.promises.promise import Promise, Proof
from surelist.promises.state import Certificate, Cutoff, Stated, StoredCutoff
from surelist.score_summary import INTERVALS

FORMAT = 1
Made = TypeVar("Made", bound=Certificate)
MOST_ROWS = 2 * 10**9  # no file may ask for more work than the largest that calibration writes


class _File(Stated, frozen=True):
    format: int
    promise: str
    cutoffs: Annotated[
        tuple[StoredCutoff[dict[str, Any], dict[str, Any]], ...], Meta(min_length=1, max_length=10_000)
    ]


class _SaltFile(Struct, frozen=True, forbid_unknown_fields=True):
    warning: str
    key: Digest
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
    warning = "Secret. Whoever knows this can steer ties. Never publish or redraw it."
    secret = _SaltFile(warning, policy.salt.key, tuple(sorted(policy.salt.spent)))
    return json.dumps(asdict(secret), indent=1) + "\n"


def salt_path(path: Path) -> Path:
    return path.with_name(path.name + ".salt")


def load(path: Path, kind: type[Made]) -> Made:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput("policy", f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PolicyFileError("policy", f"{path} is no policy file: expected JSON in UTF-8.") from error
    except ValueError as error:
        raise InvalidInput("policy", f"cannot read {str(path)!r}: {error}.") from error
    try:
        secret = salt_path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        secret = None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyFileError("policy", f"cannot read the salt file {salt_path(path)}.") from error
    return loads(text, kind, str(path), secret)


def dumps(policy: Certificate) -> str:
    """The policy as JSON text, without its salt."""
    return json.dumps(to_dict(policy), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_dict(policy: Certificate) -> dict[str, Any]:
    """The policy as plain values; the promise stands in it for whoever opens the file."""
    facts: dict[str, Any] = msgspec.to_builtins(policy)
    facts.pop("salt", None)
    return {"format": FORMAT, "promise": wording.promise(policy), **facts}


def loads(text: str, kind: type[Made], name: str = "policy", salt_text: str | None = None) -> Made:
    """A policy from JSON text; every contradiction is an error that says what is wrong."""
    file = parse(text, _File, FORMAT, f"policy: {name}")
    try:
        facts = {name: getattr(file, name) for name in Stated.__struct_fields__}
        salt = _read_salt(file.salt_hash, salt_text, name)
        policy = kind(cutoffs=tuple(map(_cutoff, file.cutoffs)), salt=salt, **facts)
        _verify(policy)
    except SurelistError as error:
        raise PolicyFileError("policy", f"{name}: {error}") from error
    return policy


def _cutoff(raw: StoredCutoff[dict[str, Any], dict[str, Any]]) -> Cutoff:
    """Promises and proofs are told apart by their kind; their modules are imported when a file names them."""
    target, proof = kinds.read(raw.target, Promise), kinds.read(raw.proof, Proof)
    return Cutoff(**asdict(raw) | {"target": target, "proof": proof})


def _read_salt(salt_hash: str | None, text: str | None, name: str) -> Salt | None:
    if salt_hash is None or text is None:
        return None
    try:
        secret = msgspec.json.decode(text, type=_SaltFile)
    except msgspec.MsgspecError as error:
        raise PolicyFileError("", f"the salt file of {name} is damaged.") from error
    salt = Salt(secret.key, frozenset(secret.spent))
    if salt.hash != salt_hash:
        raise PolicyFileError("", "the salt file beside it belongs to another policy.")
    return salt


def _keys_fit(policy: Certificate) -> bool:
    """Whether the names of groups can be read as the keys they are said to have been."""
    names = [str(each.group) for each in policy.cutoffs]
    if policy.group_keys == "true or false":
        return policy.grouped and set(names) <= {"True", "False"}
    if policy.group_keys == "whole numbers":
        return policy.grouped and all(re.fullmatch("0|-?[1-9][0-9]*", each) for each in names)
    return True


def _verify(policy: Certificate) -> None:
    """Recompute what follows from the evidence; the file may not claim anything else."""
    rows = sum(each.rows for each in policy.cutoffs)
    hold(rows <= MOST_ROWS, f"it speaks of {rows:,} calibration rows, more than can be checked")
    groups = [cutoff.group for cutoff in policy.cutoffs]
    grouped = None not in groups
    hold(not grouped or len(set(groups)) == len(groups), "a group appears twice")
    hold(grouped or set(groups) == {None}, "only some cutoffs name a group")
    settings = grouped == (policy.group_split is not None) == (policy.group_rows is not None)
    hold(settings, "groups and their settings do not go together")
    hold(_keys_fit(policy), "its groups are not named as it says")
    hold(grouped or not policy.overlapping, "groups overlap, and there are none")
    promised = {each.target.kind for each in policy.cutoffs}
    hold(not grouped or len(promised) == 1, "groups have targets of several kinds")
    hold(grouped or len(promised) == len(groups), "a promise appears twice")
    needing = any(each.target.every_label for each in policy.cutoffs)
    hold(not (needing and policy.missing_labels), "a share kept does not go with missing labels")
    apart = not (policy.overlapping or policy.group_rows == "all")
    hold(policy.group_split != "sidak" or apart, "sidak needs disjoint groups with rows of their own")
    shift = policy.shift
    for cutoff in policy.cutoffs:
        level = cutoff.level
        hold(level.rule == policy.rule, "its cutoffs have another rule")
        hold(level.alpha == policy.alpha_of(cutoff), "a group's alpha is not its share of alpha")
        joint = policy.several and cutoff.target.joins_fixed and 0 < (level.beside or 0) < level.alpha
        hold(level.beside is None or joint, "the level beside its own is impossible")
        if shift is not None and shift.within is not None:
            cutoff = replace(cutoff, target=cutoff.target.widened(shift.within))
        _verify_cutoff(cutoff, ties=policy.salt_hash is not None, common=policy.common)
    lists = {(each.steps[0].threshold, each.steps[0].tie_break) for each in policy.cutoffs}
    hold((grouped and not policy.common) or len(lists) == 1, "its promises have several lists")
    hold(not policy.common or grouped, "one cutoff for all groups, and there are none")
    hold((policy.everyone is not None) == policy.common, "all rows and a common cutoff go together")
    hold(policy.common or all(each.own is None for each in policy.cutoffs), "a group has two cutoffs")
    if policy.group_rows == "all":
        _verify_among(policy)
    if policy.choice is not None:
        scores = policy.choice.scores
        hold(len(set(scores)) == len(scores) > 0, "a score appears twice")
        hold(policy.choice.chosen in scores, "the score chosen is none of those looked at")


def _verify_among(policy: Certificate) -> None:
    """Groups that count among all rows count among the same ones, and groups that do not overlap fit in."""
    rows = {each.rows for each in policy.cutoffs}
    own = [each.scores.total for each in policy.cutoffs if each.scores and policy.group_of(each) is not None]
    fit = policy.overlapping or not policy.cutoffs[0].proof.counted or sum(own) <= min(rows)
    hold(len(rows) == 1 and fit, "its groups do not count among all rows")


def _verify_cutoff(cutoff: Cutoff, *, ties: bool, common: bool) -> None:
    rule, proof = cutoff.level.rule, cutoff.proof
    hold(rule in cutoff.target.rules, f"rule {rule!r} does not certify this target")
    hold(0 <= cutoff.qualified <= cutoff.rows and cutoff.rows > 0, "the row counts are impossible")
    broken = all((step.tie_break is not None) == ties for step in cutoff.steps)
    hold(broken, "tie breaks and salt do not go together")
    one = len(cutoff.steps) == 1 and cutoff.steps[0].pool_size == cutoff.target.smallest_pool
    hold(proof.many_steps or (one and not ties), "its proof has one threshold, and goes with no tie")
    proof.check(cutoff)
    if proof.many_steps:
        hold(max(step.critical_count for step in cutoff.steps) <= cutoff.qualified, "too few qualified rows")
        order = [(step.threshold, step.tie_break or 0) for step in cutoff.steps]
        hold(order == sorted(order), "thresholds fall while critical counts fall")
        _verify_summary(cutoff, common=common)


def _verify_summary(cutoff: Cutoff, *, common: bool) -> None:
    """What is kept of the rows may not contradict the counts."""
    for step in cutoff.steps:
        if step.reached is not None:
            hold(step.critical_count <= step.reached <= cutoff.qualified, "too few rows reach a threshold")
    scores = cutoff.scores
    if scores is None:
        return
    hold(len(scores.scores) == len(scores.rows) > 0, "the sketch of scores is not complete")
    hold(len(scores.scores) <= 2 * INTERVALS, "the sketch of scores is too long")
    ends = [scores.lowest, *scores.scores[1:], scores.highest]
    hold(scores.lowest == scores.scores[0] and ends == sorted(ends), "the sketch of scores is out of order")
    hold(cutoff.qualified <= scores.total <= cutoff.rows, "the sketch lacks rows")
    low, high = cutoff.steps[0].threshold, cutoff.steps[-1].threshold  # they rise
    inside = (common or scores.lowest <= low) and high <= scores.highest
    hold(inside, "a threshold lies outside the scores")
