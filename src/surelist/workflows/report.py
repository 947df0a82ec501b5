"""The audit report from files alone, with no service and no record."""

from __future__ import annotations

from pathlib import Path

import msgspec

from surelist._files import refuse_inputs, temporary_folder, writing
from surelist.errors import InvalidInput
from surelist.promises.policy import Policy
from surelist.reports import html
from surelist.reports.evidence import SelectionFacts
from surelist.reports.summary import summarise
from surelist.workflows import tables as workflows
from surelist.workflows.summaries import evidence_for, selection_facts, sha256_of

ENDINGS = (".html", ".pdf", ".json")


def write(
    policy: Path,
    output: Path,
    *,
    past: Path | None = None,
    pool: Path | None = None,
    attributes: tuple[str, ...] = (),
    name: str = "policy",
) -> None:
    """Write the report of a policy file, its calibration rows and one pool; the ending is the format."""
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput("output", expected="a name ending in .html, .pdf or .json", got=repr(output.name))
    inputs = [each for each in (policy, past, pool) if each is not None]
    refuse_inputs(output, inputs)
    summary = _summary(policy, past, pool, attributes, name)
    with writing(output, inputs=inputs) as temporary:
        if ending == ".pdf":
            html.write_pdf(html.render(summary), temporary)
        else:
            text = (
                msgspec.json.format(msgspec.json.encode(summary), indent=1).decode()
                if ending == ".json"
                else html.render(summary)
            )
            temporary.write_text(text, encoding="utf-8")


def _summary(
    path: Path, past: Path | None, pool: Path | None, attributes: tuple[str, ...], name: str
) -> dict[str, object]:
    if len(attributes) > 2:
        raise InvalidInput("attribute", expected="at most two", got=f"{len(attributes)}")
    policy = Policy.load(path)
    return summarise(
        policy,
        name=name,
        policy_sha256=sha256_of(path),
        rows_sha256=sha256_of(past) if past else None,
        evidence=evidence_for(policy, past, attributes) if past else None,
        selection=_selection(policy, pool, attributes) if pool else None,
    )


def _selection(policy: Policy, pool: Path, attributes: tuple[str, ...]) -> SelectionFacts:
    kind = pool.suffix[1:]
    with temporary_folder() as folder:
        output = folder / f"shortlist.{kind}"
        done = workflows.select_table(pool, policy, output=output)
        impact = workflows.impact(pool, output, attributes, policy.three_ways) if attributes else ()
        return selection_facts(done, (sha256_of(pool), kind), (sha256_of(output), kind), impact)
