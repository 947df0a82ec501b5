"""Every example in the README and the docs runs, and prints what the page says it prints.

A ``python`` block runs in the page's own namespace, in an empty folder; a ``text`` block right after
it is its exact output. In a ``console`` block every line after ``$`` runs in a shell in that folder; the
lines below it are its exact output, as on a terminal (``...`` stands for anything). Other blocks are not run.
"""

from __future__ import annotations

import contextlib
import fnmatch
import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def fits(printed: str, said: str) -> bool:
    pattern = "".join(".*" if c == "…" else re.escape(c) for c in said.strip().replace("...", "…"))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


def shell(block: str, folder: Path, renew: bool) -> str:
    """Run the block; as it is, or with what was printed where that was to be written anew."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    modules = os.pathsep.join(
        [str(ROOT), os.environ.get("PYTHONPATH", "")]
    )  # `python -m paper` in a checkout
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        lines = part.split("\n")
        length = 1
        while lines[length - 1].endswith("\\"):
            length += 1
        command, said = "\n".join(lines[:length]), "\n".join(lines[length:]).strip()
        # behind a pipe the messages of both ends come in any order
        errors = subprocess.PIPE if " | " in command else subprocess.STDOUT
        run = subprocess.run(
            ["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True,
            env={**os.environ, "PATH": path, "PYTHONPATH": modules, "NO_COLOR": "1"},
        )  # fmt: skip
        assert run.returncode == 0 or said, f"{command}\n{run.stdout}"
        if said and renew and not fits(run.stdout, said):
            block = block.replace(said, run.stdout.strip())
        elif said:
            assert fits(run.stdout, said), f"{command}\nprinted:\n{run.stdout}\nthe page says:\n{said}"
    return block


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_examples_run_and_print_what_the_page_says(page, tmp_path, monkeypatch, renew):
    """With --renew, outputs that no longer fit are written anew."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed, text = None, page.read_text(encoding="utf-8")
    for kind, body in BLOCK.findall(text):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, str(page), "exec"), namespace)
            printed = out.getvalue()
            continue
        if kind == "text" and printed is not None:
            if renew and not fits(printed, body):
                text = text.replace(body, f"{printed.strip()}\n", 1)
            else:
                assert fits(printed, body), f"printed:\n{printed}\nthe page says:\n{body}"
        elif kind == "console":
            text = text.replace(body, shell(body, tmp_path, renew), 1)
        printed = None
    if renew:
        page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_and_pictures_exist(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text) + re.findall(r'src="([^"]+)"', text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_the_page_of_combinations_is_what_the_kinds_declare():
    """Made by `surelist promises > docs/combinations.md`."""
    from surelist.promises.proved import page

    same = (ROOT / "docs" / "combinations.md").read_text(encoding="utf-8") == page()
    assert same, "surelist promises > docs/combinations.md"


def test_every_declared_proof_is_a_section_of_the_contract():
    from surelist.promises import kinds

    contract = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    for kind in kinds.classes():
        for proved in kind.proved_with:
            assert f"{{#{proved.section}}}" in contract, (kind.__name__, proved.section)


@pytest.mark.parametrize("page", ["docs/design.md", "CONTRIBUTING.md"])
def test_names_in_the_architecture_exist(page):
    """A file or folder, or a name that the code or the tests use."""
    command = ["git", "ls-files", "src", "paper", "tests", "docs", "*.md"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.split()
    code = "\n".join((ROOT / each).read_text(encoding="utf-8") for each in files if each.endswith(".py"))
    folders = {str(parent) for each in files for parent in Path(each).parents}
    places = {each.removesuffix(".py") for each in files} | set(files) | folders
    for name in re.findall(r"`([\w/.]+)`", (ROOT / page).read_text(encoding="utf-8")):
        last = re.split(r"[/.]", name.strip("/"))[-1]
        is_place = any(f"/{each}".endswith(f"/{name.strip('/')}") for each in places)
        known = is_place or ("/" not in name and re.search(rf"\b{last}\b", code))
        assert known, f"{page}: {name}"


def test_public_functions_say_what_they_take_return_and_raise():
    import surelist as sl

    functions = [value for name in sl.__all__ if inspect.isfunction(value := getattr(sl, name))]
    assert len({each.__name__ for each in functions}) > 10
    for each in functions:
        said = inspect.getdoc(each) or ""
        for section in ("Parameters", "Returns", "Raises", "Examples"):
            assert f"{section}\n{'-' * len(section)}\n" in said, f"{each.__name__}: {section}"


def test_public_classes_say_what_they_hold():
    """Warnings, and errors that say nothing but their message, hold nothing."""
    import surelist as sl

    plain = {"SurelistError", "MissingDependency", "PolicyFileError"}
    for name in sl.__all__:
        value = getattr(sl, name)
        if inspect.isclass(value) and not issubclass(value, Warning) and name not in plain:
            assert "Parameters\n----------\n" in (inspect.getdoc(value) or ""), name


def test_every_command_is_in_the_docs():
    from surelist.cli import COMMANDS

    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in COMMANDS:
        assert f"surelist {name}" in text, name


def test_nothing_that_a_command_makes_is_tracked():
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout == ""


def test_pages_name_no_host_of_a_registry():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    for name in tracked:
        if (
            fnmatch.fnmatch(name, "*.txt")
            or fnmatch.fnmatch(name, "*.toml")
            or fnmatch.fnmatch(name, "*.json")
        ):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not re.search(r"https?://[^\s\"]*(pypi|pythonhosted|npmjs|debian)", text), name


BETTER_SAID = (
    "What nobody else has", "no longer a list than", "Where the rows cannot carry", "the rule is bent", "beside whom",
    "shorter lists for nothing", "where the walk", "says everything to a machine", "from another world", "Who reads the files",
    "where several hold something", "labelled, by a draw", "Only the first so many", "prove nothing here", "waiting is part of",
    "pay for themselves.", "a pool drawn first",
)  # fmt: skip


def test_what_slowed_readers_down_is_said_plainly():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    helps = [*sorted((ROOT / "src/surelist/cli").glob("*.py")), ROOT / "src/surelist/promises/options.py"]
    for path in (*pages, *helps, ROOT / "src/surelist/promises/phrases.py"):
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert [each for each in BETTER_SAID if each in text] == [], path
