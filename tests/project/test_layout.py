"""The layers, checked by folder: who may import whom, and what importing surelist costs."""

from __future__ import annotations

import ast
import functools
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import surelist
from surelist.promises.kinds import KINDS, PROOFS

SOURCE = Path(surelist.__file__).parent

EVERYWHERE = {
    "errors",
    "_arrays",
    "_check",
    "_files",
    "_names",
    "_numerals",
    "_randomness",
    "_scalars",
    "_version",
}
# layer: the layers below it. A layer is a folder of the package, or a module that lies in no folder.
PLAN = {
    "errors": set(),
    "_arrays": set(),
    "_check": set(),
    "_files": set(),
    "_names": set(),
    "_numerals": set(),
    "_randomness": set(),
    "_scalars": set(),
    "_version": set(),
    "score_summary": set(),
    "examples": set(),
    "bounds": set(),
    "drawing": set(),
    "filters": set(),
    "promises": {"bounds", "drawing", "filters", "score_summary"},
    "lifecycle": {"bounds", "promises", "drawing", "filters"},
    "tables": {"drawing", "filters", "score_summary"},
    "reports": {"bounds", "promises", "drawing", "score_summary"},
    "estimator": {"promises"},
    "workflows": {"promises", "lifecycle", "tables", "reports", "filters", "examples"},
    "service": {"workflows", "reports", "promises"},
    "cli": {"workflows", "service", "promises", "drawing"},
    "__main__": {"cli"},
    "__init__": {"public"},
}
NUMBERS_ONLY = (
    "bounds",
    "promises",
    "lifecycle",
    "drawing",
    "filters",
    "score_summary",
    "_arrays",
    "_check",
    "_randomness",
)
TABLES = {"pandas", "polars", "pyarrow", "duckdb", "narwhals", "sklearn", "pickle"}
HEAVY = {
    "pandas",
    "polars",
    "pyarrow",
    "sklearn",
    "matplotlib",
    "fastapi",
    "pyspark",
    "duckdb",
    "scipy.stats",
}


@functools.cache
def modules() -> list[str]:
    """Every module of the package by its dotted name below ``surelist``."""
    paths = (path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


@functools.cache
def source_of(module: str) -> ast.Module:
    path = SOURCE / module.replace(".", "/")
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())


def layer_of(module: str) -> str:
    return module.partition(".")[0]


def imported(module: str, *, typing: bool = False) -> Iterator[str]:
    """What a module imports, inside functions too; ``typing`` adds what only type checkers read."""
    return _imports(source_of(module), typing)


def _imports(node: ast.AST, typing: bool) -> Iterator[str]:
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING" and not typing:
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from _imports(child, typing)


def own_modules(module: str) -> Iterator[str]:
    """The modules of ours that a module imports; ``public`` stands for names of ``surelist`` itself."""
    known = set(modules())
    by_kind = {f"surelist.promises.kinds.{each}" for each, _ in (*KINDS.values(), *PROOFS.values())}
    for name in (*imported(module), *(by_kind if module == "promises.kinds" else ())):  # imported by tables
        if name.partition(".")[0] != "surelist":
            continue
        inside = name.removeprefix("surelist").removeprefix(".")
        while inside and inside not in known:
            inside = inside.rpartition(".")[0]
        yield inside or "public"


def found_in(modules: Iterable[str], search: Callable[[str], Iterable[str]]) -> dict[str, set[str]]:
    """What was found, by module; modules without a finding are left out."""
    return {module: found for module in modules if (found := set(search(module)))}


def strangers(module: str) -> set[str]:
    """What a module imports of ours that lies in no layer below its own."""
    own = layer_of(module)
    below = PLAN[own] | EVERYWHERE | {own}
    return {each for each in own_modules(module) if layer_of(each) not in below}


def test_a_layer_imports_only_layers_below_it():
    assert found_in(modules(), strangers) == {}


def test_a_wrong_import_is_noticed(monkeypatch):
    wrong = ast.parse("def f():\n    from surelist.promises import policy\n")
    monkeypatch.setattr(sys.modules[__name__], "source_of", lambda module: wrong)
    assert strangers("tables.shortlist") == {"promises.policy"}
    assert not strangers("lifecycle.monitor")


def test_the_paper_uses_surelist_by_its_public_names():
    """And surelist knows nothing of it: it is not installed."""
    papers = [ast.parse(path.read_text()) for path in (SOURCE.parents[1] / "paper").rglob("*.py")]
    used = {name for tree in papers for name in _imports(tree, typing=True) if name.startswith("surelist")}
    assert used == {"surelist"}
    assert (
        found_in(modules(), lambda each: {name for name in imported(each) if name.startswith("paper")}) == {}
    )


def test_no_cycle_between_modules():
    graph = {module: set(own_modules(module)) - {"public", module} for module in modules()}
    while free := [module for module in graph if not graph[module] & graph.keys()]:
        for module in free:
            del graph[module]
    assert not graph, {module: sorted(graph[module] & graph.keys()) for module in graph}


def test_statistics_know_nothing_of_tables():
    numbers_only = [each for each in modules() if layer_of(each) in NUMBERS_ONLY]
    assert found_in(numbers_only, lambda each: {name.split(".")[0] for name in imported(each)} & TABLES) == {}


def test_the_command_line_does_not_compute():
    for module in modules():
        if layer_of(module) == "cli":
            assert not {name.split(".")[0] for name in imported(module)} & {"numpy", "scipy"}, module


# the kinds themselves, the public names, and what uses promises as a user does
USERS = ("promises.kinds", "__init__", "examples", "workflows.demo")
NOT_KINDS = {"labels", "role", "field"}  # what these are compared with says nothing of a promise


def knows_a_promise(module: str) -> set[str]:
    """Where a module names a class of promise, or compares the name of a kind."""
    tree, classes = source_of(module), {name for _, name in KINDS.values()}
    found = set()
    for node in ast.walk(tree):
        named = {
            ast.ImportFrom: lambda at: {alias.name for alias in at.names},
            ast.Name: lambda at: {at.id},
            ast.Attribute: lambda at: {at.attr},
        }.get(type(node), lambda at: set())(node)
        found |= named & classes
        if isinstance(node, ast.Compare | ast.MatchValue):
            words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if words & (KINDS.keys() | PROOFS.keys()) and not (words | names) & NOT_KINDS:
                found.add(ast.unparse(node))
    return found


def test_only_its_own_module_knows_a_promise():
    assert found_in((each for each in modules() if not each.startswith(USERS)), knows_a_promise) == {}


@pytest.mark.parametrize(
    "code",
    [
        "from surelist.promises.kinds.recall import Recall",
        "import surelist as sl\nisinstance(target, sl.PerPool)",
        "target.kind == 'next-pool'",
        "asked['promise'] in ('expected', 'per-pool')",
        "match kind:\n    case 'value':\n        pass",
    ],
)
def test_a_module_that_asks_which_promise_it_is_is_noticed(code, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "source_of", lambda module: ast.parse(code))
    assert knows_a_promise("service.wizard")


def test_every_module_lies_in_a_layer_of_the_plan():
    assert {layer_of(module) for module in modules()} <= PLAN.keys()


def definitions(*kinds: type[ast.AST]) -> Iterator[tuple[str, Any]]:
    for module in modules():
        for node in ast.walk(source_of(module)):
            if isinstance(node, kinds):
                yield module, node


def length(node: Any) -> int:
    """Lines of a function, its manual (the docstring) not counted."""
    manual = ast.get_docstring(node, clean=False)
    return int(node.end_lineno - node.lineno + 1 - (manual.count("\n") + 1 if manual else 0))


def test_files_and_functions_stay_small():
    long = {path.name: n for path in SOURCE.rglob("*.py") if (n := len(path.read_text().splitlines())) > 400}
    assert not long
    functions = definitions(ast.FunctionDef, ast.AsyncFunctionDef)
    lines = {(module, node.name): length(node) for module, node in functions}
    assert not {where: n for where, n in lines.items() if n > 60}
    assert statistics.median(lines.values()) <= 7


def test_types_are_said():
    """``Any`` is for what other libraries hand over without a type."""
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert len(re.findall(r"\bAny\b", text)) < 600
    assert text.count("dict[str, Any]") < 120


def test_no_two_classes_have_one_name():
    where: dict[str, set[str]] = {}
    for module, node in definitions(ast.ClassDef):
        where.setdefault(node.name, set()).add(module)
    assert not {name: homes for name, homes in where.items() if len(homes) > 1}


def test_every_module_says_what_lives_in_it():
    assert not [module for module in modules() if not ast.get_docstring(source_of(module))]


def test_every_room_says_its_rule_in_one_sentence():
    for module in modules():
        if (SOURCE / module.replace(".", "/")).is_dir():
            assert (ast.get_docstring(source_of(module)) or "").strip(), module


def loaded_after(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint('\\n'.join(sys.modules))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(run.stdout.split())


def test_importing_surelist_is_light():
    assert not loaded_after("import surelist") & (HEAVY | {"numpy", "scipy"})
    assert (
        not loaded_after("import surelist; surelist.calibrate; surelist.Policy; surelist.guarantee_curve")
        & HEAVY
    )


def test_public_names_are_complete():
    """The stub that type checkers and editors read has the names of the module that Python reads."""
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    lines = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    typed = {name.asname: each.module for each in lines for name in each.names}
    assert set(surelist.__all__) == set(typed)
    for name, module in typed.items():
        assert getattr(surelist, name) is getattr(import_module(str(module)), name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = getattr(surelist, "nonsense")  # noqa: B009


def test_every_public_name_has_a_docstring():
    for name in surelist.__all__:
        if name != "__version__":
            assert (getattr(surelist, name).__doc__ or "").strip(), name


FAULTS = ("InvalidInput", "PolicyFileError", "WrongType", "SheetNeeded", "FieldError")


def test_an_error_says_its_field_apart_from_its_sentence():
    for module in modules():
        for node in ast.walk(source_of(module)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "InvalidInput",
                "PolicyFileError",
            ):
                known = len(node.args) == 2 or {"expected", "got"} <= {each.arg for each in node.keywords}
                assert known, f"{module}:{node.lineno}"
