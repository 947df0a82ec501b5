"""Kill -9, a full disk, a lost database: what was acknowledged is there, and service comes back."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.record.verify import verify
from tests.helpers.record import by
from tests.helpers.service import BUSY, PostgresServer, Server, csv_text, open_to_the_end, web_client

web = open_to_the_end(web_client(verify=False))  # one client: making its TLS context takes longest
CSV = {"content-type": "text/csv"}
CALIBRATE = "/api/v1/calibrate?k=5&pool_size=100"


def pool_rows(size: int) -> list[dict]:
    return [{"candidate": f"c{i}", "score": (i % 97) / 97} for i in range(size)]


def start(folder: Path, address: str) -> tuple[Server, str]:
    server = Server(folder, "--database", address)
    made = web.post(server.url + CALIBRATE, content=csv_text(2000, labelled=True), headers=CSV)
    return server, made.json()["hash"]


async def flood(server: Server, policy: str, kill_after: int) -> list[dict]:
    """200 selections at once, policies in between; the process is killed in the middle."""
    acknowledged: list[dict] = []
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=BUSY, verify=False) as client:

        async def one(number: int) -> None:
            try:
                if number % 25 == 0:
                    url = f"{CALIBRATE}&name=n{number}&alpha={0.1 + number / 10_000}"
                    await client.post(url, content=csv_text(500, labelled=True), headers=CSV)
                    return
                answer = await client.post(f"/api/v1/policies/{policy}/select", json={"rows": pool_rows(200)})
                assert answer.status_code == 200
                acknowledged.append(answer.json()["selection"])
            except httpx.HTTPError:
                return  # never acknowledged

        tasks = [asyncio.create_task(one(number)) for number in range(200)]
        while len(acknowledged) < kill_after and not all(task.done() for task in tasks):
            await asyncio.sleep(0.001)
        server.kill()
        await asyncio.gather(*tasks)
    return acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("kill_after", [60, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_kill_9_in_the_middle_of_200_selections(address, tmp_path, kill_after):
    server, policy = start(tmp_path / "home", address)
    acknowledged = asyncio.run(flood(server, policy, kill_after))
    assert kill_after <= len(acknowledged) < 200
    server.start()
    try:
        for made in acknowledged:
            found = web.get(f"{server.url}/api/v1/selections/{made['id']}").json()
            assert found == made
        for each in web.get(f"{server.url}/api/v1/policies").json():
            assert web.get(f"{server.url}/api/v1/policies/{each['hash']}").status_code == 200
        again = web.post(f"{server.url}/api/v1/policies/{policy}/select", json={"rows": pool_rows(200)})
        assert again.status_code == 200
        assert list((tmp_path / "home" / "spool").iterdir()) == []
    finally:
        server.stop()
    database = Database(address)
    receipts = tuple(f"{made['receipt']['seq']}:{made['receipt']['hash']}" for made in acknowledged)
    verdict = verify(database, receipts)
    assert verdict.intact, verdict.problems
    registry = Registry(database)
    assert all(saved.policy.promise for saved in by(registry).policies())
    registry.close()


@pytest.mark.slow
def test_a_lost_database_is_a_clear_error_and_comes_back_by_itself(tmp_path):
    postgres = PostgresServer()
    try:
        server, policy = start(tmp_path / "home", postgres.new_database())
        url = f"{server.url}/api/v1/policies/{policy}/select"
        assert web.post(url, json={"rows": pool_rows(10)}).status_code == 200
        postgres.stop("immediate")
        answer = web.post(url, json={"rows": pool_rows(10)})
        assert answer.status_code == 503
        assert answer.json()["error"]["type"] == "StorageError"
        assert "retry-after" in answer.headers
        assert web.get(server.url + "/readyz").status_code == 503
        assert web.get(server.url + "/healthz").status_code == 200
        postgres.start()
        assert web.post(url, json={"rows": pool_rows(10)}).status_code == 200
        assert web.get(server.url + "/readyz").status_code == 200
        server.stop()
    finally:
        postgres.stop("immediate")
        shutil.rmtree(postgres.folder, ignore_errors=True)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few megabytes, where mounting is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_a_clear_error_and_passes_by_itself(small_disk):
    server, policy = start(small_disk, str(small_disk / "record.db"))
    url = f"{server.url}/api/v1/policies/{policy}/select"
    fill = small_disk / "fill"
    try:
        with fill.open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
    except OSError:
        pass
    many = {"rows": [{"score": 0.9, "candidate": str(i)} for i in range(100)]}
    statuses = {web.post(url, json=many).status_code for _ in range(30)}
    assert 507 in statuses
    assert statuses <= {200, 507}
    large = csv_text(3000, labelled=True)
    full = web.post(server.url + CALIBRATE, content=large, headers=CSV)
    assert full.status_code == 507
    assert "full" in full.json()["error"]["message"]
    fill.unlink()
    assert web.post(url, json=many).status_code == 200
    assert web.post(server.url + CALIBRATE, content=large, headers=CSV).status_code == 201
    server.stop()
    verdict = verify(Database(str(small_disk / "record.db")))
    assert verdict.intact, verdict.problems
