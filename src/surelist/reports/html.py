"""The audit report as one HTML file or PDF: values are drawn and formatted, nothing is computed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surelist._numerals import FILTERS
from surelist.drawing import charts
from surelist.errors import MissingDependency
from surelist.reports.summary import RULE_NAMES, curve_table, in_order

TEMPLATES = Path(__file__).parent / "templates"
LINE_STYLES = {"exact": "a", "simultaneous": "a", "dkw": "b"}


def render(summary: Mapping[str, Any]) -> str:
    """The report as one HTML file: no scripts, nothing loaded from anywhere."""
    environment = _environment()
    pictures: dict[str, str | None] = {}
    if summary["evidence"]:
        pictures["curve"] = curve_picture(summary["evidence"]) if summary["evidence"]["curves"] else None
        pictures["bins"] = _bins_picture(summary)
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    template = environment.get_template("report.html")
    return str(template.render(**summary, pictures=pictures, style=style, rule_names=RULE_NAMES))


def write_pdf(html: str, path: Path) -> None:
    """The same as PDF (needs the ``pdf`` extra)."""
    try:
        import weasyprint
    except ImportError as error:
        raise MissingDependency("PDF reports need WeasyPrint: pip install 'surelist[pdf]'.") from error
    weasyprint.HTML(string=html).write_pdf(str(path))


def curve_picture(evidence: Mapping[str, Any], mark: tuple[float, float] | None = None) -> str:
    """The guarantee curve of recorded evidence."""
    lines = [
        charts.Line(RULE_NAMES[rule], LINE_STYLES[rule], curve["list_size"], curve["qualified"])
        for rule, curve in in_order(evidence).items()
    ]
    return charts.guarantee_chart(lines, evidence["pool_size"], mark)


def _bins_picture(summary: Mapping[str, Any]) -> str | None:
    """Evidence on record from before counted unlabelled rows as not qualified: its bins are left out."""
    evidence = summary["evidence"]
    if not evidence["bins"] or (summary["missing_labels"] and "unlabelled" not in evidence):
        return None
    return charts.reliability_chart(evidence["bins"])


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependency("Reports need Jinja2: pip install 'surelist[report]'.") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.globals.update(curve_table=curve_table, in_order=in_order)
    environment.filters.update(FILTERS)
    return environment
