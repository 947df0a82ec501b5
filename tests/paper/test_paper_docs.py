"""docs/paper.md says what the committed results say."""

from __future__ import annotations

import csv
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def rows(name):
    with open(DOCS / "paper" / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_page_quotes_every_claim_with_its_number_and_verdict():
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    for claim in rows("claims.csv"):
        verdict = "holds" if claim["holds"] == "1" else "**does not hold**"
        (line,) = [
            line
            for line in page.splitlines()
            if line.startswith(f"| {claim['says']}") and f"| {claim['measured']} | {verdict} |" in line
        ][:1]
        assert line.count("|") == 4


def test_the_committed_run_is_of_paper_scale():
    cells = rows("summary.csv")
    assert {cell["runs"] for cell in cells} == {"100"}
    assert {cell["experiment"] for cell in cells} == {
        "noise",
        "calibration-size",
        "diversity-noise",
        "diversity-size",
    }
    sizes = {float(cell["setting"]) for cell in cells if cell["experiment"] == "calibration-size"}
    assert max(sizes) == 1e5


def test_the_committed_cells_bear_the_issue_out():
    """What is said of the real data, read off the committed table and not off the verdicts."""
    cells = {
        (c["experiment"], float(c["setting"]), c["method"], c["group"]): (float(c["eq"]), float(c["ss"]))
        for c in rows("summary.csv")
    }
    for (experiment, setting, method, group), (eq, size) in cells.items():
        certified = method.startswith("UMB") or method in ("CSS", "CSS (Diversity)")
        assert not certified or eq >= 0.9
        assert method not in ("Platt", "Isotonic") or group == "all" or eq < 0.9
        if experiment in ("noise", "calibration-size"):
            assert method not in ("Platt", "Isotonic") or eq < 0.9
            if method == "Uncalibrated" and experiment == "noise" and setting > 0:
                assert eq < 0.9
            if method.startswith("UMB") and not (experiment == "noise" and setting == 1):
                assert cells[experiment, setting, "CSS", "all"][1] < size
    starving = [
        cells["diversity-noise", r, "CSS (No Diversity)", "minority"][0]
        for r in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]
    assert starving == sorted(starving, reverse=True)
    assert starving[-1] < 0.1
