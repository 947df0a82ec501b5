"""No test fails by chance: what promises draw is seeded by the name of the test, in its processes too.

What a shared fixture or a module draws while it is made is seeded by its own name: it is the same whichever test
comes first. Tests marked ``fresh_randomness`` get the system's. Examples of Hypothesis are the same in every run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from surelist import _randomness
from tests.helpers.seeded import sitecustomize
from tests.helpers.seeded.sitecustomize import FOLDER, Draws

settings.register_profile("same in every run", derandomize=True, deadline=None, database=None)
settings.load_profile("same in every run")


@contextmanager
def seeded(name: str) -> Iterator[None]:
    """Inside, draws depend on ``name`` alone; with no name they are fresh from the system."""
    if not isinstance(draws := _randomness._system, Draws):
        raise RuntimeError("the plugin tests.helpers.randomness is not loaded")
    outer, draws.test = draws.test, name
    draws.forget(name)
    try:
        yield
    finally:
        draws.test = outer


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fresh_randomness: about randomness from the system; computes its chance of failing, below 1e-9",
    )
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a file is written at every test
    folder = tempfile.mkdtemp(prefix="surelist-randomness-", dir=memory)
    before = {name: os.environ.get(name) for name in (FOLDER, "PYTHONPATH")}
    os.environ[FOLDER] = folder
    mine = str(Path(sitecustomize.__file__).parent)
    others = [each for each in (before["PYTHONPATH"] or "").split(os.pathsep) if each and each != mine]
    os.environ["PYTHONPATH"] = os.pathsep.join([mine, *others])
    draws = Draws(folder, os.getpid())
    draws.test = "between tests"
    system, _randomness._system = _randomness._system, draws

    def undo() -> None:
        _randomness._system = system
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(undo)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    with seeded(f"collection of {collector.nodeid}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    if fixturedef.scope == "function":
        return (yield)
    with seeded(f"fixture {fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    with seeded("" if item.get_closest_marker("fresh_randomness") else item.nodeid):
        return (yield)
