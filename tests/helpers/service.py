"""Real databases, real servers, a real browser. Both databases are a fixture axis."""

from __future__ import annotations

import atexit
import csv
import io
import itertools
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from surelist import examples
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.settings import Settings

POSTGRES_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/bin")
BUSY = 600  # seconds until a server is taken for hung: the machine may have much else to do
_numbers = itertools.count()


def missing(what: str) -> None:
    """Under CI a missing tool is a failure; on a laptop it is a skip."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing; `make test` installs it.")
    pytest.skip(f"{what} is missing")


def _postgres_tool(name: str) -> str:
    found = [p for place in POSTGRES_PLACES for p in sorted(Path("/").glob(f"{place[1:]}/{name}"))]
    if not found:
        missing("PostgreSQL")
    return str(found[-1] if "postgresql" in str(found[-1]) else found[0])


class PostgresServer:
    """A cluster of its own in a temporary folder, reached by a socket; stopped at the end.

    It does not wait for the disk: what it has written outlives its processes, which is what tests end.
    """

    def __init__(self) -> None:
        self.free: list[str] = []
        self.folder = Path(tempfile.mkdtemp(prefix="surelist-pg-"))
        self.user = pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:  # postgres refuses to run as root
            self.user = "postgres" if _has_user("postgres") else "nobody"
            shutil.chown(self.folder, self.user)
        self.data = self.folder / "data"
        options = ("-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self._run("initdb", "-D", str(self.data), "-U", "surelist", *options)
        self.start()

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=200"
        options += " -c fsync=off -c full_page_writes=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.data), "-w", "-o", options, "-l", log, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def new_database(self) -> str:
        """The address of an empty one: a database is 300 files, so one that was given back is taken again."""
        import psycopg

        if self.free:
            return self.free.pop()
        name = f"t{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def give_back(self, address: str) -> None:
        import psycopg

        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        self.free.append(address)

    def address(self, name: str) -> str:
        return f"postgresql://surelist@/{name}?host={self.folder}"

    def _run(self, tool: str, *arguments: str) -> None:
        command = [_postgres_tool(tool), *arguments]
        if os.getuid() == 0:
            command = ["setpriv", f"--reuid={self.user}", "--clear-groups", *command]
        done = subprocess.run(  # in a session of its own: Ctrl-C is for whoever stops it in order
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder, check=False,
            start_new_session=True,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{tool} failed: {done.stderr.decode()}")


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@pytest.fixture(scope="session")
def postgres():
    server = PostgresServer()
    yield server
    server.stop("immediate")
    shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path) -> Iterator[str]:
    """A fresh record on each kind of database."""
    if request.param == "sqlite":
        yield str(tmp_path / "record.db")
        return
    server = request.getfixturevalue("postgres")
    address = server.new_database()
    yield address
    server.give_back(address)


@pytest.fixture
def registry(address):
    database = Database(address)
    database.prepare()
    registry = Registry(database)
    yield registry
    registry.close()


@pytest.fixture
def settings(address, tmp_path) -> Settings:
    return Settings(database=address, folder=tmp_path / "data")


@pytest.fixture
def client(settings):
    from starlette.testclient import TestClient

    from surelist.service.app import create_app

    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def local_client(tmp_path):
    """For what does not depend on the database."""
    from starlette.testclient import TestClient

    from surelist.service.app import create_app

    settings = Settings(database=str(tmp_path / "record.db"), folder=tmp_path / "data")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


def web_client(**options: Any) -> httpx.Client:
    """Every request has a connection of its own: the server closes one that was idle for seconds, perhaps when it is used again."""
    return httpx.Client(timeout=BUSY, limits=httpx.Limits(max_keepalive_connections=0), **options)


def open_to_the_end(client):
    """A client for all tests of a module; its connections are closed when the run ends."""
    atexit.register(client.close)
    return client


def close(app) -> None:
    """What the end of the service closes, for apps that were never started."""
    runtime = app.state.runtime
    for slots in (runtime.heavy, runtime.printing):
        slots.workers.close()
    runtime.registry.close()
    runtime.spool.close()


def operations(app) -> list[tuple[str, str]]:
    """Every (method, path) the app answers, from its own routes: a new one is covered when it is written."""
    pairs = {
        (method, route.path)
        for route in app.routes
        for method in getattr(route, "methods", None) or ()
        if method != "HEAD"
    }
    return sorted(pairs)


def csv_text(rows: int, *, labelled: bool, seed: int = 0) -> str:
    header, lines = examples.trial_rows(np.random.default_rng(seed), rows, labelled=labelled)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([header, *lines])
    return text.getvalue()


@pytest.fixture(scope="session")
def past() -> str:
    return csv_text(2000, labelled=True)


@pytest.fixture(scope="session")
def pool() -> str:
    return csv_text(100, labelled=False, seed=1)


class Server:
    """The app as a process of its own, started as a person starts it."""

    def __init__(
        self, folder: Path, *options: str, environment: dict[str, str] | None = None, first: str = ""
    ) -> None:
        """``first``: a statement that the process begins with."""
        self.folder, self.options = folder, options
        self.program = (
            ("-c", f"{first}; from surelist.cli import main; main()") if first else ("-m", "surelist")
        )
        self.environment = {**os.environ, "SURELIST_HOME": str(folder), **(environment or {})}
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *self.program, "serve", "--no-token", "--port", "0", *self.options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
        )  # fmt: skip
        line = self.process.stdout.readline()
        if " at http" not in line:
            out, err = self.process.communicate()
            raise RuntimeError(f"did not start: {line}{out}{err}")
        self.url = line.split(" at ")[1].split()[0].rstrip("/")
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise

    def _wait(self) -> None:
        from urllib.request import urlopen

        for _ in range(200):
            try:
                urlopen(self.url + "/healthz", timeout=BUSY).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("did not answer")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def stop(self) -> str:
        self.process.terminate()
        try:
            out, err = self.process.communicate(timeout=BUSY)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return out + err


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "home")
    yield server
    if server.process.poll() is None:
        server.stop()
