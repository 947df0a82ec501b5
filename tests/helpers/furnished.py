"""A service with something on every page: drafts at every step, policies in every state, reviews, labelling, campaigns."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surelist import examples
from surelist.service.record import access
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from tests.helpers.record import by
from tests.helpers.service import Server, csv_text, web_client

CSV = {"content-type": "text/csv"}

# forms as a person fills them in
CAMPAIGN = {
    "k": "5",
    "pool_size": "100",
    "alpha": "20",
    "monitor_alpha": "5",
    "schedule": "2, 6",
    "name": "May",
}
LABELLING = {
    "score": "score", "id": "person", "promise": "expected", "k": "5", "pool_size": "100", "alpha": "10"
}  # fmt: skip


class Browser(Protocol):
    """Somebody who is logged in and sends forms; the answer is where it led to."""

    client: Any

    def get(self, path: str) -> Any: ...
    def post(self, path: str, files: Any = None, **form: str) -> Any: ...


class Remote:
    """The same over the network."""

    def __init__(self, url: str, token: str) -> None:
        self.client = web_client(base_url=url, follow_redirects=True, headers={"accept": "text/html"})
        self.client.get("/login")
        self.cookie = self.client.cookies["surelist"]
        self.post("/login", token=token)
        self.cookie = self.client.cookies["surelist"]
        self.client.headers["authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def post(self, path: str, files: Any = None, **form: str) -> Any:
        csrf = access.csrf_token(self.cookie)
        return self.client.post(path, data={"csrf": csrf, **form}, files=files)


def serve(folder: Path) -> tuple[Server, Remote]:
    """A service with a login, and its admin."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(1) as aside:  # the browser's own event loop runs in this thread
        text = aside.submit(_first_token, folder).result()
    server = Server(folder, "--login")
    return server, Remote(server.url, text)


def _first_token(folder: Path) -> str:
    database = Database(str(folder / "surelist.db"))
    database.prepare()
    registry = Registry(database)
    _, text = access.create_token(by(registry, "test"), "Anna", "admin")
    registry.close()
    return text


def furnish(who: Browser) -> dict[str, str]:
    """Something of everything; the addresses of the pages that are about something."""
    past = csv_text(2000, labelled=True)
    found = {f"policy {k}": f"/policies/{_calibrate(who, past, k)}" for k in (3, 4, 5)}
    found |= _drafts(who, past)
    found |= _lists(who, found["policy 5"])
    who.post(f"{found['policy 3']}/retire", reason="a new model")
    _alarm(who, found["policy 4"])
    two = "&".join(f"p={found[each].rpartition('/')[2]}" for each in ("policy 4", "policy 5"))
    found |= _recall(who, past) | _of_groups_and_pools(who, past)
    return found | _labelling(who) | _campaign(who, past) | {"compare": f"/policies/compare?{two}"}


def _calibrate(who: Browser, past: str, k: int) -> str:
    made = who.client.post(
        f"/api/v1/calibrate?k={k}&pool_size=100&name=Trial%20{k}", content=past, headers=CSV
    )
    return str(made.json()["hash"])


def _made(who: Browser, past: str, query: str) -> str:
    made = who.client.post(f"/api/v1/calibrate?{query}", content=past, headers=CSV)
    assert made.status_code == 201, made.text
    return f"/policies/{made.json()['hash']}"


def _recall(who: Browser, past: str) -> dict[str, str]:
    """A recall, and a pool of it that waits for its columns: how many of the others are reviewed is asked there."""
    policy = _made(who, past, "promise=recall&share=0.8&name=Few%20missed")
    pool = {"file": ("pool.csv", csv_text(100, labelled=False, seed=31))}
    return {"recall": policy, "recall pool": who.post(f"{policy}/pool", files=pool).url.path}


def _of_groups_and_pools(who: Browser, past: str) -> dict[str, str]:
    """A promise to each of four groups, and one about whole pools: with several pictures, and with another one.

    One group and the policy have names that are wider than a page and hold no blank.
    """
    long = "east" * 60
    targets = "&".join(f"target={site}%3D1/25" for site in (long, "north", "south", "west"))
    about = f"group=site&group_rows=own&purpose=outreach&name={'Sites' * 30}&{targets}"
    groups = _made(who, past.replace(",east,", f",{long},"), about)
    header, *lines = past.splitlines()
    pooled = "\n".join([f"{header},clinic", *(f"{line},c{at % 40}" for at, line in enumerate(lines))])
    return {
        "groups": groups, "groups report": groups + "/report",
        "whole pools": _made(who, pooled, "promise=next-pool&k=1&pool=clinic&name=Clinics"),
        "every pool": _made(who, past, "promise=per-pool&k=3&pool_size=100&name=Wards"),
    }  # fmt: skip


def _drafts(who: Browser, past: str) -> dict[str, str]:
    """An upload at the choice of columns, at a promise that holds and one that does not, and one with two sheets."""
    import io

    import xlsxwriter

    found = {}
    for name, k in (("columns", None), ("result", "5"), ("refused", "40")):
        page = who.post("/drafts", files={"file": ("past.csv", past)})
        found[name] = page.url.path
        if k is None:
            continue
        promise = who.post(page.url.path, score="score", label="qualified", decimal="auto")
        shown = re.search(r'name="shown" value="([^"]+)"', promise.text)[1]  # type: ignore[index]
        asked = {"promise": "expected", "k": k, "pool_size": "100", "alpha": "10", "rule": "exact"}
        found[name] = who.post(promise.url.path, shown=shown, **asked).url.path
        found[f"promise {name}"] = promise.url.path
    found["explore"] = found["refused"].replace("/result", "/explore")
    book = io.BytesIO()
    made = xlsxwriter.Workbook(book)
    for name in ("May", "June"):
        made.add_worksheet(name).write_row(0, 0, ["score", "label"])
    made.close()
    found["sheets"] = who.post("/drafts", files={"file": ("two.xlsx", book.getvalue())}).url.path
    return found


def screen(who: Browser, policy: str, seed: int, rows: int = 200, **form: str) -> str:
    """A pool on the page; the address of its shortlist."""
    pool = {"file": (f"day-{seed}.csv", csv_text(rows, labelled=False, seed=seed))}
    page = who.post(f"{policy}/pool", files=pool)
    chosen = {"score": "score", "id": "candidate", "name": f"Day {seed}", **form}
    return str(who.post(page.url.path, **chosen).url.path)


def review(who: Browser, shortlist: str, qualified: int) -> None:
    """The first candidates yes, the others no."""
    ids = [line.split(",")[1] for line in who.get(shortlist + "/reviews.csv").text.splitlines()[1:]]
    text = "candidate,review\n" + "".join(f"{each},{int(n < qualified)}\n" for n, each in enumerate(ids))
    who.post(shortlist + "/reviews", files={"file": ("r.csv", text)}, id="candidate", label="review")


def _lists(who: Browser, policy: str) -> dict[str, str]:
    pool = {"file": ("pool.csv", csv_text(100, labelled=False, seed=9))}
    found = {"pool": who.post(f"{policy}/pool", files=pool).url.path}
    finished, running = (screen(who, policy, seed, watch="1") for seed in (1, 2))
    review(who, finished, 12)
    who.post(finished + "/finish")
    rows = {"file": ("past.csv", csv_text(1500, labelled=True, seed=40))}
    who.post(finished + "/list", files=rows, score="score", label="qualified")
    who.post(running + "/marks", rank="1", mark="yes")
    who.post(running + "/notes", rank="1", text="called, will call back")
    found |= {"finished": finished, "selection": running, "review": running + "/review"}
    found |= {"report": running + "/report", "policy report": policy + "/report"}
    return found | {"review finished": finished + "/review"}


def _alarm(who: Browser, policy: str) -> None:
    for seed in range(3, 9):
        shortlist = screen(who, policy, seed, watch="1")
        review(who, shortlist, 0)
        if "the promise is withdrawn" in who.post(shortlist + "/finish").text:
            return
    raise AssertionError("no alarm")


def _labelling(who: Browser) -> dict[str, str]:
    scores, _ = examples.population(np.random.default_rng(6), 2000)
    people = "person,score\n" + "".join(f"p{i:05d},{score:.9f}\n" for i, score in enumerate(scores))
    pages = [who.post("/labellings", files={"file": ("people.csv", people)}).url.path for _ in range(2)]
    begun = who.post(pages[1], **LABELLING, labels="200", name="Spring").url.path
    reviewed = f"/selections/{begun.rpartition('/')[2]}/review"
    return {"design": pages[0], "labelling": begun, "label": reviewed, "labelled": f"{begun}/report"}


def _campaign(who: Browser, past: str) -> dict[str, str]:
    """One with a pool that waits for its columns and one that waits for reviews; and one still without terms."""
    found = {}
    for name in ("campaign terms", "campaign"):
        page = who.post("/campaigns", files={"file": ("past.csv", past)})
        terms = who.post(page.url.path, score="score", label="qualified", id="candidate", labels="all")
        found[name] = terms.url.path
    shown = re.search(r'name="shown" value="([^"]+)"', terms.text)[1]  # type: ignore[index]
    found["campaign"] = who.post(terms.url.path, shown=shown, **CAMPAIGN, one_in="8").url.path
    for seed in (21, 22):
        pool = {"file": (f"day-{seed}.csv", csv_text(100, labelled=False, seed=seed))}
        found["campaign pool"] = who.post(found["campaign"] + "/pool", files=pool).url.path
        if seed == 21:
            form = {"score": "score", "id": "candidate", "name": "Day 21"}
            found["campaign review"] = who.post(found["campaign pool"], **form).url.path
    return found
