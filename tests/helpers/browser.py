"""Real headless Chromium, one for each worker, and what is looked at on every page.

Screenshots go to ``SURELIST_SCREENSHOTS``, if it is set, so that a person can look.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SIZES = {"desktop": {"width": 1200, "height": 900}, "phone": {"width": 390, "height": 844}}
# all animations have come to their end: colours that still fade into others are nobody's
REST = "Promise.allSettled(document.getAnimations().map(each => each.finished))"
PATIENCE = 600_000  # milliseconds
EVERYTHING = {"resultTypes": ["violations"]}
# what a dark scheme changes: the rules about colours that axe applies unasked
COLOURS = {**EVERYTHING, "runOnly": ["color-contrast", "link-in-text-block"]}
_running = ExitStack()
_found: list[Any] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Playwright keeps an event loop in this thread, where others start their own: it ends before them."""
    if "browser" not in getattr(item, "fixturenames", ()):
        _close()


def pytest_sessionfinish() -> None:
    _close()


def _close() -> None:
    _found.clear()
    _running.close()


@pytest.fixture
def browser() -> Any:
    """The browser of this worker; tests make contexts of their own and close them."""
    from playwright.sync_api import sync_playwright

    from tests.helpers.service import missing  # a plugin of its own

    if not _found:
        if (path := shutil.which("chromium")) is None:
            missing("Chromium")
        playwright = _running.enter_context(sync_playwright())
        started = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        _running.callback(started.close)
        _found.append(started)
    return _found[0]


def new_context(browser: Any, **options: Any) -> Any:
    """Pages of one person; other programs may keep the machine or its disk busy."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("SURELIST_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def violations(page: Any) -> list[dict[str, Any]]:
    """What axe finds on a page in light and, where colours are concerned, in dark; it is left in the dark."""
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme="light")
    page.evaluate(REST)
    found = Axe().run(page, options=EVERYTHING).response["violations"]
    page.emulate_media(color_scheme="dark")
    page.evaluate(REST)
    return found + page.evaluate("each => axe.run(each)", COLOURS)["violations"]


def said(found: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Each violation and where it is."""
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


def press(page: Any, key: str) -> None:
    """A key, and the page that follows."""
    page.evaluate("document.querySelector('.work').dataset.before = ''")
    page.keyboard.press(key)
    page.wait_for_selector(".work:not([data-before])")


class Look:
    """Every page is checked as it appears: no script errors, no overflow, no serious axe findings."""

    def __init__(self, page: Any, pictures: Path) -> None:
        self.page, self.pictures = page, pictures
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda told: self.errors.append(told.text) if told.type == "error" else None)
        page.on("request", self._stays_here)

    def _stays_here(self, request: Any) -> None:
        if "127.0.0.1" not in request.url and not request.url.startswith(("data:", "blob:")):
            self.errors.append(request.url)

    def check(self, name: str) -> None:
        self.page.set_viewport_size(SIZES["phone"])
        serious = [each for each in violations(self.page) if each["impact"] in ("serious", "critical")]
        assert serious == [], (name, said(serious))
        for scheme in ("dark", "light"):
            self.page.emulate_media(color_scheme=scheme)
            for size in ("phone", "desktop"):
                self.page.set_viewport_size(SIZES[size])
                wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"{name} overflows by {wide} px on a {size}"
                if os.environ.get("SURELIST_SCREENSHOTS"):
                    picture = self.pictures / f"{name}-{size}-{scheme}.png"
                    self.page.screenshot(path=str(picture), full_page=True)
        assert self.errors == []


@pytest.fixture
def look(browser: Any, pictures: Path) -> Any:
    context = new_context(browser, viewport=SIZES["desktop"], accept_downloads=True)
    yield Look(context.new_page(), pictures)
    context.close()
