"""The service under load, beside a bare endpoint of the same framework, in one run.

    python benchmarks/service.py                # 15 s per endpoint and number of connections, in turns
    python benchmarks/service.py --large        # also: a 10-million-row Parquet selection

Both endpoints run under the same server and get the same body of 1,000 candidates. The bare one parses it and
answers when one row with the number of candidates is on disk (SQLite, committed and synced); the service also
selects, and answers when the selection is on disk in the chained log. Then a body of 32 MiB is sent while somebody
else asks for small selections: what is told is how much longer the slowest of those took than the slowest before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from figures import Figure, show
from surelist import examples

CONNECTIONS = (1, 8, 64)
UPLOAD = 32 << 20

BARE = """
import sqlite3, sys, threading
import pydantic_core, uvicorn
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
app, one = FastAPI(), threading.Lock()
record = sqlite3.connect(sys.argv[2], check_same_thread=False)
record.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE selections (rows INTEGER)")

def store(rows):
    with one, record:
        record.execute("INSERT INTO selections VALUES (?)", (rows,))

@app.get("/healthz")
async def healthz():
    return {}

@app.post("/bare")
async def bare(request: Request):
    rows = len(pydantic_core.from_json(await request.body())["rows"])
    await run_in_threadpool(store, rows)
    return {"rows": rows}

print("ready at http://127.0.0.1:" + sys.argv[1], flush=True)
uvicorn.run(app, port=int(sys.argv[1]), loop="asyncio", access_log=False, log_level="warning")
"""


def start(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    url = process.stdout.readline().split(" at ")[1].split()[0].rstrip("/")
    for _ in range(200):
        try:
            httpx.get(url + "/healthz")
            break
        except httpx.HTTPError:
            time.sleep(0.05)
    return process, url


def rows(count: int) -> list[dict[str, object]]:
    scores, _ = examples.population(np.random.default_rng(1), count)
    return [{"candidate": f"c-{i:06d}", "score": float(s), "site": "north"} for i, s in enumerate(scores)]


async def load(url: str, body: bytes, concurrency: int, seconds: float) -> tuple[list[float], int]:
    """Keep ``concurrency`` requests in flight by a raw HTTP/1.1 client: httpx would be the bottleneck.

    The seconds that each took, and how many failed.
    """
    host, port = url.split("/")[2].split(":")
    path = "/" + url.split("/", 3)[3]
    request = (
        f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    times: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    async def one() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.perf_counter() < end:
            began = time.perf_counter()
            writer.write(request)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            times.append(time.perf_counter() - began)
            errors += not head.startswith(b"HTTP/1.1 200")
        writer.close()

    await asyncio.gather(*(one() for _ in range(concurrency)))
    return times, errors


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """What the server itself used: steadier than wall time on a machine that others use."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def policy_at(url: str) -> str:
    header, lines = examples.trial_rows(np.random.default_rng(0), 2000, labelled=True)
    text = "\n".join(",".join(line) for line in [header, *lines])
    made = httpx.post(
        url + "/api/v1/calibrate?k=5&pool_size=100",
        content=text,
        headers={"content-type": "text/csv"},
        timeout=60,
    )
    return str(made.json()["hash"])


class Both:
    """The bare endpoint and the service, started; with a policy to select by."""

    def __init__(self, folder: Path, database: str | None = None) -> None:
        self.database = database or str(folder / "surelist.db")
        bare, bare_url = start([sys.executable, "-c", BARE, "8399", str(folder / "bare.db")])
        command = [sys.executable, "-m", "surelist", "serve", "--port=0", "--no-token", "--data", str(folder)]
        service, url = start([*command, *(["--database", database] if database else [])])
        ours = f"{url}/api/v1/policies/{policy_at(url)}/select"
        self.endpoints = {"bare": (bare_url + "/bare", bare), "select": (ours, service)}
        self.body = json.dumps({"rows": rows(1000)}).encode()

    def turn(self, connections: int, seconds: float) -> dict[str, dict[str, float]]:
        """Some seconds of each."""
        found = {}
        for name, (target, process) in self.endpoints.items():
            before = cpu_seconds(process)
            took, failed = asyncio.run(load(target, self.body, connections, seconds))
            assert not failed, f"{name}: {failed} requests failed"
            median, p99 = (1000 * float(np.quantile(took, share)) for share in (0.5, 0.99))
            cpu = 1000 * (cpu_seconds(process) - before) / len(took)
            found[name] = {"median": median, "p99": p99, "cpu": cpu, "requests": len(took)}
        return found

    def delay(self) -> float:
        """Milliseconds that a body of 32 MiB adds to the slowest small selection."""
        target, _ = self.endpoints["select"]
        quiet, _ = asyncio.run(load(target, self.body, 1, 2))
        many = rows(1000) * (UPLOAD // len(self.body))
        content = json.dumps({"rows": many}).encode()
        del many
        headers = {"content-type": "application/json"}
        sent = threading.Thread(
            target=lambda: httpx.post(
                target, content=content, headers=headers, timeout=600
            ).raise_for_status()
        )
        during: list[float] = []
        sent.start()
        while sent.is_alive():
            took, _ = asyncio.run(load(target, self.body, 1, 0.2))
            during += took
        sent.join()
        return 1000 * (max(during) - max(quiet))

    def stop(self) -> None:
        for _, process in self.endpoints.values():
            process.terminate()
            process.wait()
        command = [sys.executable, "-m", "surelist", "verify-log", "--database", self.database]
        subprocess.run(command, capture_output=True, text=True, check=True)


def figures(seconds: float = 5, database: str | None = None) -> list[Figure]:
    """Ratios at 1, 8 and 64 connections: the best of three turns of each; and what a large body holds up."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        both = Both(Path(folder), database)
        try:
            both.turn(8, 2)  # warm up
            for connections in CONNECTIONS:
                turns = [both.turn(connections, seconds) for _ in range(3)]
                for what, limit in (("median", 1.5), ("p99", 2.5)):
                    ratio = min(each["select"][what] / each["bare"][what] for each in turns)
                    found.append(Figure(f"service, {what}", f"{connections} connections", ratio, limit))
                cpu = min(each["select"]["cpu"] / each["bare"]["cpu"] for each in turns)
                found.append(Figure("service, processor", f"{connections} connections", cpu))
            found.append(
                Figure("service, others beside 32 MiB", "ms longer", min(both.delay() for _ in range(3)), 50)
            )
        finally:
            both.stop()
    return found


def large(folder: Path, count: int) -> None:
    import duckdb

    path = folder / "pool.parquet"
    duckdb.execute(
        "COPY (SELECT 'candidate-' || i AS candidate, (hash(i) % 1000000007) / 1000000007 AS score, "
        f"i % 90 AS age FROM range({count}) t(i)) TO '{path}' (FORMAT parquet)"
    )
    service, url = start(
        [sys.executable, "-m", "surelist", "serve", "--port=0", "--no-token", "--data", str(folder / "home")]
    )
    policy = policy_at(url)
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            text = Path(f"/proc/{service.pid}/status").read_text()
            peak = max(peak, int(text.split("VmRSS:")[1].split()[0]) // 1024)
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    size = 0
    with path.open("rb") as file, httpx.stream(
        "POST", f"{url}/api/v1/policies/{policy}/select", content=iter(lambda: file.read(1 << 20), b""),
        headers={"content-type": "application/vnd.apache.parquet"}, timeout=600,
    ) as answer:  # fmt: skip
        status = answer.status_code
        for piece in answer.iter_bytes():
            size += len(piece)
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    service.terminate()
    service.wait()
    print(
        f"{count:,} rows, {path.stat().st_size / 2**20:,.0f} MiB in, {size / 2**20:,.1f} MiB out, status {status}, "
        f"{seconds:.1f} s, peak server memory {peak:,} MiB (below 500 is the aim)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5, help="per turn; there are three")
    parser.add_argument("--database", help="postgresql:// address; default: SQLite in a temporary folder")
    parser.add_argument("--large", action="store_true", help="also the 10-million-row Parquet selection")
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    show(figures(options.seconds, options.database))
    if options.large:
        with tempfile.TemporaryDirectory() as folder:
            large(Path(folder), options.rows)


if __name__ == "__main__":
    main()
