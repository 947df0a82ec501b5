"""The audit report as one HTML file or PDF: values are drawn and formatted, nothing is computed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from surelist._numerals import FILTERS
from surelist.drawing import charts
from surelist.errors import MissingDependency
from surelist.reports.evidence import RowsEvidence
from surelist.reports.pictures import Chart, curve_picture, promise_charts
from surelist.reports.summary import RULE_NAMES, curve_table

TEMPLATES = Path(__file__).parent / "templates"
PDF_COLOURS = (  # WeasyPrint keeps the page's style sheet out of pictures
    "path,line{fill:none} .line{stroke-width:2.5} .line-a,.mark-guide{stroke:#0b6e69} .hover{display:none}"
    ".line-b{stroke:#a04c0b;stroke-dasharray:7 4} .grid{stroke:#b9c2cb} .axis{stroke:#3d4853}"
    ".mark{fill:#0b6e69} .mark-guide{stroke-dasharray:2 4} .bar{fill:#7fb5b1}"
    ".whisker{stroke:#000;stroke-width:1.5} .tick,.label{fill:#3d4853;font-size:13px;font-family:sans-serif}"
)


def render(summary: Mapping[str, Any]) -> str:
    """The report as one HTML file: no scripts, nothing loaded from anywhere."""
    template = _environment().get_template("report.html")
    evidence: RowsEvidence | None = summary["evidence"]
    pictures: dict[str, str | None] = {}
    own: tuple[Chart, ...] = ()
    if evidence:
        bins = [structs.asdict(each) for each in evidence.bins]
        pictures["curve"] = curve_picture(evidence) if evidence.curves else None
        pictures["bins"] = charts.reliability_chart(bins) if bins else None
        if evidence.own or evidence.by_group:
            own = promise_charts(evidence, by_rank=summary["cutoffs"][0]["by_rank"])
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return str(template.render(**summary, pictures=pictures, own=own, style=style, rule_names=RULE_NAMES))


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


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependency("Reports need Jinja2: pip install 'surelist[report]'.") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.globals.update(curve_table=curve_table)
    environment.filters.update(FILTERS)
    return environment
