"""A service flooded with every kind of work, killed with SIGKILL in the middle of it, and asked for what it acknowledged.

Part of ``faults.py kill``. Each trial waits for some acknowledgements of one kind, drawn at random, so that
every kind of work is cut off at some moment of its own.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import httpx
from tests.helpers.service import Server, csv_text

from surelist.service.record.database import Database
from surelist.service.record.verify import verify

CSV = {"content-type": "text/csv"}
CALIBRATE = "/api/v1/calibrate?k=5&pool_size=100"
CAMPAIGN = "/api/v1/campaigns?k=1&pool_size=100&score=score&label=qualified&id=candidate"
LABELLING = "/api/v1/labellings?score=score&id=candidate&labels=60"
PAST, COLLECTION = csv_text(2000, labelled=True), csv_text(400, labelled=False, seed=3)
REVIEWS = {"reviews": [{"candidate": "c96", "qualified": True}]}
CLIENTS, TURNS = 6, 20
KINDS = (
    "policy", "selection", "shortlist review", "monitor state", "campaign start", "campaign pool",
    "campaign review", "campaign finish", "labelling draw", "labelling answer",
)  # fmt: skip


@dataclass(frozen=True)
class Acknowledged:
    """One answer of the service: what it was about, where to look for it, and whether that shows it."""

    kind: str
    path: str
    receipt: dict[str, Any]
    holds: Callable[[Any], bool]

    def kept(self, client: httpx.Client) -> bool:
        answer = client.get(self.path)
        return answer.status_code == 200 and self.holds(answer.json())


class Flood:
    """What many clients do at once, and all that was acknowledged to them."""

    def __init__(self, client: httpx.AsyncClient, policy: str) -> None:
        self.client, self.policy, self.run = client, policy, secrets.token_hex(4)
        self.acknowledged: list[Acknowledged] = []
        self.refused: Counter[str] = Counter()
        self.under_way = False

    def count(self, kind: str) -> int:
        return sum(each.kind == kind for each in self.acknowledged)

    def tasks(self) -> list[asyncio.Task[None]]:
        """Chains of steps beside clients who select pool after pool; every pool is another one."""
        steps = [self.campaign(n) for n in range(2)] + [self.labelling(n) for n in range(2)]
        steps += [self.selecting(n) for n in range(CLIENTS)] + [self.calibrating()]
        return [asyncio.create_task(self.quietly(each)) for each in steps]

    async def selecting(self, client: int) -> None:
        for turn in range(TURNS):
            await self.selected(turn * CLIENTS + client)

    async def calibrating(self) -> None:
        for number in range(4):
            await self.calibrated(number)

    async def quietly(self, work: Any) -> None:
        try:
            await work
        except (httpx.HTTPError, ValueError, KeyError):
            return  # never acknowledged

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.client.post(path, **body)
        while answer.status_code == 409 and answer.json()["error"]["type"] == "Outdated":  # "Try again."
            answer = await self.client.post(path, **body)
        if answer.status_code not in (200, 201):
            self.refused[f"{answer.status_code} {answer.text[:200]}"] += 1
            raise ValueError(path)
        made: dict[str, Any] = answer.json()
        return made

    def keep(self, kind: str, path: str, made: dict[str, Any], holds: Callable[[Any], bool]) -> None:
        self.acknowledged.append(Acknowledged(kind, path, made["receipt"], holds))

    def pool(self, number: object) -> dict[str, Any]:
        rows = [{"candidate": f"c{i}", "score": (i % 97) / 97} for i in range(200)]
        return {"rows": [*rows, {"candidate": f"{self.run}-{number}", "score": 0}]}

    async def calibrated(self, number: int) -> None:
        url = f"{CALIBRATE}&name=n{number}&alpha={0.1 + number / 10_000}"
        made = await self.post(url, content=csv_text(500, labelled=True), headers=CSV)
        path = f"/api/v1/policies/{made['hash']}"
        self.keep("policy", path, made, lambda now: now["policy"] == made["policy"])

    async def selected(self, number: int) -> None:
        select = f"/api/v1/policies/{self.policy}/select" + "?watch=true" * (number % 6 == 0)
        made = (await self.post(select, json=self.pool(number)))["selection"]
        path = f"/api/v1/selections/{made['id']}"
        self.keep("selection", path, made, lambda now: now == made)
        if number % 3 == 0:
            await self.reviewed("shortlist review", f"{path}/reviews", made["id"])
        if number % 6 == 0:  # what the monitor is fed with
            now = await self.post(f"{path}/finish", json={"missing": True})
            seen = now["evidence"]
            standing = f"/api/v1/policies/{self.policy}/standing"
            self.keep("monitor state", standing, now, lambda later: later["evidence"][: len(seen)] == seen)

    async def reviewed(self, kind: str, path: str, subject: str) -> None:
        made = await self.post(path, json=REVIEWS)
        counts = {name: made[name] for name in ("reviewed", "qualified", "disagreements")}
        where = f"/api/v1/selections/{subject}/reviews"
        self.keep(kind, where, made, lambda now: counts == {name: now[name] for name in counts})

    async def campaign(self, number: int) -> None:
        begun = await self.post(f"{CAMPAIGN}&name={self.run}-{number}", content=PAST, headers=CSV)
        path = f"/api/v1/campaigns/{begun['id']}"
        self.keep("campaign start", path, begun, lambda now: now["name"] == begun["name"])
        for turn in range(2):
            name = f"{number}-{turn}"
            made = await self.post(f"{path}/screen?name={name}", json=self.pool(name))
            pool = made["pool"]
            self.keep("campaign pool", f"/api/v1/selections/{pool}/reviews", made, lambda now: True)
            await self.reviewed("campaign review", f"{path}/pools/{pool}/reviews", pool)
            ended = await self.post(f"{path}/pools/{pool}/finish", json={"missing": True})
            self.keep("campaign finish", path, ended, _finished(pool, ended["pools"]))

    async def labelling(self, number: int) -> None:
        begun = await self.post(f"{LABELLING}&name={self.run}-{number}", content=COLLECTION, headers=CSV)
        path = f"/api/v1/labellings/{begun['id']}"
        self.keep("labelling draw", path, begun, lambda now: now["name"] == begun["name"])
        now = begun
        for _ in range(4):
            asked = (await self.client.get(f"{path}/next")).json()
            rows = [each["row"] for each in asked[: len(asked) if now["needs_all"] else 5]]
            sent = {"labels": [{"row": row, "qualified": row % 3 == 0} for row in rows]}
            now = await self.post(f"{path}/labels", json=sent)
            self.keep("labelling answer", f"{path}/next", now, _labelled({*rows}))


def _finished(pool: str, pools: int) -> Callable[[dict[str, Any]], bool]:
    return lambda now: pool not in now["waiting"] and now["pools"] >= pools


def _labelled(rows: set[int]) -> Callable[[list[dict[str, Any]]], bool]:
    """Nobody whose label was taken is asked for again."""
    return lambda asked: rows.isdisjoint(each["row"] for each in asked)


async def _flood(server: Server, policy: str, kind: str, enough: int, moment: float) -> Flood:
    """Killed a moment after enough of one kind were acknowledged, or when nothing is left to do."""
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:
        flood = Flood(client, policy)
        tasks = flood.tasks()
        while flood.count(kind) < enough and not all(task.done() for task in tasks):
            await asyncio.sleep(0.001)
        await asyncio.sleep(moment)
        flood.under_way = not all(task.done() for task in tasks)
        server.kill()
        await asyncio.gather(*tasks)
    return flood


def _gone(client: httpx.Client, acknowledged: list[Acknowledged]) -> list[str]:
    """What was acknowledged and is not there, and labellings that cannot go on."""
    gone = [f"{each.kind} {each.path}" for each in acknowledged if not each.kept(client)]
    for path in {each.path for each in acknowledged if each.kind == "labelling draw"}:
        waiting, asked = client.get(path).json()["waiting"], client.get(f"{path}/next")
        if asked.status_code != 200 or len(asked.json()) != waiting:
            gone.append(f"{path}: {waiting} to label, asked for: {asked.text[:200]}")
    return gone


def kill(
    server: Server,
    address: str,
    trials: int,
    seed: int,
    undisturbed: Callable[[], AbstractContextManager[None]],
) -> int:
    """Floods and kills; returns how many acknowledged things were lost. A start is left ``undisturbed``."""
    draw, total, lost, under_way = random.Random(seed), Counter[str](), 0, 0
    cut: Counter[str] = Counter()
    made = httpx.post(server.url + CALIBRATE, content=PAST, headers=CSV, timeout=60).json()
    for trial in range(trials):
        kind = KINDS[(trial + seed) % len(KINDS)]
        flood = asyncio.run(_flood(server, made["hash"], kind, draw.choice([1, 1, 2]), draw.uniform(0, 0.3)))
        with undisturbed():
            server.start()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            problems = _gone(client, flood.acknowledged)
        receipts = tuple(f"{each.receipt['seq']}:{each.receipt['hash']}" for each in flood.acknowledged)
        verdict = verify(Database(address, read_only=True), receipts)
        problems += verdict.problems
        total.update(each.kind for each in flood.acknowledged)
        lost += len(problems)
        unfinished = flood.under_way
        under_way += unfinished
        cut[kind] += unfinished
        for what in problems:
            print("LOST", what)
        for what, times in flood.refused.items():
            print(f"refused {times} times in trial {trial + 1}: {what}")
    print(
        f"kill seed {seed}: {trials} trials, {under_way} of them in the middle of the work, "
        f"{total.total():,} acknowledged, {lost} lost"
    )
    for kind in KINDS:
        print(
            f"  {kind:17} {total[kind]:6,} acknowledged; {cut[kind]} kills in the middle of the work after some"
        )
    return lost
