"""Requests nobody should send, and processes killed in the middle of their work.

    python benchmarks/faults.py fuzz --requests 100000                # on SQLite
    python benchmarks/faults.py fuzz --requests 100000 --postgresql
    python benchmarks/faults.py kill --trials 100                     # on SQLite
    python benchmarks/faults.py kill --trials 100 --postgresql

``fuzz`` sends mutated requests to every route of the app and counts answers by status: a 5xx that is not a
stated 503 or 507, or no answer at all, is a failure, and the record must verify at the end. ``kill`` floods
the service with every kind of work (``faults_kill.py``), kills it with SIGKILL at a random moment, starts it
again and looks for everything that was acknowledged. Both are bounded, print their seed and exit with 1 on a
failure; ended by SIGTERM, SIGINT or SIGHUP, they leave no process and no folder behind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.faults_kill import CALIBRATE, CSV, kill
from tests.helpers.service import PostgresServer, Server, close, csv_text, operations

from surelist.service import visitor
from surelist.service.app import create_app
from surelist.service.record import access
from surelist.service.record.database import Database
from surelist.service.record.verify import verify
from surelist.service.settings import Settings

STATED = {503, 507}
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
AWKWARD: list[Any] = [
    "", " ", "0", "-1", "1e308", "1e400", "NaN", "Infinity", "0.1", "5", "100", "2**63", "9" * 400, "null", "true",
    "ä", "\x00", "\ud83d\ude00", "../../etc/passwd", "a" * 5000, "'; DROP TABLE log; --", "%00", "=1+1", "women=3/60",
    "women=pool:3/76", "=", "/", "score", "qualified", "exact", "recall", "[]", "{}", "\u202e", "1,5", "١",
]  # fmt: skip
TYPES = [
    "application/json", "text/csv", "application/vnd.apache.parquet", "application/octet-stream",
    "multipart/form-data; boundary=x", "multipart/form-data; boundary=x; charset=idna",
    "application/x-www-form-urlencoded", "text/html", "", "nonsense", "application/json; charset=utf-7",
]  # fmt: skip

TEMPLATES = Path(visitor.__file__).parent / "templates"
FIELDS = sorted(
    {name for page in TEMPLATES.glob("*.html") for name in re.findall(r'name="(\w+)"', page.read_text())}
    - {"csrf"}
)


class Mutator:
    """Draws requests: a route of the app, parameters that fit or do not, a body that was true once."""

    def __init__(
        self, seed: int, schema: dict[str, Any], known: dict[str, list[str]], bodies: list[bytes], cookie: str
    ) -> None:
        self.draw, self.known, self.bodies, self.cookie = random.Random(seed), known, bodies, cookie
        routes = [(m.upper(), p, o) for p, item in schema["paths"].items() for m, o in item.items()]
        pages = [(m, p, {}) for m, p in every_page() if p not in schema["paths"]]
        self.routes = routes * max(1, len(pages) // len(routes)) + pages

    def request(self) -> dict[str, Any]:
        method, path, operation = self.draw.choice(self.routes)
        if self.draw.random() < 0.05:
            method = self.draw.choice(["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
        path = re.sub(r"\{(\w+)\}", lambda part: self._name(part[1]), path)
        parameters = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query"]
        some = self.draw.choice([0, 0, 0.1, 0.3])
        query = [(name, self._value()) for name in parameters if self.draw.random() < some]
        if self.draw.random() < 0.1:
            query.append((self._value()[:100], self._value()))
        if path.endswith(("calibrate", "curve")) and self.draw.random() < 0.7:
            query += [("k", "5"), ("pool_size", "100"), ("score", "score"), ("label", "qualified")]
        headers = {"content-type": self.draw.choice(TYPES[:3] if self.draw.random() < 0.7 else TYPES)}
        if self.draw.random() < 0.1:
            headers["idempotency-key"] = self._value().encode("ascii", "ignore").decode() or "k"
        if self.draw.random() < 0.3:
            headers["accept"] = self.draw.choice(["text/html", "*/*", "application/json", ";;;"])
        body = self._body() if method != "GET" or self.draw.random() < 0.1 else None
        if not operation and method == "POST":
            headers["cookie"] = f"surelist={self.cookie}"
            if self.draw.random() < 0.8:
                headers["content-type"], body = "application/x-www-form-urlencoded", self._form()
        return {
            "method": method,
            "url": path,
            "params": query,
            "headers": _sendable(headers),
            "content": body,
        }

    def learn(self, answer: httpx.Response) -> None:
        """What the service has made meanwhile is asked for as well; the oldest is forgotten."""
        made = re.findall(r"[0-9a-f]{16,64}", answer.headers.get("location", ""))
        made += [answer.headers[name] for name in ("surelist-selection",) if name in answer.headers]
        if answer.status_code == 201:
            made += re.findall(r'"hash":"([0-9a-f]{64})"', answer.text)[:1]
        for name in made:
            for kind in ("policy", "digest") if len(name) == 64 else ("ident", "selection"):
                self.known[kind] = [*self.known[kind][-20:], name]

    def _name(self, kind: str) -> str:
        if self.draw.random() < 0.6 and kind in self.known:
            return self.draw.choice(self.known[kind])
        made = self.draw.choice(["0" * 64, "f" * 16, self.draw.randbytes(8).hex(), self._value()])
        return "".join(c for c in made if c.isprintable() and c not in "/?#%\\") or "x"

    def _value(self) -> str:
        value = self.draw.choice(AWKWARD)
        return str(value if self.draw.random() < 0.8 else self.draw.choice(AWKWARD) + str(value))

    def _form(self) -> bytes:
        """A form of this session with some fields of all pages, filled in by somebody careless."""
        fields = self.draw.sample(FIELDS, self.draw.choice([0, 1, 3, 8]))
        sent = [("csrf", access.csrf_token(self.cookie)), *((name, self._value()) for name in fields)]
        if self.draw.random() < 0.2:
            sent.append(("example", "1"))
        return urlencode(sent, errors="replace").encode()

    def _body(self) -> bytes:
        body = bytearray(self.draw.choice(self.bodies))
        for _ in range(self.draw.choice([0, 0, 1, 3, 10])):
            if not body:
                break
            at = self.draw.randrange(len(body))
            what = self.draw.random()
            if what < 0.4:
                body[at] = self.draw.randrange(256)
            elif what < 0.7:
                body[at:at] = self._value().encode("utf-8", "replace")
            elif what < 0.9:
                del body[at : at + self.draw.choice([1, 5, 100])]
            else:
                body = body[:at]
        return bytes(body)


def every_page() -> list[tuple[str, str]]:
    """What the app answers beside its API, from its own routes."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(database=f"{folder}/r.db", folder=Path(folder)))
        close(app)
    return operations(app)


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    return {name: "".join(c for c in value if " " <= c <= "~")[:4000] for name, value in headers.items()}


async def _fuzz(url: str, mutator: Mutator, requests: int, parallel: int) -> tuple[Counter[int], list[str]]:
    statuses: Counter[int] = Counter()
    wrong: list[str] = []

    async def sender(client: httpx.AsyncClient) -> None:
        while statuses.total() < requests:  # what the client refuses to send does not count
            request = mutator.request()
            try:
                answer = await client.request(**request)
                statuses[answer.status_code] += 1
                mutator.learn(answer)
                if answer.status_code >= 500 and answer.status_code not in STATED:
                    wrong.append(
                        f"{answer.status_code} {request['method']} {request['url']} {request}"[:1500]
                    )
            except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError):
                continue  # the client itself refuses to send it
            except httpx.HTTPError as error:
                statuses[0] += 1
                wrong.append(f"{error!r} {request['method']} {request['url']} {request}"[:1500])

    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        await asyncio.gather(*(sender(client) for _ in range(parallel)))
    return statuses, wrong


def _session(client: httpx.Client, policy: str) -> tuple[str, list[str]]:
    """A browser's cookie, and what it has under way: past candidates, a pool, a collection."""
    client.get("/")
    cookie = client.cookies["surelist"]
    form = {"csrf": access.csrf_token(cookie)}
    sent = {
        "/drafts": csv_text(300, labelled=True),
        f"/policies/{policy}/pool": csv_text(50, labelled=False),
        "/labellings": csv_text(50, labelled=False),
    }
    begun = [client.post(path, data=form, files={"file": ("a.csv", text)}) for path, text in sent.items()]
    return cookie, [re.findall("[0-9a-f]{16,}", each.headers["location"])[-1] for each in begun]


def fuzz(server: Server, address: str, requests: int, seed: int) -> int:
    past, pool = csv_text(300, labelled=True), csv_text(50, labelled=False)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        made = client.post(
            CALIBRATE + "&alpha=0.3", content=csv_text(2000, labelled=True), headers=CSV
        ).json()
        select = f"/api/v1/policies/{made['hash']}/select"
        listed = client.post(select, content=pool, headers=CSV)
        parquet = client.post(select + "?format=parquet", content=pool, headers=CSV).content
        schema = client.get("/api/v1/openapi.json").json()
        cookie, idents = _session(client, made["hash"])
    selection = listed.headers["surelist-selection"]
    known = {"policy": [made["hash"]], "digest": [made["hash"]], "selection": [selection]}
    known |= {"ident": [*idents, selection], "format": ["csv", "xlsx", "parquet"]}
    rows = {"rows": [{"score": i / 40, "qualified": i % 2, "candidate": f"c{i}"} for i in range(40)]}
    reviews = {"reviews": [{"candidate": f"c{i}", "qualified": i % 2 == 0} for i in range(3)]}
    nested = b"[" * 5000 + b"]" * 5000
    form = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nscore\n1\n\r\n--x--\r\n'
    )
    bodies = [past.encode(), pool.encode(), json.dumps(rows).encode(), json.dumps(reviews).encode()]
    bodies += [parquet, nested, form, b"", b'{"reason": "old"}', b"token=abc&csrf=x"]
    began = time.perf_counter()
    statuses, wrong = asyncio.run(
        _fuzz(server.url, Mutator(seed, schema, known, bodies, cookie), requests, 8)
    )
    seconds = time.perf_counter() - began
    log = server.stop()
    verdict = verify(Database(address, read_only=True))
    print(
        f"fuzz seed {seed}: {sum(statuses.values()):,} answers in {seconds:.0f} s: {dict(sorted(statuses.items()))}"
    )
    print(f"record: {verdict.entries:,} entries, {'intact' if verdict.intact else verdict.problems}")
    for line in wrong[:10]:
        print("WRONG", line)
    if wrong:
        print(log[-3000:])
    return len(wrong) + (not verdict.intact)


@contextmanager
def undisturbed() -> Iterator[None]:
    """What asks this process to end waits until a process that was just started is known by name."""
    asked: list[int] = []
    before = {each: signal.signal(each, lambda number, _: asked.append(number)) for each in ENDINGS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if asked:
        _end(asked[0])


def _end(number: int, _: object = None) -> None:
    sys.exit(128 + number)


def _clean_up(server: Server | None, postgres: PostgresServer | None, folder: Path) -> None:
    for each in ENDINGS:
        signal.signal(each, signal.SIG_IGN)
    if server and server.process.poll() is None:
        server.kill()
    if postgres:
        postgres.stop("immediate")
        shutil.rmtree(postgres.folder, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["fuzz", "kill"])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--postgresql", action="store_true", help="a cluster of its own; default: SQLite")
    given = parser.parse_args()
    for each in ENDINGS:
        signal.signal(each, _end)
    server: Server | None = None
    postgres: PostgresServer | None = None
    folder = Path(tempfile.mkdtemp(prefix="surelist-faults-"))
    try:
        with undisturbed():
            postgres = PostgresServer() if given.postgresql else None
            address = postgres.new_database() if postgres else str(folder / "record.db")
            # what a killed server leaves in the temporary folder goes with ours
            server = Server(folder / "home", "--database", address, environment={"TMPDIR": str(folder)})
        if given.what == "fuzz":
            failures = fuzz(server, address, given.requests, given.seed)
        else:
            failures = kill(server, address, given.trials, given.seed, undisturbed)
    finally:
        _clean_up(server, postgres, folder)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
