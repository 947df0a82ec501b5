"""One set of helpers and fixtures for every package; the tests' folders mirror the packages."""

import gc
import sys
from collections.abc import Iterator

import pytest

pytest_plugins = [
    "tests.helpers.randomness",
    "tests.helpers.engines",
    "tests.helpers.service",
    "tests.helpers.browser",
    "tests.helpers.slow",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="Write golden files and printed outputs anew.")


@pytest.fixture
def renew(request: pytest.FixtureRequest) -> bool:
    """Whether what is pinned is to be written anew instead of compared: `make golden`."""
    return bool(request.config.getoption("--renew"))


def pytest_collection_finish() -> None:
    """What is loaded stays: collections between thousands of tests need not walk through it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _pictures_are_closed() -> Iterator[None]:
    """Pictures for a screen stay open until somebody closes them, and matplotlib warns of too many."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")
