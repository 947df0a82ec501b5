"""The service under load, beside a bare endpoint of the same framework, in one run.

    python benchmarks/service.py                # 60 s per endpoint in turns of 5 s, concurrency 32
    python benchmarks/service.py --large        # also: a 10-million-row Parquet selection

Both endpoints run under the same server and get the same body of 1,000 candidates. The bare one
parses it and answers with the number of rows; the service also selects, and answers only when
the selection is on disk in the chained log.
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

from surelist import examples

TURN = 5  # seconds

BARE = """
import pydantic_core, uvicorn
from fastapi import FastAPI, Request
app = FastAPI()

@app.get("/healthz")
async def healthz():
    return {}

@app.post("/bare")
async def bare(request: Request):
    return {"rows": len(pydantic_core.from_json(await request.body())["rows"])}

import sys
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


def concurrent(seconds: float, concurrency: int, folder: Path, database: str | None) -> None:
    body = json.dumps({"rows": rows(1000)}).encode()
    bare, bare_url = start([sys.executable, "-c", BARE, "8399"])
    options = ["--database", database] if database else []
    service, url = start(
        [sys.executable, "-m", "surelist", "serve", "--port=0", "--no-token", "--data", str(folder), *options]
    )
    policy = policy_at(url)
    ours = f"{url}/api/v1/policies/{policy}/select"
    endpoints = {"bare": (bare_url + "/bare", bare), "select": (ours, service)}
    found: dict[str, dict[str, float]] = {}
    try:
        times: dict[str, list[float]] = {name: [] for name in endpoints}
        errors, used = dict.fromkeys(endpoints, 0), dict.fromkeys(endpoints, 0.0)
        for target, _ in endpoints.values():
            asyncio.run(load(target, body, concurrency, 3))  # warm up
        turns = max(1, round(seconds / TURN))
        for _ in range(turns):  # in turns, so that both meet the machine in the same moods
            for name, (target, process) in endpoints.items():
                before = cpu_seconds(process)
                took, failed = asyncio.run(load(target, body, concurrency, seconds / turns))
                used[name] += cpu_seconds(process) - before
                times[name] += took
                errors[name] += failed
        for name, took in times.items():
            found[name] = {
                "requests": len(took), "errors": errors[name], "per_second": len(took) / seconds,
                "p50_ms": 1000 * float(np.quantile(took, 0.5)),
                "p99_ms": 1000 * float(np.quantile(took, 0.99)),
                "cpu_ms": 1000 * used[name] / len(took),
            }  # fmt: skip
            print(f"{name:7} " + "  ".join(f"{k} {v:,.1f}" for k, v in found[name].items()), flush=True)
        ratios = {each: found["select"][each] / found["bare"][each] for each in ("p50_ms", "p99_ms")}
        print(f"median ratio {ratios['p50_ms']:.2f}, p99 ratio {ratios['p99_ms']:.2f} (at most 2 is the aim)")
    finally:
        for process in (bare, service):
            process.terminate()
            process.wait()
    command = [
        sys.executable,
        "-m",
        "surelist",
        "verify-log",
        "--database",
        database or str(folder / "surelist.db"),
    ]
    print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--database", help="postgresql:// address; default: SQLite in a temporary folder")
    parser.add_argument("--large", action="store_true", help="also the 10-million-row Parquet selection")
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        concurrent(options.seconds, options.concurrency, Path(folder), options.database)
        if options.large:
            large(Path(folder), options.rows)


if __name__ == "__main__":
    main()
