"""Promises as the command line says them: options to targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from surelist.promises.calibration import Targets
    from surelist.promises.targets import Target


def parse_target(options: dict[str, Any]) -> Targets:
    """The target or targets that the options ask for."""
    kinds = [name for name in ("expect", "per_pool", "recall") if options[name] is not None]
    if options["group"] or options["targets"]:
        return _group_targets(options, kinds)
    if len(kinds) != 1:
        raise click.UsageError("Say what to promise: one of --expect K, --per-pool K, --recall SHARE.")
    value = options[kinds[0]]
    if kinds[0] == "recall":
        if options["pool_size"]:
            raise click.UsageError("--pool-size does not go with --recall; leave it out.")
        return one_target("recall", value, None)
    if not options["pool_size"]:
        raise click.UsageError("--pool-size M is needed: how many candidates a pool has.")
    return one_target(kinds[0], value, options["pool_size"])


def _group_targets(options: dict[str, Any], kinds: list[str]) -> Targets:
    if not (options["group"] and options["targets"]):
        raise click.UsageError('--group COLUMN and --target "name=K/M" go together.')
    if not options["purpose"]:
        from surelist.promises.calibration import GROUP_WARNING

        raise click.UsageError(f'--purpose "..." is needed with --group. {GROUP_WARNING}')
    if kinds:
        raise click.UsageError('With --group, say the promise per group: --target "name=K/M".')
    found = {}
    for text in options["targets"]:
        name, equals, promise = text.rpartition("=")
        if not equals:
            raise click.UsageError(f'--target: expected "name=K/M", got {text!r}.')
        kind, value, size = _promise(promise, text)
        if name in found:
            raise click.UsageError(f"--target: group {name!r} appears twice.")
        found[name] = one_target(kind, value, size)
    return found


def _promise(promise: str, text: str) -> tuple[str, float, str | None]:
    """``3.8/76`` on average, ``pool:3/76`` in every pool, ``recall:0.95``."""
    kind, colon, rest = promise.partition(":")
    kind, rest = (kind, rest) if colon else ("expect", promise)
    value, slash, size = rest.partition("/")
    if kind not in ("expect", "pool", "recall") or bool(slash) == (kind == "recall"):
        raise click.UsageError(
            f'--target: expected "name=K/M", "name=pool:K/M" or "name=recall:SHARE", got {text!r}.'
        )
    return kind.replace("pool", "per_pool"), _float(value, "--target"), size if slash else None


def one_target(kind: str, value: float, size: str | None) -> Target:
    """``expect``, ``per_pool`` or ``recall`` with its numbers."""
    from surelist.promises.targets import Expected, PerPool, Recall

    if kind == "recall":
        return Recall(value)
    if kind == "expect":
        return Expected(value, _float(size or "", "--pool-size"))
    whole = int(value) if float(value).is_integer() else value
    low, dash, high = (size or "").lstrip("-").partition("-")
    low = low if not (size or "").startswith("-") else f"-{low}"
    sizes = [_whole(part, "--pool-size") for part in ((low, high) if dash else (low,))]
    return PerPool(whole, tuple(sizes) if dash else sizes[0])  # type: ignore[arg-type]


def _float(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{option}: expected a number, got {text!r}.") from None


def _whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(
            f"{option}: expected a whole number or a range 50-200, got {text!r}."
        ) from None
