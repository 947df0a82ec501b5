"""The documentation site: it builds without a warning, needs no network, and every public name has a page with an example."""

from __future__ import annotations

import doctest
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surelist as sl

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NAMES = [name for name in sl.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(sl, name)) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples, f"{name}: no example in its docstring"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_reference_lists_every_public_name():
    page = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   (\w+)$", page, re.M))
    assert listed == set(NAMES), "a public name is missing in docs/reference/index.md, or is no more"


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [each for each in NOTEBOOKS if each.stem != "spark"], ids=lambda path: path.stem
)
def test_the_notebooks_run(path, tmp_path, monkeypatch):
    """The site runs them as Jupyter does, the one on Spark too: `make exhaustive`."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), namespace)


@pytest.mark.slow
@pytest.mark.parametrize("notebooks", ["off", pytest.param("cache", marks=pytest.mark.exhaustive)])
def test_the_site_builds_strictly_and_needs_no_network(notebooks, tmp_path):
    """A warning or a broken link fails; with the notebooks run as Jupyter does, an exception in a cell too."""
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "trees"),
         "-D", f"nb_execution_mode={notebooks}", "-D", f"nb_execution_cache_path={tmp_path / 'cache'}", "docs", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    site = tmp_path / "site"
    assert (site / "searchindex.js").exists()
    for name in NAMES:
        assert (site / "reference" / "names" / f"surelist.{name}.html").exists(), name
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|source|iframe)[^>]*\ssrc="(\w+:)?//', text)
        loaded += re.findall(r'<link[^>]*\shref="(?:\w+:)?//', text)
        assert not loaded, f"{page.name} loads something from elsewhere"


def test_surelist_docs_says_where_it_is_or_how_to_get_it(monkeypatch, tmp_path, capsys):
    from surelist.cli import run, site

    monkeypatch.setattr(site, "SITE", tmp_path / "index.html")
    assert run(["docs", "--no-open"]) == 2
    assert "make docs" in capsys.readouterr().err
    (tmp_path / "index.html").write_text("")
    assert run(["docs", "--no-open"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "index.html")
