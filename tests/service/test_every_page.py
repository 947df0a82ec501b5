"""Every page of the service in real headless Chromium: axe finds nothing, in light and in dark.

A page counts as visited when its template was shown; one that nobody visits fails the test.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import surelist.service
from surelist.service.app import create_app
from surelist.service.settings import Settings
from tests.helpers.browser import SIZES, new_context, said, violations
from tests.helpers.furnished import furnish, serve
from tests.helpers.service import close, operations
from tests.service.test_page_words import check

TEMPLATES = Path(surelist.service.__file__).parent / "templates"
NO_PAGES = ("/api", "/healthz", "/readyz", "/metrics", "/template", "/logout")
NO_PAGE_ENDS = (".json", ".csv", ".xlsx", ".pdf", ".{format}")


def templates() -> set[str]:
    """Those that are whole pages."""
    return {each.stem for each in TEMPLATES.glob("*.html") if "{% extends" in each.read_text()}


def routes(tmp_path: Path) -> set[str]:
    """The addresses of pages."""
    app = create_app(Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "d"))
    close(app)
    paths = {path for method, path in operations(app) if method == "GET"}
    return {path for path in paths if not path.startswith(NO_PAGES) and not path.endswith(NO_PAGE_ENDS)}


class Walk:
    """Pages looked at one after the other, and what was wrong with them."""

    def __init__(self, page, url: str, pictures: Path) -> None:
        self.page, self.url, self.pictures = page, url, pictures
        self.seen, self.paths = set[str](), set[str]()
        self.problems: list[object] = []
        page.on("pageerror", lambda error: self.problems.append((page.url, str(error))))

    def visit(self, path: str) -> None:
        answer = self.page.goto(self.url + path)
        assert answer.status in (200, 404), (path, answer.status)
        self.paths.add(path.partition("?")[0])
        self.check(path)

    def check(self, name: str) -> None:
        shown = self.page.evaluate("document.body.dataset.template")
        self.seen |= {shown} if shown else set()
        for summary in self.page.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.evaluate("each => each.parentElement.open = true")
        found = violations(self.page)
        self.page.set_viewport_size(SIZES["phone"])
        wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        self.picture(f"{shown or 'other'}-phone-dark")
        self.page.set_viewport_size(SIZES["desktop"])
        self.page.emulate_media(color_scheme="light")
        self.picture(f"{shown or 'other'}-desktop")
        self.problems += [(name, *each) for each in said(found)]
        self.problems += [(name, "overflows by", wide)] if wide > 0 else []

    def picture(self, name: str) -> None:
        if os.environ.get("SURELIST_SCREENSHOTS"):
            self.page.screenshot(path=str(self.pictures / f"{name}.png"), full_page=True)


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    server, anna = serve(tmp_path_factory.mktemp("service"))
    try:
        yield server.url, anna, furnish(anna)
    finally:
        anna.client.close()
        server.stop()


@pytest.mark.slow
def test_axe_finds_nothing_on_any_page_in_light_and_dark(browser, furnished, pictures, tmp_path):
    url, anna, pages = furnished
    context = new_context(browser, viewport=SIZES["desktop"])
    walk = Walk(context.new_page(), url, pictures)
    walk.visit("/login?next=/policies")
    context.add_cookies([{"name": "surelist", "value": anna.cookie, "url": url}])
    fixed = {path for path in routes(tmp_path) if "{" not in path} - {"/login", "/policies/compare"}
    for path in [*sorted(fixed), *pages.values(), "/policies/nothing"]:
        walk.visit(path)
    for path, button, name in (
        ("/team", "Make a token", "Ben"), ("/record", "Verify now", None)
    ):  # fmt: skip
        walk.page.goto(url + path)
        if name:
            walk.page.get_by_label("Name", exact=True).fill(name)
        with walk.page.expect_navigation():
            walk.page.get_by_role("button", name=button).click()
        walk.check(f"{path}, {button}")
    context.close()
    assert walk.problems == []
    assert templates() - walk.seen == set()  # pages that nobody visited
    known = routes(tmp_path)
    assert {each for each in known if not any(_fits(each, path) for path in walk.paths)} == set()


@pytest.mark.slow
def test_no_insiders_word_on_any_page(furnished):
    """Closed details aside; campaigns, a policy that was withdrawn and the verified record included."""
    _, anna, pages = furnished
    said = {name: check(anna.get(path)) for name, path in pages.items() if "report" not in name}
    said["verified"] = check(anna.post("/record/verify"))
    assert "Nothing is promised any more" in said["policy 4"]
    assert "Also reviewed, of the others" in said["campaign"]
    assert "Review also, of those who are not listed" in said["recall pool"]
    assert "entries" in said["verified"]


def _fits(route: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(route)), path) is not None
