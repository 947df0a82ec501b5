"""Does it run? The wheel with the lowest declared versions, and on every Python that the machine has.

    python tests/project/smoke.py            every job: builds the wheel, makes a fresh environment for each
    python tests/project/smoke.py --alone    builds the wheel and tries it without extras, in one environment
    python tests/project/smoke.py --work     what a job does, in the environment at hand

A job really calibrates and selects (arrays, files, DataFrames), fits, draws, reports, and asks a running service. Floors
are read from pyproject.toml, so the versions tried are those declared.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAMES = ("pandas", "polars", "pyarrow")  # of the dev extra: what users bring themselves
PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
BUSY = 600  # seconds until a server is taken for hung: the machine may have much else to do


def declared() -> dict[str, str]:
    """Every package that pyproject.toml declares for use, with its floor."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    used = [name for name in extras if name not in ("dev", "docs")]  # what the package imports
    wanted = [*project["dependencies"], *(each for name in used for each in extras[name])]
    wanted += [each for each in extras["dev"] if each.startswith(FRAMES)]
    pairs = (re.fullmatch(r"([\w-]+(?:\[\w+\])?)>=([\w.]+)", each) for each in wanted)
    return {pair[1]: pair[2] for pair in pairs if pair and pair[1] != "pyspark"}


def pythons() -> Iterator[Path]:
    """One interpreter for each minor version that the machine has."""
    shelves = [*map(Path, os.environ["PATH"].split(os.pathsep)), Path("/usr/local/bin"), Path("/usr/bin")]
    for major, minor in PYTHONS:
        name = f"python{major}.{minor}"
        kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{major}.{minor}.*/bin/{name}"))
        for path in [*kept[::-1], *(shelf / name for shelf in shelves)]:
            if path.exists() and _answers(path, (major, minor)):
                yield path
                break


def _answers(path: Path, version: tuple[int, int]) -> bool:
    code = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    run = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return run.stdout.split() == [str(part) for part in version]


def job(name: str, python: Path, wheel: Path, lowest: bool, folder: Path) -> str:
    """Make an environment, install the wheel into it, and run the work there."""
    began = time.monotonic()
    home = folder / name
    _run(python, "-m", "venv", "--without-pip", home)
    inside = home / "bin" / "python"
    pins = declared()
    if lowest:
        packages = [f"{package}=={floor}" for package, floor in pins.items()]
        packages.append(str(wheel))
    else:
        packages = [*pins, f"{wheel}[all]", "-c", str(ROOT / "constraints.txt")]
    _run(sys.executable, "-m", "pip", "--python", inside, "install", "-q", "--no-compile",
         "--only-binary", ":all:", "--disable-pip-version-check", *packages)  # fmt: skip
    _run(inside, Path(__file__), "--work", cwd=home)
    return f"{name}: runs ({time.monotonic() - began:.0f} s)"


def _run(*command: object, cwd: Path = ROOT) -> None:
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run([str(each) for each in command], cwd=cwd, env=clean, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{(run.stdout + run.stderr)[-4000:]}")


PIP = ("-q", "--disable-pip-version-check")


def built(folder: Path) -> Path:
    """The source distribution, and from it the wheel: what is tried is what would be published."""
    tools = folder / "tools"
    _run(sys.executable, "-m", "venv", "--without-pip", tools)
    pip = (sys.executable, "-m", "pip", "--python", tools / "bin" / "python", "install", *PIP)
    _run(*pip, "hatchling>=1.27")
    _run(tools / "bin" / "python", "-m", "hatchling", "build", "-t", "sdist", "-d", folder)
    (source,) = folder.glob("surelist-*.tar.gz")
    _run(sys.executable, "-m", "pip", "wheel", *PIP, "--no-deps", "-w", folder, source)
    (wheel,) = folder.glob("surelist-*.whl")
    return wheel


def alone(wheel: Path, folder: Path) -> str:
    """An empty environment with nothing but the wheel, and the command as ``pipx run`` calls it."""
    home = folder / "alone"
    _run(sys.executable, "-m", "venv", "--without-pip", home)
    _run(sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", *PIP, "--no-compile",
         "-c", ROOT / "constraints.txt", wheel)  # fmt: skip
    _run(home / "bin" / "surelist", "demo", cwd=folder)
    _run(home / "bin" / "surelist", "show", "surelist-demo/policy.json", cwd=folder)
    return "alone, without extras: runs"


def jobs(*, only_alone: bool) -> None:
    """The source distribution and the wheel, then all environments, two at a time."""
    with tempfile.TemporaryDirectory(prefix="surelist-smoke-") as place:
        folder = Path(place)
        wheel = built(folder)
        print(alone(wheel, folder))
        if only_alone:
            return
        have = list(pythons())
        plans = [("lowest-versions", have[0] if have else Path(sys.executable), True)]
        ours = f"python{sys.version_info.major}.{sys.version_info.minor}"  # the other tests run on this one
        plans += [(path.name, path, False) for path in have if path.name != ours]
        with ThreadPoolExecutor(2) as pool:
            for line in pool.map(lambda plan: job(plan[0], plan[1], wheel, plan[2], folder), plans):
                print(line)
        absent = [f"{a}.{b}" for a, b in PYTHONS if f"python{a}.{b}" not in {path.name for path in have}]
        if absent:
            print("not on this machine, not tried: Python " + ", ".join(absent))


def work() -> None:
    """Every front end once, small. Thresholds agree wherever the same rows come in."""
    import numpy as np

    import surelist as sl
    from surelist.examples import population

    rng = np.random.default_rng(6)
    scores, labels = population(rng, 1_000)
    target = sl.Expected(5, 100)
    policy = sl.calibrate(scores, labels, target)
    assert 0 < policy.select(population(rng, 100)[0]).sum() < 100
    for each in (sl.PerPool(3, 100), sl.Recall(0.9)):
        sl.calibrate(scores, labels, each)
    sl.guarantee_curve(scores, labels, 100)
    _tables(scores, labels, policy)
    _extras(scores, labels)
    _command_line()
    _service()


def _tables(scores: object, labels: object, policy: object) -> None:
    import pandas
    import polars
    import pyarrow
    import pyarrow.parquet

    import surelist as sl

    columns = {"score": scores, "label": labels}
    arrow = pyarrow.table(columns)
    pyarrow.parquet.write_table(arrow, "rows.parquet")
    pandas.DataFrame(columns).to_csv("rows.csv", index=False)
    frames = [arrow, pandas.DataFrame(columns), polars.DataFrame(columns), "rows.parquet", "rows.csv"]
    for table in [*frames, polars.DataFrame(columns).lazy()]:
        again = sl.calibrate_table(table, score="score", label="label", target=sl.Expected(5, 100))
        assert again.threshold == policy.threshold, type(table)  # type: ignore[attr-defined]
        assert sl.select_table(table, again).shortlisted > 0


def _extras(scores: object, labels: object) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import numpy as np
    import psycopg
    from sklearn.linear_model import LogisticRegression

    import surelist as sl

    column = np.asarray(scores).reshape(-1, 1)
    model = sl.ShortlistClassifier(LogisticRegression(), target=sl.Expected(5, 100), random_state=0)
    assert 0 < np.asarray(model.fit(column, labels).predict(column)).sum() < len(column)
    sl.plan(sl.Expected(5, 100), base_rate=0.19, auc=0.87).plot()
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect("postgresql://nobody@/none?host=/nowhere", connect_timeout=2)


def _command_line() -> None:
    surelist = [sys.executable, "-m", "surelist"]
    demo = "surelist-demo/"
    for command in (
        ["demo"],
        ["show", demo + "policy.json"],
        ["select", demo + "new.csv", "--policy", demo + "policy.json", "-o", "again.csv"],
        ["select", demo + "new.csv", "--policy", demo + "policy.json", "-o", "again.xlsx"],
        ["select", "again.xlsx", "--policy", demo + "policy.json", "-o", "twice.csv"],
        ["sql", demo + "policy.json"],
        ["report", demo + "policy.json", "--past", demo + "past.csv", "--pool", demo + "new.csv", "-o", "r.pdf"],
    ):  # fmt: skip
        subprocess.run([*surelist, *command], check=True, capture_output=True, text=True)
    assert Path("again.csv").read_bytes() == Path(demo, "shortlist.csv").read_bytes()
    assert Path("r.pdf").read_bytes().startswith(b"%PDF")


def _service() -> None:
    command = [sys.executable, "-m", "surelist", "serve", "--port=0", "--no-token", "--data", "record"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        address = next(found[0] for line in server.stdout if (found := re.search(r"http://[\w.]+:\d+", line)))
        _until_it_answers(f"{address}/healthz")
        past = Path("surelist-demo/past.csv").read_bytes()
        policy = _post(f"{address}/api/v1/calibrate?k=5&pool_size=100", past)
        assert policy["promise"]
        assert _get(f"{address}/").startswith("<!doctype html>")
        assert _get(f"{address}/metrics")
    finally:
        server.terminate()
        server.wait(BUSY)


def _until_it_answers(address: str) -> None:
    end = time.monotonic() + BUSY
    while True:
        try:
            _get(address)
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=BUSY) as answer:
        text: str = answer.read().decode()
        return text


def _post(address: str, body: bytes) -> dict[str, object]:
    request = urllib.request.Request(address, body, {"Content-Type": "text/csv"})
    with urllib.request.urlopen(request, timeout=BUSY) as answer:
        parsed: dict[str, object] = json.loads(answer.read())
        return parsed


if __name__ == "__main__":
    work() if "--work" in sys.argv else jobs(only_alone="--alone" in sys.argv)
