"""Two people review one list in real headless Chromium and disagree: one with keys, one without script, by keyboard alone."""

from __future__ import annotations

import re

import pytest

from tests.helpers.browser import new_context, press
from tests.helpers.furnished import CSV, screen, serve
from tests.helpers.service import csv_text

FOCUS = """() => { const at = document.activeElement, style = getComputedStyle(at);
  const drop = at.closest('.drop');
  const seen = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none';
  return [at.tagName + ' ' + (at.id || at.innerText || at.value || '').slice(0, 40), seen || !!drop]; }"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    server, anna = serve(tmp_path_factory.mktemp("service"))
    try:
        past = csv_text(2000, labelled=True)
        made = anna.client.post("/api/v1/calibrate?k=5&pool_size=100&name=Trial", content=past, headers=CSV)
        shortlist = screen(anna, f"/policies/{made.json()['hash']}", 1, rows=300)
        token = anna.post("/team/tokens", name="Ben", role="operator", once="ben").text
        yield server.url, anna, shortlist, re.search(r'value="(surelist_[^"]+)"', token)[1]
    finally:
        anna.client.close()
        server.stop()


def tab_to(page, target: str) -> None:
    """Press Tab until this is in focus; every stop on the way shows that it is."""
    wanted = page.locator(target).first.element_handle()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, seen = page.evaluate(FOCUS)
        assert seen, f"{name} does not show that it is in focus on {page.url}"
        if page.evaluate("each => each === document.activeElement", wanted):
            return
    raise AssertionError(f"Tab does not lead to {target} on {page.url}")


def enter(page, target: str) -> None:
    tab_to(page, target)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_two_who_disagree(browser, look, service):
    url, anna, shortlist, token = service
    context = new_context(browser, java_script_enabled=False)
    ben = context.new_page()
    ben.goto(f"{url}{shortlist}/review")
    tab_to(ben, "#token")
    ben.keyboard.type(token)
    with ben.expect_navigation():
        ben.keyboard.press("Enter")
    assert ben.url == f"{url}{shortlist}/review"  # back to where he was
    assert "Ben operator" in " ".join(ben.inner_text(".who").split())
    for value in ("no", "yes", "no"):
        enter(ben, f".decide button[value={value}]")
    assert "3 of " in ben.inner_text(".counts")

    page = look.page
    page.context.add_cookies([{"name": "surelist", "value": anna.cookie, "url": url}])
    page.goto(f"{url}{shortlist}/review?show=all")
    page.wait_for_selector(".keys:not([hidden])")
    assert "You see how once you have marked it yourself" in page.inner_text("#candidate")
    for _ in range(3):
        press(page, "y")
    assert "2 disagreements" in page.inner_text(".counts")
    page.get_by_label("Show").select_option("split")
    with page.expect_navigation():
        page.get_by_role("button", name="Apply").click()
    assert page.locator(".lines li").count() == 2
    assert "reviewers disagree" in page.inner_text("#candidate")
    assert [each.split()[0] for each in page.locator(".marks li").all_inner_texts()] == ["no", "yes"]
    look.check("disagreements")
    page.get_by_role("button", name="Settle as yes").click()
    page.wait_for_selector("text=1 disagreement")
    assert page.locator(".lines li").count() == 1

    ben.goto(f"{url}{shortlist}/review?show=split")
    assert "reviewers disagree" in ben.inner_text("#candidate")
    enter(ben, "button[value=settle-no]")
    assert "disagreement" not in ben.inner_text(".counts")
    ben.goto(f"{url}{shortlist}/review?show=all&at=1")
    assert "yes, settled" in ben.inner_text(".marks")
    look.check("settled")
    context.close()
    page.goto(f"{url}/record?kind=reviews")
    told = page.inner_text(".story")
    assert "Ben settled 1 disagreement (0 as qualified), in Day 1." in told
    assert "Anna settled 1 disagreement (1 as qualified), in Day 1." in told
