"""Where randomness comes from: promises draw through one function, tests replace it there, nothing else is left to chance."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import surelist as sl
from surelist._randomness import fresh_bits, fresh_bytes
from surelist.examples import population
from surelist.filters import Salt
from surelist.lifecycle.reviewed import coins
from surelist.promises.sampled import Draw
from tests.helpers.randomness import seeded
from tests.project.test_layout import found_in, modules, source_of

TESTS = Path(__file__).parents[1]
# tokens, cookies, ids and names of files: no promise rests on them
SECRETS = {
    "_files",
    "cli.service",
    "service.jobs",
    "service.record.access",
    "service.visitor",
    "service.team_pages",
    "service.uploads",
    "tables.engines.duckdb",
}
TOKENS = {"secrets.token_hex", "secrets.token_urlsafe"}
SEEDED = {"Generator", "default_rng"}  # of numpy.random; the latter with a seed
FRESH = re.compile(r"(secrets|random|uuid|os\.(urandom|getrandom)|([\w.]*\.)?SystemRandom)(\.|$)")
IN_SQL = re.compile(
    r"\b(random|rand|randn|uuid|gen_random_uuid|setseed)\(\)|\b(tablesample|using sample)\b", re.I
)


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def unseeded(module: str) -> Iterator[str]:
    """Every use of randomness in a module that starts from no seed."""
    tree = source_of(module)
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "numpy", "random", "secrets", "uuid"):
            names = (f"{node.module}.{each.name}" for each in node.names)
            yield from (name for name in names if FRESH.match(name) or name == "numpy.random")
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            yield from (f"numpy.random.{each.name}" for each in node.names if each.name not in SEEDED)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if FRESH.match(each.name) and each.name != "secrets")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and IN_SQL.search(node.value):
            yield node.value
        elif isinstance(node, (ast.Attribute, ast.Name)):
            name = dotted(node)
            call = called.get(id(node))
            if name.endswith("default_rng"):
                first = call.args[0] if call and call.args else None
                if call and (first is None or (isinstance(first, ast.Constant) and first.value is None)):
                    yield f"{name}()"
            elif re.match(r"(np|numpy)\.random\.\w+$", name):
                if name.rpartition(".")[2] not in SEEDED:
                    yield name
            elif FRESH.match(name) and "." in name:
                yield name


@pytest.mark.slow
def test_promises_draw_through_one_function():
    """Tokens, cookies, ids and names of files alone may use ``secrets``; each that may still does."""
    found = found_in((each for each in modules() if each != "_randomness"), unseeded)
    assert {module for module, names in found.items() if names & TOKENS} == SECRETS
    assert {module: names - TOKENS for module, names in found.items() if names - TOKENS} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\nrng = np.random.default_rng()",
        "import numpy as np\nrng = np.random.default_rng(None)",
        "from numpy.random import default_rng\nrng = default_rng()",
        "import numpy as np\nx = np.random.rand(3)",
        "import numpy as np\nx = np.random.SeedSequence().entropy",
        "import numpy as np\nx = np.random.PCG64()",
        "from numpy import random\nx = random.rand(3)",
        "from numpy.random import SeedSequence",
        "import secrets\nx = secrets.randbits(53)",
        "from secrets import randbits",
        "import os\nx = os.urandom(8)",
        "from os import urandom",
        "import random",
        "def f():\n    from random import SystemRandom",
        "import uuid",
        "x = 'SELECT random() FROM t'",
    ],
)
def test_another_source_of_randomness_is_noticed(monkeypatch, code):
    monkeypatch.setitem(globals(), "source_of", lambda module: ast.parse(code))
    assert set(unseeded("promises.shift")) - TOKENS


MAKES_ONE = re.compile(r"^\w+ = (np\.random\.default_rng|random\.Random)\(", re.M)


def shared_generators(code: str) -> Iterator[str]:
    """Functions that draw from a generator of their module: what they get depends on which tests ran before."""
    tree = ast.parse(code)
    made = {
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        and dotted(node.value.func) in ("np.random.default_rng", "random.Random")
        for name in node.targets
        if isinstance(name, ast.Name)
    }  # fmt: skip
    for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)):
        names = [each for each in ast.walk(function) if isinstance(each, ast.Name)]
        own = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
        own |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
        yield from (f"{function.name}: {each.id}" for each in names if each.id in made - own)


def test_no_test_draws_from_a_generator_that_others_draw_from():
    """Which tests a process runs, and in which order, is another in every run."""
    code = "import numpy as np\nrng = np.random.default_rng(1)\nx = rng.random()\n"
    assert [*shared_generators(code + "def one(): return rng.random()")] == ["one: rng"]
    assert [
        *shared_generators(code + "def one(rng): return rng.random()\ndef two(): rng = 1; return rng")
    ] == []
    files = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    assert {
        str(path): found
        for path, text in files.items()
        if MAKES_ONE.search(text) and (found := [*shared_generators(text)])
    } == {}


CODE = "from surelist._randomness import fresh_bytes; print(fresh_bytes().hex())"
FRESH_CHANCE = 2.0**-256  # that two fresh draws of 32 bytes are the same


def drawn_by_a_process(**environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    return run.stdout.strip()


def every_kind_of_draw() -> dict[str, object]:
    """What each promise that draws has drawn."""
    scores, labels = population(np.random.default_rng(3), 2_000)
    target = sl.Expected(5, 100)
    weighted = sl.calibrate(scores, labels, target, shift=sl.DensityRatio(1 - scores / 2, 1.0))
    return {
        "thinning": weighted.shift.seed,
        "bets": Draw.fresh().key,
        "ties": Salt.draw().key,
        "labelling": sl.Labelling(scores, target, labels=200).ask().tolist(),
        "stop test": sl.StopTest(50, 2_000, 0.9).ask().tolist(),
        "validation": sl.Validation([1] * 300 + [0] * 700, 0.8, sample=100).ask().tolist(),
        "audit": coins(100).tolist(),
    }


def test_in_tests_promises_draw_what_the_tests_name_says():
    def drawn_in(name: str) -> tuple[list[dict[str, object]], list[str]]:
        with seeded(name):
            return [every_kind_of_draw() for _ in range(2)], [drawn_by_a_process() for _ in range(2)]

    (one, two), processes = first = drawn_in("a test")
    (other, _), others = drawn_in("another")
    assert drawn_in("a test") == first
    assert not [kind for kind in one if one[kind] in (two[kind], other[kind])]
    assert len({*processes, *others}) == 4


def test_a_fork_draws_other_numbers_than_its_parent():
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, fresh_bytes())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading, "rb") as file:
        assert file.read() != fresh_bytes()


@pytest.mark.fresh_randomness
def test_every_promise_draws_afresh():
    """The draws with the fewest values: 53 bits of thinning; the others have far more."""
    first, second = every_kind_of_draw(), every_kind_of_draw()
    assert 6 * 2.0**-53 < 1e-9
    assert all(first[kind] != second[kind] for kind in first)


@pytest.mark.fresh_randomness
def test_no_variable_of_the_environment_makes_promises_predictable():
    """The seeds of tests come by a module that tests put on the path; surelist itself reads nothing of the kind."""
    assert 3 * FRESH_CHANCE < 1e-9
    with seeded("a test"):
        found = {drawn_by_a_process(PYTHONPATH="", PYTHONHASHSEED="0") for _ in range(3)}
    assert len(found) == 3


@pytest.mark.fresh_randomness
def test_every_fresh_bit_is_a_fair_coin():
    draws, bits = 4_096, 53
    ones = np.zeros(bits)
    for _ in range(draws):
        ones += [drawn >> place & 1 for drawn in (fresh_bits(bits),) for place in range(bits)]
    most = binom.isf(1e-10 / bits / 2, draws, 0.5)
    assert 2 * bits * binom.sf(most, draws, 0.5) < 1e-9
    assert ones.max() <= most
    assert ones.min() >= draws - most
    assert fresh_bits(3) < 8
