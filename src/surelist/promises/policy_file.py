"""Policy files: strict, versioned JSON. No code in it, ever.

Loading rejects unknown versions, unknown or missing fields, non-finite numbers, a promise that
was edited, and a threshold or count that its own evidence contradicts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from surelist._files import writing
from surelist._strict import Strict, hold, parse
from surelist.bounds.sequential import first_crossing_counts
from surelist.errors import InvalidInput, PolicyFileError, SurelistError
from surelist.promises.groups import split_alpha
from surelist.promises.policy import Cutoff, Looks, Policy, Shift, Step
from surelist.promises.targets import Expected, Level, PerPool, Recall, Target
from surelist.ties import Salt

FORMAT: Literal[1] = 1


class _Expected(Strict):
    kind: Literal["expected"]
    k: float
    pool_size: float


class _PerPool(Strict):
    kind: Literal["per-pool"]
    k: int
    smallest_pool: int
    largest_pool: int


class _Recall(Strict):
    kind: Literal["recall"]
    share: float


_AnyTarget = Annotated[_Expected | _PerPool | _Recall, Field(discriminator="kind")]


class _Step(Strict):
    pool_size: int
    critical_count: int
    threshold: float
    tie_break: int | None


class _Cutoff(Strict):
    group: str | None
    target: _AnyTarget
    alpha: float
    rows: int
    qualified: int
    steps: list[_Step] = Field(min_length=1)
    fingerprint: str | None = Field(pattern="^[0-9a-f]{64}$")


class _Shift(Strict):
    weight_bound: float = Field(gt=0)
    rows_before: int = Field(gt=0)
    seed: int = Field(ge=0)
    weights_exact: bool


class _Looks(Strict):
    rows: list[int] = Field(min_length=1)
    budgets: list[float]
    counts: list[int]
    chosen: int


class _File(Strict):
    format: Literal[1]
    promise: str
    alpha: float
    rule: str
    calibration_share: float
    cutoffs: list[_Cutoff] = Field(min_length=1)
    group_split: Literal["bonferroni", "sidak"] | None
    group_rows: Literal["own", "all"] | None
    overlapping: bool
    purpose: str | None
    missing_labels: int = Field(ge=0)
    dropped_rows: int = Field(ge=0)
    shift: _Shift | None
    salt_sha256: str | None
    columns: dict[str, str] | None
    created: str
    version: str
    # only in the policies of campaigns
    looks: _Looks | None = None
    withdrawn: str | None = None


class _SaltFile(Strict):
    warning: str
    key: str = Field(pattern="^[0-9a-f]{64}$")
    spent: list[int]


def save(policy: Policy, path: Path) -> None:
    """Write the policy (and its salt beside it), complete or not at all."""
    text, secret = dumps(policy), dump_salt(policy)
    if secret is None:
        with writing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        salt_path(path).unlink(missing_ok=True)  # of the policy that was here before
        return
    with writing(path) as temporary, writing(salt_path(path)) as hidden:
        os.chmod(hidden, 0o600)
        hidden.write_text(secret, encoding="utf-8")
        temporary.write_text(text, encoding="utf-8")


def dump_salt(policy: Policy) -> str | None:
    """The text of the secret file that goes with the policy, if it has a salt."""
    if policy.salt is None:
        return None
    secret = _SaltFile(
        warning="Secret. Whoever knows this can steer ties. Never publish or redraw it.",
        key=policy.salt.key,
        spent=sorted(policy.salt.spent),
    )
    return secret.model_dump_json(indent=1) + "\n"


def salt_path(path: Path) -> Path:
    return path.with_name(path.name + ".salt")


def load(path: Path) -> Policy:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"policy: cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"policy: {path} is not a text file.") from error
    except ValueError as error:
        raise InvalidInput(f"policy: cannot read {str(path)!r}: {error}.") from error
    try:
        secret = salt_path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        secret = None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyFileError(f"policy: cannot read the salt file {salt_path(path)}.") from error
    return loads(text, name=str(path), salt_text=secret)


def dumps(policy: Policy) -> str:
    """The policy as JSON text, without its salt."""
    return json.dumps(to_dict(policy), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_dict(policy: Policy) -> dict[str, Any]:
    """The policy as plain values, in the order of the file."""
    file = _File(
        format=FORMAT,
        promise=policy.promise,
        alpha=policy.alpha,
        rule=policy.rule,
        calibration_share=policy.cutoffs[0].level.calibration_share,
        cutoffs=[_dump_cutoff(cutoff) for cutoff in policy.cutoffs],
        group_split=policy.group_split,  # type: ignore[arg-type]
        group_rows=policy.group_rows,  # type: ignore[arg-type]
        overlapping=policy.overlapping,
        purpose=policy.purpose,
        missing_labels=policy.missing_labels,
        dropped_rows=policy.dropped_rows,
        shift=_Shift(**vars(policy.shift)) if policy.shift else None,
        salt_sha256=policy.salt_hash,
        columns=dict(policy.columns) if policy.columns else None,
        created=policy.created,
        version=policy.version,
        looks=_Looks(**_lists(policy.looks)) if policy.looks else None,
        withdrawn=policy.withdrawn,
    )
    absent = {name for name in ("looks", "withdrawn") if getattr(policy, name) is None}
    return file.model_dump(exclude=absent)


def loads(text: str, name: str = "policy", salt_text: str | None = None) -> Policy:
    """A policy from JSON text; every contradiction is an error that says what is wrong."""
    file = parse(text, _File, FORMAT, f"policy: {name}")
    try:
        policy = _build(file, _read_salt(file, salt_text, name))
        _verify(policy, file)
    except SurelistError as error:
        raise PolicyFileError(f"policy: {name}: {error}") from error
    return policy


def _read_salt(file: _File, text: str | None, name: str) -> Salt | None:
    if file.salt_sha256 is None or text is None:
        return None
    try:
        secret = _SaltFile.model_validate_json(text)
    except ValidationError as error:
        raise PolicyFileError(f"the salt file of {name} is damaged.") from error
    salt = Salt(secret.key, frozenset(secret.spent))
    if salt.hash != file.salt_sha256:
        raise PolicyFileError("the salt file beside it belongs to another policy.")
    return salt


def _build(file: _File, salt: Salt | None) -> Policy:
    return Policy(
        cutoffs=tuple(
            Cutoff(
                group=each.group,
                target=_load_target(each.target),
                level=Level(each.alpha, file.rule, file.calibration_share),
                rows=each.rows,
                qualified=each.qualified,
                steps=tuple(Step(**vars(step)) for step in each.steps),
                fingerprint=each.fingerprint,
            )
            for each in file.cutoffs
        ),
        alpha=file.alpha,
        rule=file.rule,
        created=file.created,
        version=file.version,
        group_split=file.group_split,
        group_rows=file.group_rows,
        overlapping=file.overlapping,
        purpose=file.purpose,
        missing_labels=file.missing_labels,
        dropped_rows=file.dropped_rows,
        shift=Shift(**vars(file.shift)) if file.shift else None,
        salt_hash=file.salt_sha256,
        salt=salt,
        columns=file.columns,
        looks=Looks(**_tuples(file.looks)) if file.looks else None,
        withdrawn=file.withdrawn,
    )


def _verify(policy: Policy, file: _File) -> None:
    """Recompute what follows from the evidence; the file may not claim anything else."""
    groups = [cutoff.group for cutoff in policy.cutoffs]
    hold(len(set(groups)) == len(groups), "a group appears twice")
    grouped = None not in groups
    hold(grouped or len(groups) == 1, "only some cutoffs name a group")
    hold(
        grouped == (policy.group_split is not None) == (policy.group_rows is not None),
        "groups and their settings do not go together",
    )
    each_alpha = policy.alpha
    if grouped:
        each_alpha = split_alpha(policy.alpha, len(groups), policy.group_split or "")
    hold(0 < policy.alpha < 1, f"alpha {policy.alpha} is not between 0 and 1")
    hold(grouped or not policy.overlapping, "groups overlap, and there are none")
    kinds = {type(cutoff.target) for cutoff in policy.cutoffs}
    hold(len(kinds) == 1, "groups have targets of several kinds")
    hold(Recall not in kinds or policy.group_rows != "all", "Recall does not go with all rows")
    hold(Recall not in kinds or not policy.missing_labels, "Recall does not go with missing labels")
    hold(
        policy.group_split != "sidak" or not (policy.overlapping or policy.group_rows == "all"),
        "sidak needs disjoint groups with rows of their own",
    )
    share = file.calibration_share
    hold(0 < share < 1, f"calibration_share {share} is not between 0 and 1")
    for cutoff in policy.cutoffs:
        hold(cutoff.level.alpha == each_alpha, "a group's alpha is not its share of alpha")
        _verify_cutoff(cutoff, ties=policy.salt_hash is not None, looks=policy.looks)
    hold(policy.promise == file.promise, "the promise does not say what the evidence says")


def _verify_cutoff(cutoff: Cutoff, *, ties: bool, looks: Looks | None) -> None:
    rule = cutoff.level.rule
    hold(rule in cutoff.target.rules, f"rule {rule!r} does not certify this target")
    hold(0 <= cutoff.qualified <= cutoff.rows and cutoff.rows > 0, "the row counts are impossible")
    if looks:
        claimed = [(step.pool_size, step.critical_count) for step in cutoff.steps]
        hold(claimed == _looks_require(cutoff, looks), f"critical counts {claimed} contradict its looks")
    else:
        _verify_counts(cutoff)
    hold(max(step.critical_count for step in cutoff.steps) <= cutoff.qualified, "too few qualified rows")
    order = [(step.threshold, step.tie_break or 0) for step in cutoff.steps]
    hold(order == sorted(order), "thresholds fall while critical counts fall")
    hold(
        all((step.tie_break is not None) == ties for step in cutoff.steps),
        "tie breaks and salt do not go together",
    )


def _verify_counts(cutoff: Cutoff) -> None:
    """Every step needs the count its pool size asks for. More is valid too, less a contradiction."""
    required = cutoff.target.requirements(cutoff.rows, cutoff.qualified, cutoff.level)
    hold(cutoff.steps[0].pool_size == required[0].pool_size, "it has no threshold for the smallest pool")
    for step in cutoff.steps:
        needed = cutoff.target.count_at(step.pool_size, cutoff.rows, cutoff.qualified, cutoff.level)
        hold(
            needed <= step.critical_count,
            f"critical count {step.critical_count} is less than the {needed} that {cutoff.rows} rows need",
        )
    sizes = [(step.pool_size, -step.critical_count) for step in cutoff.steps]
    hold(sizes == sorted(set(sizes)), "its steps are out of order")


def _looks_require(cutoff: Cutoff, looks: Looks) -> list[tuple[int, int]]:
    """A campaign's counts follow from its row numbers and its spending of alpha [theory: reviews]."""
    target, budgets = cutoff.target, list(looks.budgets)
    hold(isinstance(target, Expected) and cutoff.group is None, "campaigns have one Expected target")
    assert isinstance(target, Expected)
    hold(len(looks.rows) == len(budgets) == len(looks.counts), "a look lacks its rows or count")
    hold(budgets[0] > 0 and budgets == sorted(budgets), "the budgets fall")
    hold(budgets[-1] <= cutoff.level.alpha, "the looks spend more than alpha")
    hold(0 <= looks.chosen < len(looks.rows), "no look gave the threshold")
    hold(looks.rows[0] > 0 and looks.rows[looks.chosen] == cutoff.rows, "the row counts differ")
    counts = first_crossing_counts(looks.rows, target.rate, budgets)
    hold(counts == list(looks.counts), f"the looks' counts should be {counts}")
    return [(0, counts[looks.chosen])]


def _lists(looks: Looks) -> dict[str, Any]:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(looks).items()}


def _tuples(looks: _Looks) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in looks.model_dump().items()}


def _dump_cutoff(cutoff: Cutoff) -> _Cutoff:
    return _Cutoff(
        group=cutoff.group,
        target=_dump_target(cutoff.target),
        alpha=cutoff.level.alpha,
        rows=cutoff.rows,
        qualified=cutoff.qualified,
        steps=[_Step(**vars(step)) for step in cutoff.steps],
        fingerprint=cutoff.fingerprint,
    )


def _dump_target(target: Target) -> _Expected | _PerPool | _Recall:
    if isinstance(target, Expected):
        return _Expected(kind="expected", k=float(target.k), pool_size=float(target.pool_size))
    if isinstance(target, PerPool):
        smallest, largest = target.sizes
        return _PerPool(kind="per-pool", k=int(target.k), smallest_pool=smallest, largest_pool=largest)
    return _Recall(kind="recall", share=float(target.share))


def _load_target(target: _Expected | _PerPool | _Recall) -> Target:
    if isinstance(target, _Expected):
        return Expected(target.k, target.pool_size)
    if isinstance(target, _PerPool):
        sizes = (target.smallest_pool, target.largest_pool)
        return PerPool(target.k, sizes if sizes[0] != sizes[1] else sizes[0])
    return Recall(target.share)
