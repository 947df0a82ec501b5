"""The whole story in real headless Chromium: upload, promise, policy, pool, shortlist, report."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.helpers.browser import new_context
from tests.helpers.service import Server, csv_text

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("home"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "past.csv").write_text(csv_text(2000, labelled=True))
    (folder / "pool.csv").write_text(csv_text(100, labelled=False, seed=1))
    return folder


def begin(page, url: str, file: Path) -> None:
    page.goto(url + "/new")
    page.set_input_files("#file", str(file))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/drafts/*")


def test_the_whole_story(look, server, files):
    page = look.page
    page.goto(server.url)
    look.check("home")
    begin(page, server.url, files / "past.csv")
    assert page.locator("#score").input_value() == "score"
    assert page.locator("#label").input_value() == "qualified"
    look.check("columns")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/promise")
    page.get_by_label("Qualified candidates needed", exact=True).fill("5")
    look.check("promise")
    page.get_by_role("button", name="See what can be promised").click()
    page.wait_for_url("**/result")
    assert "On average at least 5 of about" in page.inner_text(".promise-text")
    page.locator("svg.chart").scroll_into_view_if_needed()
    box = page.locator("svg.chart").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert re.fullmatch(
        r"Candidates on the shortlist: [\d.]+ · Qualified, at least: [\d.]+", page.inner_text(".reading")
    )
    before = page.inner_text(".reading")
    page.get_by_role("slider", name="Read the chart").press("ArrowLeft")
    assert page.inner_text(".reading") != before
    look.check("result")
    page.get_by_label("Name of the policy").fill("Trial 7, <b>site north</b>")
    page.get_by_role("button", name="Save as a policy").click()
    page.wait_for_url("**/policies/*")
    assert page.inner_text("h1") == "Trial 7, <b>site north</b>"
    look.check("policy")
    page.set_input_files("#file", str(files / "pool.csv"))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pools/*")
    page.get_by_label("Report rates by").select_option("site")
    look.check("pool")
    page.get_by_role("button", name="Make the shortlist").click()
    page.wait_for_url("**/selections/*")
    shortlist(look)
    report(look)
    page.goto(server.url + "/selections")
    look.check("selections")
    page.goto(server.url + "/record")
    assert "shortlisted" in page.inner_text("main")
    look.check("record")


def shortlist(look) -> None:
    page = look.page
    look.check("selection")
    rows = page.locator("#list tbody tr")
    total = rows.count()
    assert page.inner_text("h1") == f"{total} of 100 candidates"
    assert "≥" in rows.first.inner_text()
    page.get_by_role("button", name="score").click()
    scores = [float(cell) for cell in page.locator("#list tbody td.n").all_inner_texts()]
    assert scores == sorted(scores)
    page.get_by_role("button", name="score").click()
    assert page.locator("#list th[aria-sort=descending]").count() == 1
    first = rows.first.locator("td").first.inner_text()
    page.get_by_label("Search").fill(first)
    assert page.locator("#list tbody tr:visible").count() == 1
    page.get_by_label("Search").fill("")
    for name, ending in (("CSV", ".csv"), ("CSV for spreadsheets", ".csv"), ("Parquet", ".parquet")):
        with page.expect_download() as download:
            page.get_by_role("link", name=name, exact=True).click()
        path = download.value.path()
        assert download.value.suggested_filename.endswith(ending)
        if ending == ".csv":
            assert len(list(csv.reader(path.read_text("utf-8-sig").splitlines()))) == total + 1
    page.get_by_role("link", name="Review the candidates").click()
    page.wait_for_url("**/review")
    page.get_by_role("button", name="Yes").click()
    page.wait_for_selector(".said strong")
    page.go_back()
    page.reload()
    assert f"1 of {total} reviewed" in page.inner_text("main")


def report(look) -> None:
    page = look.page
    page.get_by_role("link", name="Audit report").click()
    page.wait_for_url("**/report")
    text = page.inner_text("main")
    for part in (
        "The promise",
        "What the promise rests on",
        "Selection rates by site",
        "Impact ratio",
        "SHA-256",
    ):
        assert part in text
    look.check("report")
    page.go_back()


def test_not_certifiable_explains_and_offers_the_simultaneous_rule(look, server, files):
    page = look.page
    begin(page, server.url, files / "past.csv")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Qualified candidates needed", exact=True).fill("30")
    page.get_by_role("button", name="See what can be promised").click()
    page.wait_for_url("**/result")
    assert "Not certifiable" in page.inner_text("h1")
    assert "not covered" in page.inner_text("main")
    look.check("refused")
    page.get_by_role("link", name="Explore what these rows carry").click()
    page.wait_for_url("**/explore")
    assert "look and choose" in page.inner_text(".lead")
    moved = page.locator(".hover-dot").get_attribute("cx")
    page.locator("#slider").fill("4")
    assert "a list of about" in page.inner_text(".found")
    assert page.locator(".hover-dot").get_attribute("cx") != moved  # the slider moves the mark on the chart
    look.check("explore")
    page.get_by_role("button", name="Take this promise").click()
    page.wait_for_url("**/result")
    assert "at least 4 of about" in page.inner_text("main")
    assert "asked of these rows before" in page.inner_text("main")
    with page.expect_navigation():
        page.get_by_role("link", name="Change the promise").click()
    assert page.locator("#r2").is_checked()
    assert "been asked of these rows before" in page.inner_text("main")
    look.check("promise-again")


def test_groups_need_a_purpose(look, server, files):
    page = look.page
    begin(page, server.url, files / "past.csv")
    page.get_by_label("Group (optional)").select_option("site")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/promise")
    look.check("promise-groups")
    assert page.locator("#c1").is_checked()  # one cutoff for everybody stands first
    page.get_by_label("A cutoff for each group").check()
    page.get_by_label("What cutoffs by group are for").fill("equal outreach of four sites")
    page.get_by_role("button", name="See what can be promised").click()
    page.wait_for_url("**/result")
    assert (
        "for group 'north', on average the list of a pool of 100 candidates will hold at least 1"
        in page.inner_text("main")
    )
    look.check("result-groups")
    page.get_by_role("button", name="Save as a policy").click()
    page.wait_for_url("**/policies/*")
    page.set_input_files("#file", str(files / "pool.csv"))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pools/*")
    page.get_by_role("button", name="Make the shortlist").click()
    page.wait_for_url("**/selections/*")
    assert "group north: score ≥" in page.inner_text("#list")
    look.check("selection-groups")


def test_a_bad_csv_shows_which_rows(look, server, tmp_path):
    bad = tmp_path / "bad.csv"
    lines = csv_text(50, labelled=True).splitlines()
    lines[3] = "x,40,north,<img src=x onerror=alert(1)>,1"
    lines[7] = "y,41,south,0.5,maybe"
    bad.write_text("\n".join(lines))
    page = look.page
    page.on("dialog", lambda dialog: pytest.fail("script ran"))
    begin(page, server.url, bad)
    page.locator("#score").select_option("score")
    page.locator("#label").select_option("qualified")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector(".alert")
    assert "is not 0 and 1" in page.inner_text(".alert")
    assert "maybe 1 row" in page.inner_text("#pos_label")
    page.locator('input[name="pos_label"][value="1"]').check()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector(".beside")
    assert "<img src=x onerror=alert(1)>" in page.inner_text(".beside")
    assert "4" in page.inner_text(".beside")  # as the spreadsheet counts
    look.errors.clear()  # the browser itself reports the 400
    look.check("columns-problems")


def test_an_upload_that_is_no_table_is_explained_in_place(look, server, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"PK\x03\x04 not a csv")
    page = look.page
    page.goto(server.url + "/new")
    page.set_input_files("#file", str(path))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector(".alert")
    assert "damaged" in page.inner_text(".alert")
    look.errors.clear()
    look.check("home-problem")


def test_compare_and_retire(look, server, files):
    page = look.page
    for k in ("3", "4"):
        begin(page, server.url, files / "past.csv")
        page.get_by_role("button", name="Continue").click()
        page.get_by_label("Qualified candidates needed", exact=True).fill(k)
        page.get_by_role("button", name="See what can be promised").click()
        page.wait_for_url("**/result")
        page.get_by_label("Name of the policy").fill(f"need {k}")
        page.get_by_role("button", name="Save as a policy").click()
        page.wait_for_url("**/policies/*")
    page.get_by_text("Retire this policy").click()
    page.get_by_label("Why?").fill("replaced")
    page.get_by_role("button", name="Retire", exact=True).click()
    page.wait_for_selector(".pill.off")
    assert page.locator("#file").count() == 0
    page.goto(server.url + "/policies")
    look.check("policies")
    for box in page.locator("input[name=p]").all()[:2]:
        box.check()
    with page.expect_navigation():
        page.get_by_role("button", name="Compare").click()
    assert page.locator("tr.differs").count() >= 3
    look.check("compare")


def test_it_works_without_script_and_by_keyboard(browser, server, files):
    context = new_context(browser, java_script_enabled=False)
    page = context.new_page()
    page.goto(server.url + "/new")
    page.set_input_files("#file", str(files / "past.csv"))
    with page.expect_navigation():
        page.get_by_role("button", name="Continue").press("Enter")
    with page.expect_navigation():
        page.get_by_role("button", name="Continue").press("Enter")
    with page.expect_navigation():
        page.get_by_role("button", name="See what can be promised").press("Enter")
    assert "This can be promised" in page.inner_text("h1")
    context.close()
