"""What the audit report says, as plain values; and the report, one HTML file or PDF that computes nothing.

What it shows are inputs to an audit: counts, rates, intervals, hashes. It passes and fails no
one; an auditor has to be independent of whoever makes the shortlists.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import structs

from surelist._numerals import FILTERS
from surelist._version import __version__
from surelist.drawing import charts
from surelist.errors import MissingDependency
from surelist.promises import policy_display, policy_file, wording
from surelist.promises.policy import Policy
from surelist.promises.policy_display import usual
from surelist.promises.state import Cutoff
from surelist.reports import audit
from surelist.reports.evidence import RULE_NAMES, Look, RowsEvidence, SelectionFacts
from surelist.reports.pictures import Chart, curve_chart, promise_charts

STEPS_SHOWN = 8
# what the report says of a policy in the words of the policy
AS_IT_IS = ("conditions", "alpha", "rule", "purpose", "grouped", "created", "missing_labels", "warnings")
TEMPLATES = Path(__file__).parent / "templates"
PDF_COLOURS = (  # WeasyPrint keeps the page's style sheet out of pictures
    "path,line{fill:none} .line{stroke-width:2.5} .line-a,.mark-guide{stroke:#0b6e69} .hover{display:none}"
    ".line-b{stroke:#a04c0b;stroke-dasharray:7 4} .grid{stroke:#b9c2cb} .axis{stroke:#3d4853}"
    ".mark{fill:#0b6e69} .mark-guide{stroke-dasharray:2 4} .bar{fill:#7fb5b1}"
    ".whisker{stroke:#000;stroke-width:1.5} .tick,.label{fill:#3d4853;font-size:13px;font-family:sans-serif}"
)


def summarise(
    policy: Policy,
    *,
    name: str = "policy",
    policy_sha256: str | None = None,
    rows_sha256: str | None = None,
    evidence: RowsEvidence | None = None,
    earlier_looks: Sequence[Look] = (),
    selection: SelectionFacts | None = None,
    reviews: tuple[int, int] | None = None,
    record: Sequence[Mapping[str, str]] = (),
) -> dict[str, object]:
    """Everything the report says, as plain values."""
    candidates = None if selection is None else selection.candidates
    return {
        "name": name,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "promise": policy.promise_of(candidates),
        "two_lines": structs.asdict(policy.two_lines_of(candidates)),
        **{name: getattr(policy, name) for name in AS_IT_IS},
        "uses_alpha": policy.cutoffs[0].proof.uses_alpha,
        "rule_name": RULE_NAMES[policy.rule],
        "reading": list(policy.reading or ()),
        "common": common_of(policy),
        "cutoffs": cutoffs_of(policy),
        "listed": _listed(policy),
        "excess": _excess(policy),
        "score_column": (policy.columns or {}).get("score"),
        "policy_sha256": policy_sha256,
        "rows_sha256": rows_sha256,
        "earlier_looks": list(earlier_looks),
        "selection": selection,
        "usual": _usual(policy, selection, earlier_looks),
        "rates": _rates(selection),
        "impact": [] if selection is None else selection.impact,
        "reviews": {"reviewed": reviews[0], "qualified": reviews[1]} if reviews else None,
        "evidence": evidence,
        "record": list(record),
        "versions": versions(policy),
        "file": policy_file.dumps(policy),
    }


def _usual(
    policy: Policy, selection: SelectionFacts | None, looks: Sequence[Look]
) -> dict[str, str] | None:  # fmt: skip
    """What "on average" means for this list; None where it was chosen after looking, or cannot be said."""
    if selection is None or looks:
        return None
    usual_size = usual(policy, selection.candidates, selection.shortlisted)
    return None if usual_size is None else {"sentence": usual_size.sentence, "meaning": usual_size.meaning}


def _excess(policy: Policy) -> list[dict[str, object]]:
    """How much more than asked for a list may hold: by count for a fixed target, else the paper's bound."""
    values = {
        group: bound.paper if bound.count is None else bound.count
        for group, bound in policy.excess_bound.items()
    }
    return [{"group": group, "count": value} for group, value in values.items() if value is not None]


def versions(policy: Policy) -> dict[str, str]:
    """With what the policy and this report were made."""
    packages = {"surelist (policy)": policy.version, "surelist (report)": __version__}
    packages["Python"] = platform.python_version()
    for package in ("numpy", "scipy", "duckdb"):
        packages[package] = metadata.version(package)
    return packages


def common_of(policy: Policy) -> dict[str, object] | None:
    """What each group gets under the common cutoff, and what cutoffs that differ would have listed.

    The lists are estimated from the calibration rows; of groups that overlap the parts do not add up.
    """
    everyone = policy.everyone
    if everyone is None or everyone.share is None:
        return None
    parts = [each for each in policy.cutoffs if policy.group_of(each) is not None and each.scores is not None]
    own = [(each.own.share, each.scores.total) for each in parts if each.own is not None and each.scores]
    apart = None
    if len(own) == len(parts) and not policy.overlapping and sum(n for _, n in own) == everyone.scores.total:
        apart = sum((share or 0.0) * n for share, n in own) / everyone.scores.total
    groups = [
        {
            "group": each.group, "target": each.target.describe(), "share": each.steps[0].share,
            "qualified": (each.steps[0].reached or 0) / max(1, each.qualified),
            "own_threshold": each.own and each.own.threshold, "own_share": each.own and each.own.share,
        }
        for each in parts
    ]  # fmt: skip
    return {
        "threshold": policy.threshold, "share": everyone.share, "apart": apart, "groups": groups,
        "refused": len(own) < len(parts),
    }  # fmt: skip


def cutoffs_of(policy: Policy) -> list[dict[str, object]]:
    """The thresholds of a policy with what they rest on, group by group."""
    return [_cutoff(each, policy) for each in policy.cutoffs]


def _cutoff(cutoff: Cutoff, policy: Policy) -> dict[str, object]:
    return {
        **{name: getattr(cutoff, name) for name in ("group", "rows", "qualified", "fingerprint")},
        "target": cutoff.target.describe(),
        "evidence": None if cutoff.proof.many_steps else cutoff.proof.evidence(cutoff),
        "alpha": cutoff.level.alpha,
        "by_rank": policy.by_rank,
        "steps": [structs.asdict(step) for step in cutoff.steps[:STEPS_SHOWN]],
        "more_steps": max(0, len(cutoff.steps) - STEPS_SHOWN),
        "scores": structs.asdict(cutoff.scores) if cutoff.scores is not None else None,
        "about": _about(cutoff, policy),
        "lists": None if cutoff.proof.looked_from is None else policy_display.listed(cutoff),
    }


def _listed(policy: Policy) -> str:
    """Who is shortlisted, in words that go with the table of thresholds."""
    if policy.of_collection:
        return f"Nothing is promised of the threshold on other candidates. {wording.THEIR_LIST}"
    if policy.by_rank:
        return f"Shortlisted are {policy_display.listed(policy.cutoffs[0])}, by score."
    if policy.salt_hash is not None:
        return (
            "A candidate is shortlisted when the score is above the threshold; of those exactly at it, the "
            "hash of their id decides."
        )
    if (below := policy.cutoffs[0].proof.looked_from) is not None:
        return (
            "A candidate is accepted when the score is at or above the threshold, and rejected when it is "
            f"{wording.compared(below, 10, below=True)}; people look at the others."
        )
    return "A candidate is shortlisted when the score is at or above the threshold."


def _about(cutoff: Cutoff, policy: Policy) -> str:
    """The count needed and the count there is; which score was certified, its range and its AUC."""
    lines = wording.about_scores(cutoff, policy)
    if cutoff.proof.many_steps:
        lines = [f"threshold: {cutoff.proof.evidence(cutoff)}", *lines]
    return " ".join(f"{line[0].upper()}{line[1:]}." for line in lines)


def _rates(selection: SelectionFacts | None) -> list[audit.ImpactTable]:
    """The policy's own groups as an impact table, from the counts on record."""
    if selection is None or not selection.groups:
        return []
    return [audit.impact_table(("group of the policy",), {(n,): c for n, c in selection.groups.items()})]


def render(summary: Mapping[str, Any]) -> str:
    """The report as one HTML file: no scripts, nothing loaded from anywhere."""
    template = environment().get_template("report.html")
    evidence: RowsEvidence | None = summary["evidence"]
    curve, bins, own = None, None, tuple[Chart, ...]()
    if evidence:
        curve = curve_chart(evidence) if evidence.curves else None
        known = [structs.asdict(each) for each in evidence.bins]
        bins = charts.reliability_chart(known) if known else None
        if evidence.own or evidence.by_group:
            own = promise_charts(evidence, by_rank=summary["cutoffs"][0]["by_rank"])
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return str(
        template.render(**summary, curve=curve, bins=bins, own=own, style=style, rule_names=RULE_NAMES)
    )


def write_pdf(html: str, path: Path) -> None:
    """The report as PDF (needs the ``pdf`` extra). Nothing is fetched: all of it is in the text."""
    try:
        import weasyprint
    except (ImportError, OSError) as error:  # OSError: the package is there, and Pango is not
        raise MissingDependency(
            "PDF reports need WeasyPrint and Pango: pip install 'surelist[pdf]'; on Debian also "
            "apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0."
        ) from error
    coloured = html.replace("</desc>", f"</desc><style>{PDF_COLOURS}</style>")
    weasyprint.HTML(string=coloured, url_fetcher=_nothing).write_pdf(str(path))


def _nothing(url: str, **_: object) -> Any:
    raise ValueError(f"a report loads nothing, and this one asked for {url[:80]!r}")


def environment(*folders: Path) -> Any:
    """How templates of these folders, and of reports, are filled in."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependency("Reports need Jinja2: pip install 'surelist[report]'.") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters.update(FILTERS)
    return environment
