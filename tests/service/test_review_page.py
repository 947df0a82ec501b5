"""Reviewing in real headless Chromium: by keys, by pointer, without script, on a phone and in the dark."""

# ruff: noqa: F401, F811
from __future__ import annotations

import re
from pathlib import Path

import httpx
import numpy as np
import pytest

from surelist import examples
from tests.helpers.browser import new_context, press
from tests.helpers.service import BUSY, csv_text, web_client
from tests.service.test_page import server

pytestmark = pytest.mark.slow

CSV = {"content-type": "text/csv"}


@pytest.fixture(scope="module")
def policy(server) -> str:
    url = server.url + "/api/v1/calibrate?k=5&pool_size=100&name=Trial%207"
    return httpx.post(url, content=csv_text(2000, labelled=True), headers=CSV, timeout=BUSY).json()["hash"]


@pytest.fixture(scope="module")
def pool(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("pool") / "monday.csv"
    path.write_text(csv_text(1500, labelled=False, seed=3))
    return path


def make_list(page, server, policy: str, pool: Path) -> None:
    page.goto(f"{server.url}/policies/{policy}")
    page.set_input_files("#file", str(pool))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pools/*")
    page.get_by_label("Name of the pool").fill("Monday")
    page.get_by_label("Keep the candidates for").select_option(label="30 days")
    page.get_by_role("button", name="Make the shortlist").click()
    page.wait_for_url("**/selections/*")


def counts(page) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", page.inner_text(".counts"))]


def test_reviewing_by_keys(look, server, policy, pool):
    page = look.page
    make_list(page, server, policy, pool)
    look.check("selection-to-review")
    page.get_by_role("link", name="Review the candidates").click()
    page.wait_for_url("**/review")
    page.wait_for_selector(".keys:not([hidden])")
    total = counts(page)[1]
    assert total > 50  # more than a page
    best = page.inner_text("#who")
    look.check("review")
    press(page, "y")
    assert f"{best}: yes, saved." in page.inner_text(".said")
    assert counts(page)[:3] == [1, total, 1]
    press(page, "n")
    press(page, "j")
    skipped = page.inner_text("#who")
    press(page, "k")
    assert page.inner_text("#who") != skipped
    press(page, "u") if page.locator('[data-key="u"]').count() else None
    page.get_by_label("Show").select_option("mine")
    with page.expect_navigation():
        page.get_by_role("button", name="Apply").click()
    assert page.locator(".lines li").count() == counts(page)[0]
    page.goto(page.url.split("?")[0] + "?show=all")
    page.get_by_label("Search").fill(best)
    with page.expect_navigation():
        page.get_by_role("button", name="Apply").click()
    assert page.locator(".lines li").count() == 1
    page.get_by_label("Note about").fill("speaks Dutch")
    page.get_by_role("button", name="Save the note").click()
    page.wait_for_selector(".notes li")
    page.get_by_label("Note about").press("y")  # typing is not marking
    assert page.get_by_label("Note about").input_value() == "y"
    look.check("review-note")
    page.goto(server.url + "/kept")
    look.check("kept")


def test_reviewing_without_script_by_keyboard(browser, server, policy, pool):
    context = new_context(browser, java_script_enabled=False)
    page = context.new_page()
    make_list(page, server, policy, pool)
    with page.expect_navigation():
        page.get_by_role("link", name="Review the candidates").press("Enter")
    best = page.inner_text("#who")
    with page.expect_navigation():
        page.get_by_role("button", name="Yes").press("Enter")
    assert f"{best}: yes, saved." in page.inner_text(".said")
    with page.expect_navigation():
        page.get_by_role("button", name="Undo").press("Enter")
    assert counts(page)[0] == 0
    assert page.inner_text("#who") == best
    with page.expect_navigation():
        page.get_by_role("link", name="Next", exact=True).press("Enter")
    assert "Page 2 of" in page.inner_text(".pages")
    context.close()


def pool_rows(day: int, shift: float) -> list[dict]:
    """Nine who are listed and 91 like those of the past, or with scores that have moved."""
    past = sorted(float(line.split(",")[3]) for line in csv_text(2000, labelled=True).splitlines()[1:])
    others = [min(0.4, each + shift) for each in past[day % 20 : 1820 : 20]]
    scores = [0.99 - i / 1000 for i in range(9)] + others
    return [{"candidate": f"d{day}-{i}", "score": round(score, 6)} for i, score in enumerate(scores)]


def screen_and_review(url: str, policy: str, day: int, qualified: int, shift: float = 0.0) -> dict:
    """A pool by the API, its reviews, and what the promise looks like after them."""
    rows = pool_rows(day, shift)
    with web_client(base_url=url + "/api/v1") as client:
        made = client.post(f"/policies/{policy}/select?watch=true", json={"rows": rows}).json()
        ident = made["selection"]["id"]
        reviews = [
            {"candidate": row["candidate"], "qualified": n < qualified}
            for n, row in enumerate(made["shortlist"])
        ]
        client.post(f"/selections/{ident}/reviews", json={"reviews": reviews})
        return client.post(f"/selections/{ident}/finish", json={}).json()


def test_a_month_in_which_the_world_drifts(look, server):
    page = look.page
    url = server.url + "/api/v1/calibrate?k=5&pool_size=100&name=North"
    policy = httpx.post(url, content=csv_text(2000, labelled=True), headers=CSV, timeout=BUSY).json()["hash"]
    for day in range(1, 11):
        known = screen_and_review(server.url, policy, day, 6)
    assert known["standing"] == "too early to say"
    page.goto(server.url)
    look.check("worklist")
    with page.expect_navigation():
        page.get_by_role("link", name="North").first.click()
    assert "no alarm: it was promised that at least 5% of candidates are" in page.inner_text(".standing")
    look.check("policy-life")
    day = 10
    while known["standing"] != "alarm":
        day += 1
        known = screen_and_review(server.url, policy, day, 2, shift=0.01 * (day - 10))
    assert day < 30  # within the month
    page.reload()
    assert "withdrawn" in page.inner_text(".alert")
    assert page.locator("svg.chart").count() >= 3  # evidence, list length, drift
    assert page.locator("#file").count() == 0  # no pool can be brought any more
    look.check("policy-alarm")
    page.goto(server.url)
    look.check("worklist-alarm")
    page.get_by_role("link", name="Calibrate the same promise on fresh rows").first.click()
    page.wait_for_url("**/new?like=*")
    assert "is taken over" in page.inner_text(".notice")
    look.check("new-like")


def test_a_campaign_from_start_to_update(look, server, tmp_path):
    page = look.page
    (tmp_path / "past.csv").write_text(csv_text(2000, labelled=True))
    page.goto(server.url + "/campaigns/new")
    look.check("campaign-new")
    page.set_input_files("#file", str(tmp_path / "past.csv"))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/drafts/*")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/campaign")
    page.get_by_label("Updates after so many pools").fill("3, 30")
    page.get_by_label("Name", exact=True).fill("Autumn")
    page.get_by_label("Besides the list, review at random 1 in so many of the others").fill("8")
    look.check("campaign-terms")
    page.get_by_role("button", name="Start the campaign").click()
    page.wait_for_url("**/campaigns/*")
    where = page.url
    look.check("campaign-begun")
    for day in (1, 2, 3):
        truth = csv_text(400, labelled=True, seed=day).splitlines()
        (tmp_path / f"day-{day}.csv").write_text("\n".join(line.rpartition(",")[0] for line in truth))
        page.goto(where)
        page.set_input_files("#file", str(tmp_path / f"day-{day}.csv"))
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url("**/campaigns/pools/*")
        if day == 1:
            look.check("campaign-pool")
        page.get_by_role("button", name="Make the shortlist").click()
        page.wait_for_url("**/review")
        if day == 1:
            page.wait_for_selector(".keys:not([hidden])")
            press(page, "y")
            press(page, "u")
            look.check("campaign-review")
            page.goto(page.url.split("?")[0] + "?show=all")
            page.locator(".lines a").last.click()
            page.get_by_text("Not listed; drawn at random").wait_for()
        page.get_by_text("Reviewed elsewhere?").click()
        page.set_input_files("#file", reviewed(page, truth, tmp_path))
        page.get_by_role("button", name="Send").click()
        page.wait_for_url("**/review?show=all")
        page.get_by_role("button", name="Finish the review").click()
        page.wait_for_url("**/campaigns/*")
    assert "An update is due" in page.inner_text("main")
    assert "Drawn besides" in page.inner_text("#history")
    look.check("campaign-due")
    page.goto(server.url)
    assert "An update is due" in page.inner_text("main")
    page.goto(where)
    page.get_by_role("button", name="Update the threshold").click()
    page.wait_for_url("**#history")
    assert "List length over time" in page.inner_html("#history")
    look.check("campaign-updated")
    page.goto(server.url + "/campaigns")
    look.check("campaigns")


def reviewed(page, truth: list[str], folder: Path) -> str:
    """The list as it came back: every candidate on it with the truth."""
    known = {line.split(",")[0]: line.rpartition(",")[2] for line in truth[1:]}
    listed = httpx.get(page.url.split("?")[0] + "s.csv", timeout=BUSY).text.splitlines()[1:]
    rows = "".join(f"{each.split(',')[1]},{known[each.split(',')[1]]}\n" for each in listed)
    (folder / "reviewed.csv").write_text("candidate,review\n" + rows)
    return str(folder / "reviewed.csv")


def test_from_no_labels_to_a_certified_list(look, server, tmp_path):
    page = look.page
    scores, labels = examples.population(np.random.default_rng(6), 3000)
    rows = "".join(f"p{i:05d},{score:.9f},town {i % 7}\n" for i, score in enumerate(scores))
    (tmp_path / "people.csv").write_text("person,score,town\n" + rows)
    page.goto(server.url + "/labellings/new")
    look.check("labelling-new")
    page.set_input_files("#file", str(tmp_path / "people.csv"))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/collections/*")
    page.get_by_label("Labels you can give").fill("200")
    look.check("labelling-design")
    page.get_by_role("button", name="Draw whom to label").click()
    page.wait_for_url("**/labellings/*")
    where = page.url
    look.check("labelling-stage")
    for _ in range(3):
        page.get_by_role("link", name="Answer").click()
        page.wait_for_selector(".keys:not([hidden])")
        first = int(page.inner_text("#who")[1:])
        press(page, "y" if labels[first] else "n")
        ids = re.findall(r"p\d{5}", httpx.get(page.url.split("?")[0] + "s.csv", timeout=BUSY).text)
        text = "person,review\n" + "".join(
            f"{each},{int(labels[int(each[1:])])}\n" for each in dict.fromkeys(ids)
        )
        (tmp_path / "answers.csv").write_text(text)
        page.get_by_text("Labelled elsewhere?").click()
        page.set_input_files("#file", str(tmp_path / "answers.csv"))
        with page.expect_navigation():
            page.get_by_role("button", name="Send").click()
        page.goto(where)
        with page.expect_navigation():
            page.get_by_role("button", name="Let these answers count").click()
        if "This can be promised" in page.inner_text("main"):
            break
    assert "On average at least 5 of about " in page.inner_text(".promise-text")
    look.check("labelling-done")
    page.get_by_role("button", name="Save as a policy").click()
    page.wait_for_url("**/policies/*")
    look.check("policy-from-labelling")
