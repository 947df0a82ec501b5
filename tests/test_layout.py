"""The floor plan, checked: who may import whom, and what importing surelist costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import surelist

SOURCE = Path(surelist.__file__).parent

# module: what it may import of the package (itself and errors/_version go without saying)
ALLOWED = {
    "errors": set(),
    "_version": set(),
    "_files": set(),
    "_strict": set(),
    "_validation": set(),
    "_crossing": set(),
    "bounds": {"_validation", "_crossing"},
    "targets": {"_validation", "bounds"},
    "ties": set(),
    "groups": {"_validation", "targets"},
    "wording": {"targets", "policy"},
    "policy": {"_validation", "bounds", "wording", "targets", "ties", "policy_file"},
    "policy_file": {"_files", "_strict", "first_crossing", "groups", "policy", "targets", "ties"},
    "calibration": {"_validation", "groups", "policy", "targets", "ties"},
    "curve": {"_validation", "bounds", "plots"},
    "audit": {"_validation", "bounds"},
    "profile": {"tables"},
    "charts": set(),
    "report": {"audit", "charts", "policy", "policy_file"},
    "estimator": {"_validation", "calibration", "policy"},
    "examples": set(),
    "first_crossing": {"_validation", "_crossing", "bounds"},
    "betting": set(),
    "_memory": set(),
    "_score_counts": set(),
    "looks": {"_validation", "_score_counts", "bounds", "targets"},
    "reviews": {"_validation"},
    "monitoring": {"_validation", "_memory", "betting", "policy", "targets", "wording", "monitor_file"},
    "drifting": {"_validation", "wording"},
    "adaptive": {
        "_validation",
        "_memory",
        "_score_counts",
        "calibration",
        "first_crossing",
        "looks",
        "monitoring",
        "policy",
        "reviews",
        "targets",
        "campaign_file",
    },
    "populations": {"_validation"},
    "planning": {"_validation", "bounds", "populations", "targets", "plan_text", "living_plots"},
    "baselines/results": {"_validation"},
    "baselines/binning": {"_validation", "bounds", "baselines", "targets"},
    "baselines/oracles": {"_validation", "baselines", "targets"},
    "baselines/impossible": {"_validation", "baselines"},
    "baselines/unguaranteed": {"_validation", "baselines", "targets"},
    "baselines/regression": {"_validation", "bounds", "baselines"},
}
# what the paper may import; everything else comes from surelist itself
PAPER = {"paper", "baselines", "groups", "errors", "_files", "_validation", "_version"}
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
NUMBERS_ONLY = {
    "bounds",
    "targets",
    "policy",
    "calibration",
    "groups",
    "curve",
    "ties",
    "wording",
    "_crossing",
    "first_crossing",
    "betting",
    "_memory",
    "_score_counts",
    "looks",
    "reviews",
    "monitoring",
    "drifting",
    "adaptive",
    "populations",
    "planning",
}
BANNED = {
    module: {"pandas", "polars", "pyarrow", "duckdb", "narwhals", "sklearn", "pickle"}
    for module in NUMBERS_ONLY
}


def imports(module: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse((SOURCE / f"{module}.py").read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "surelist":
                found |= {f"surelist.{alias.name}" for alias in node.names}
            else:
                found.add(node.module)
    return found


@pytest.mark.parametrize("module", ALLOWED)
def test_modules_import_only_what_the_plan_allows(module):
    own = {name.split(".")[1] for name in imports(module) if name.startswith("surelist.")}
    assert own <= ALLOWED[module] | {"errors", "_version"}


@pytest.mark.parametrize("module", sorted(BANNED))
def test_statistics_know_nothing_of_tables(module):
    assert not {name.split(".")[0] for name in imports(module)} & BANNED[module]


def test_the_paper_uses_the_public_api():
    for path in (SOURCE / "paper").glob("*.py"):
        own = {name.split(".")[1] for name in imports(f"paper/{path.stem}") if name.startswith("surelist.")}
        assert own <= PAPER, path


def test_the_command_line_does_not_compute():
    for path in (SOURCE / "cli").glob("*.py"):
        names = {
            getattr(node, "module", None) or node.names[0].name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        assert not {"numpy", "scipy", "surelist.bounds"} & names, path


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
    from surelist import _LATE

    assert set(surelist.__all__) == set(_LATE) | {"baselines", "bounds", "__version__"}
    for name in surelist.__all__:
        assert getattr(surelist, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = surelist.nonsense


def test_every_public_name_has_a_docstring():
    for name in surelist.__all__:
        if name != "__version__":
            assert (getattr(surelist, name).__doc__ or "").strip(), name
