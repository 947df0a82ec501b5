"""``summary.html``: the claims beside the numbers, the figures, and how it was measured."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from surelist._dataclasses import dataclass
from surelist.paper.claims import PaperClaim
from surelist.paper.experiments import EXPERIMENTS

FEW_RUNS = 50
VERDICTS = {True: ("holds", "yes"), False: ("does not hold", "no"), None: ("–", "note")}

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:68rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}
h1{font-size:1.5rem;margin-bottom:.2rem} h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%} td,th{text-align:left;vertical-align:top;padding:.35rem .6rem}
tr+tr td{border-top:1px solid #e4e4e4} th{border-bottom:2px solid #1b1b1b}
.yes{color:#17692f;font-weight:600} .no{color:#a3152b;font-weight:600}
img{max-width:100%} .note{color:#555} .made-up{background:#fff3cd;padding:.5rem .8rem}
"""


@dataclass(frozen=True)
class AboutRun:
    """Where the numbers come from."""

    source: str
    synthetic: bool
    people: int
    test_rows: int
    runs: int
    seed: int
    alpha: float
    group_alpha: float
    pools: int
    absent: tuple[str, ...]
    skipped: dict[str, tuple[float, ...]]

    @property
    def few(self) -> bool:
        """Too few runs to tell 0.9 from its neighbours."""
        return self.runs < FEW_RUNS

    @property
    def caption(self) -> str:
        """One line for figures."""
        kind = "SYNTHETIC people, not census records" if self.synthetic else self.source
        return f"{kind} · {self.runs} runs · test half {self.test_rows:,} people · α = {self.alpha:g}"


def render(about: AboutRun, claims: Sequence[PaperClaim], figures: Sequence[Path]) -> str:
    """The whole page; figures are embedded, nothing is fetched."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>The paper's claims, measured</title><style>{STYLE}</style></head><body>",
        "<h1>The paper's claims, measured</h1>",
        f"<p class='note'>{escape(about.caption)} · seed {about.seed}</p>",
    ]
    if about.synthetic:
        parts.append(
            "<p class='made-up'><b>Synthetic.</b> These people were made up from margins of a census file. "
            "They show what the methods do; they are not census results.</p>"
        )
    for name in dict.fromkeys(claim.experiment for claim in claims):
        parts.append(f"<h2>{escape(name)}: {escape(EXPERIMENTS[name].axis)} varied</h2>")
        parts.append(_table([claim for claim in claims if claim.experiment == name]))
        parts += [_image(path) for path in figures if path.stem == name]
    parts.append("<h2>How it was measured</h2><ul>")
    parts += [f"<li>{escape(note)}</li>" for note in notes(about)]
    parts.append("</ul></body></html>")
    return "\n".join(parts)


def notes(about: AboutRun) -> list[str]:
    """What a reader must know to judge the numbers."""
    sentences = [
        "Every run redraws everything: who is left out to make 20 % qualified, the two halves, "
        "training and calibration rows, noise and pools.",
        f"EQ, SS and qualified are expectations over the whole test half, {about.test_rows:,} people: EQ "
        "must be judged on far more people than calibrate, or the error of the test is taken for a failure "
        f"of the rule. Averages over {about.pools:,} drawn pools are beside them in the results. Methods "
        "that look at whole pools are averaged over the test half cut into pools.",
        "Random choices (UMB's last bin, ties of Uncalibrated and Platt) enter with their probabilities.",
        f"The exact rule uses its whole budget: at α = {about.alpha:g} it shows EQ ≈ {1 - about.alpha:g}, "
        "not 1. "
        "That is the promise kept, not broken. Tied scores push it up a little, the error of the test half "
        "pulls it down where the calibration sample is not small against it.",
        f"Groups are certified at α = {about.group_alpha:g} each"
        + (
            " (α/2, as in the paper's Algorithm 3; the authors' released experiment uses α in each)."
            if about.group_alpha < about.alpha
            else " (as in the authors' released experiment; the paper's Algorithm 3 says α/2)."
        ),
        "A method whose target is not certifiable lists everyone in that run; the column certified says so.",
        "A method fails a setting in the figures if so few successes have a probability below 1 % at 1 − α.",
        "In diversity-size the calibration rows no longer mix the groups as pools do, so CSS (No Diversity) "
        "has no guarantee there.",
    ]
    if about.few:
        sentences.append(f"Only {about.runs} runs: no verdicts below {FEW_RUNS}.")
    if about.absent:
        sentences.append(f"Of the paper's 16 features this source lacks {', '.join(about.absent)}.")
    for name, settings in about.skipped.items():
        listed = ", ".join(f"{setting:,g}" for setting in settings)
        sentences.append(f"{name}: the source is too small for {listed} calibration rows; left out.")
    return sentences


def _table(claims: Sequence[PaperClaim]) -> str:
    lines = ["<table><tr><th>claim</th><th>measured</th><th>verdict</th></tr>"]
    for claim in claims:
        verdict, kind = VERDICTS[claim.holds]
        says = escape(claim.says) + (" <span class='note'>(surelist)</span>" if claim.own else "")
        lines.append(
            f"<tr><td>{says}</td><td>{escape(claim.measured)}</td><td class='{kind}'>{verdict}</td></tr>"
        )
    return "\n".join([*lines, "</table>"])


def _image(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f"<p><img alt='{escape(path.stem)}' src='data:image/png;base64,{data}'></p>"
