"""A German workbook with Ja and Nein and decimal commas, from upload to a reviewed list and a PDF, in the app alone."""

# ruff: noqa: F401, F811
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import xlsxwriter

from surelist import examples
from tests.helpers.browser import SIZES, press
from tests.service.test_page import server

FEWEST = 12  # pixels of a letter on a chart's axes
TICKS = """() => Math.min(...[...document.querySelectorAll('svg.chart .tick')].map((t) =>
    parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getBoundingClientRect().width / 720))"""


def workbook(path: Path, rows: int, labelled: bool, seed: int) -> Path:
    scores, labels = examples.population(np.random.default_rng(seed), rows)
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Bewerbungen")
        heads = ["Bewerber", "Punktzahl", "Standort", *(["Geeignet"] if labelled else [])]
        sheet.write_row(0, 0, heads)
        for at, (score, label) in enumerate(zip(scores, labels, strict=True)):
            answer = ["Ja" if label else "Nein"] if labelled else []
            cells = [f"B-{at:04d}", f"{score:.4f}".replace(".", ","), ("Köln", "Jena")[at % 2], *answer]
            sheet.write_row(at + 1, 0, cells)
    return path


@pytest.fixture
def books(tmp_path) -> tuple[Path, Path]:
    past = workbook(tmp_path / "Bewerbungen 2025.xlsx", 2000, True, 0)
    return past, workbook(tmp_path / "Januar.xlsx", 200, False, 2)


def save_prints(page, pictures: Path, name: str) -> None:
    for size in ("A4", "Letter"):
        page.pdf(path=str(pictures / f"{name}-{size}.pdf"), format=size, prefer_css_page_size=False)


def promise(look, url: str, past: Path) -> None:
    page = look.page
    page.goto(url + "/new")
    page.set_input_files("#file", str(past))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/drafts/*")
    page.locator("#score").select_option("Punktzahl")
    page.locator("#label").select_option("Geeignet")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label(
        re.compile("^Ja ")
    ).check()  # the page asked which value means qualified, with status 400
    look.errors.clear()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/promise")
    assert "decimal comma" in page.inner_text("main")
    page.get_by_role("button", name="See what can be promised").click()
    page.wait_for_url("**/result")
    assert page.inner_text(".promise-text p >> nth=0").startswith("On average at least 5 of about ")
    look.check("german-result")
    for width in (320, 360, 390, 481, 769):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(TICKS) >= FEWEST, width
    page.set_viewport_size(SIZES["desktop"])
    page.get_by_role("button", name="Save as a policy").click()
    page.wait_for_url("**/policies/*")


def test_from_a_german_workbook_to_a_reviewed_list_and_a_pdf(look, server, books, pictures, tmp_path):
    page, (past, pool) = look.page, books
    promise(look, server.url, past)
    page.set_input_files("#file", str(pool))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pools/*")
    page.locator("#id").select_option("Bewerber")
    page.get_by_label("Report rates by").select_option("Standort")
    page.get_by_role("button", name="Make the shortlist").click()
    page.wait_for_url("**/selections/*")
    where = page.url
    assert re.search(r"\d+ listed here; about \d+ to \d+ qualified would be usual\.", page.inner_text("main"))
    look.check("german-selection")
    page.get_by_role("link", name="Review the candidates").click()
    page.wait_for_url("**/review")
    page.wait_for_selector(".keys:not([hidden])")
    while page.locator(".decide").count():
        press(page, "y")
    with page.expect_navigation():
        page.get_by_role("button", name="Finish the review").click()
    page.goto(where)
    assert "Finished" in page.inner_text("main")
    save_prints(page, pictures, "german-selection")
    with page.expect_download() as started:
        page.get_by_role("link", name="Report as PDF").click()
    started.value.save_as(pictures / "german-report.pdf")
    assert (pictures / "german-report.pdf").read_bytes().startswith(b"%PDF")
    assert re.fullmatch(r"Bewerbungen-2025_Januar-report_[\d-]+\.pdf", started.value.suggested_filename)
    page.goto(where + "/report")
    assert "would be usual" in page.inner_text("main")
    assert "of whom" in page.inner_text("main")  # the reviews are in it
    save_prints(page, pictures, "german-report")
    assert look.errors == []
