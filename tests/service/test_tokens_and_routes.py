"""Every route of the app with every kind of token: who may, who may not, and what nobody sees.

The routes come from the app itself, so that a new one is covered the day it is written.
"""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from starlette.testclient import TestClient

from surelist.service import worklist
from surelist.service.app import create_app
from surelist.service.choices import ChosenColumns
from surelist.service.record import access
from surelist.service.record.record import ROLES
from surelist.service.settings import Settings
from surelist.service.uploads import list_of
from tests.helpers.record import by
from tests.helpers.service import close, csv_text, operations
from tests.service.test_api import CSV, rows_of

OPEN = {
    ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/login"), ("POST", "/login"), ("GET", "/docs"),
    ("GET", "/api/v1/openapi.json"), ("POST", "/logout"),
}  # fmt: skip
ADMIN = {
    ("POST", "/api/v1/policies/{policy}/retire"), ("POST", "/policies/{digest}/retire"), ("GET", "/team"),
    ("POST", "/team/settings"), ("POST", "/team/tokens"), ("POST", "/team/tokens/{ident}/change"), ("POST", "/team/tokens/{ident}/revoke"),
}  # fmt: skip
VIEWER_FORMS = {("POST", "/record/verify")}  # which change nothing
# these hold whatever the visitor has uploaded, so an operator is needed to look
OPERATOR_READS = {
    ("GET", "/labellings/new"), ("GET", "/collections/{ident}"), ("GET", "/campaigns/new"),
    ("GET", "/drafts/{ident}/campaign"), ("GET", "/campaigns/pools/{ident}"),
    ("GET", "/api/v1/labellings/{ident}/next"),
    ("GET", "/campaigns/{ident}/pools/{pool}/shortlist.{format}"),
    ("GET", "/new"), ("GET", "/drafts/{ident}"), ("GET", "/drafts/{ident}/promise"), ("GET", "/drafts/{ident}/result"),
    ("GET", "/drafts/{ident}/explore"), ("GET", "/drafts/{ident}/problems.xlsx"), ("GET", "/pools/{ident}"),
    ("GET", "/selections/{ident}/shortlist.{format}"), ("GET", "/kept"),
    ("GET", "/selections/{ident}/review"), ("GET", "/selections/{ident}/reviews.csv"),
}  # fmt: skip


class Furnished:
    """An app with two policies, a selection and reviews of each, and every kind of token."""

    def __init__(self, folder) -> None:
        self.app = create_app(Settings(database=str(folder / "r.db"), folder=folder / "data", login=True))
        self.runtime = self.app.state.runtime
        self.admin = self.client("admin")
        past, pool = csv_text(2000, labelled=True), csv_text(100, labelled=False, seed=1)
        make = [
            self.admin.post(f"/api/v1/calibrate?k={k}&pool_size=100", content=past, headers=CSV).json()
            for k in (4, 6, 5)
        ]
        self.mine, self.also, self.other = (each["hash"] for each in make)
        self.my_list, self.also_list, self.other_list = (
            self.admin.post(f"/api/v1/policies/{each}/select", json={"rows": rows_of(pool)}).json()
            for each in (self.mine, self.also, self.other)
        )
        for made in (self.my_list, self.other_list):
            self._keep(folder, made["selection"]["id"], made["shortlist"])
        self.things = self._things()

    def _things(self) -> dict[str, str]:
        """Something real under every address that names one, made by the admin: a refusal is not for want of it."""
        bystander, _ = access.create_token(by(self.runtime.registry, "test"), "bystander", "viewer")
        people = csv_text(300, labelled=False)
        spare, design = (self._sent("/labellings", people) for _ in range(2))
        asked = {"score": "score", "id": "candidate", "promise": "expected", "k": "5", "pool_size": "100"}
        begun = self._sent(design, None, **asked, labels="50", alpha="10", name="Spring")
        pool = self._sent(f"/policies/{self.other}/pool", people)
        past = self._sent("/drafts", csv_text(300, labelled=True))
        campaign, self.campaign_pool = self._campaign(people)
        waiting = self._sent(f"/campaigns/{campaign}/pool", people)
        made = {
            "/drafts/": past, "/pools/": pool, "/collections/": spare, "/labellings/": begun,
            "/campaigns/pools/": waiting,
        }  # fmt: skip
        things = {kind: at.removeprefix(kind) for kind, at in made.items()}
        return things | {
            "/api/v1/labellings/": things["/labellings/"],
            "/campaigns/": campaign,
            "/api/v1/campaigns/": campaign,
            "/team/tokens/": bystander.id,
            "/kept/uploads/": things["/drafts/"],
        }

    def _campaign(self, people: str) -> tuple[str, str]:
        """A campaign and a pool that it screened."""
        start = "/api/v1/campaigns?k=5&pool_size=100&score=score&label=qualified&id=candidate"
        made = self.admin.post(start, content=csv_text(2000, labelled=True), headers=CSV).json()["id"]
        screen = f"/api/v1/campaigns/{made}/screen?name=first"
        return made, self.admin.post(screen, content=people, headers=CSV).json()["pool"]

    def _sent(self, path: str, file: str | None, /, **form: str) -> str:
        form["csrf"] = access.csrf_token(self.admin.cookies.get("surelist"))
        files = {"file": ("a.csv", file)} if file else None
        answer = self.admin.post(path, data=form, files=files)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def _keep(self, folder, selection: str, rows) -> None:
        """As if the list had been made on the page and were being reviewed."""
        spool, text = self.runtime.spool, io.StringIO(newline="")
        table = csv.DictWriter(text, rows[0].keys())
        table.writeheader()
        table.writerows(rows)
        upload = spool.store(io.BytesIO(text.getvalue().encode()), 1 << 20)
        columns = ChosenColumns(score="score", id="candidate")
        worklist.build(upload.path, list_of(upload), columns)
        spool.keep_result(selection, upload, 3600, columns)

    def client(self, role: str | None, *policies: str) -> TestClient:
        """By Authorization header and by session at once: the API reads the one, pages the other."""
        client = TestClient(self.app, base_url="http://localhost", follow_redirects=False)
        client.headers["accept"] = "text/html"
        if role is None:
            client.get("/login")
            return client
        registry = self.runtime.registry
        token, text = access.create_token(by(registry, "test"), role, role, policies=policies)
        client.headers["authorization"] = f"Bearer {text}"
        client.cookies.set("surelist", access.begin_session(registry, token, 3600), domain="localhost.local")
        return client

    def address(self, path: str, policy: str, selection: str) -> str:
        """A route with everything filled in."""
        ident = next((thing for kind, thing in self.things.items() if path.startswith(kind)), "0" * 16)
        for name, value in {
            "{policy}": policy, "{digest}": policy, "{selection}": selection, "{format}": "csv",
            "{ident}": selection if path.startswith("/selections") else ident,
            "{campaign}": ident, "{pool}": self.campaign_pool,
        }.items():  # fmt: skip
            path = path.replace(name, value)
        return path

    def call(self, client: TestClient, method: str, path: str, policy: str, selection: str):
        path = self.address(path, policy, selection)
        if method == "GET":
            both = {"p": [policy, policy]} if path.endswith("compare") else None
            return client.get(path, params=both)
        if path.startswith("/api/"):
            return client.post(path, json={"rows": [{"score": 0.9, "qualified": 1}], "reason": "x"})
        csrf = access.csrf_token(client.cookies.get("surelist"))
        candidate = self.other_list["shortlist"][0]["candidate"]
        form = {
            "csrf": csrf,
            "example": "1",
            "reason": "x",
            "rank": "1",
            "mark": "yes",
            "name": "n",
            "text": candidate,
        }
        return client.post(path, data=form)

    def entries(self) -> int:
        return int(self.runtime.registry.database.read("SELECT count(*) FROM log")[0][0])


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Furnished(tmp_path_factory.mktemp("service"))
    yield service
    close(service.app)


def routes(tmp_path) -> list[tuple[str, str]]:
    app = create_app(Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "d"))
    close(app)
    return [each for each in operations(app) if each not in OPEN]


@pytest.fixture(scope="module")
def guarded_routes(tmp_path_factory):
    found = routes(tmp_path_factory.mktemp("routes"))
    assert len(found) > 35
    return found


@pytest.mark.slow
def test_every_address_is_asked_for_something_that_is_there(service, guarded_routes):
    """A new kind of thing with pages of its own belongs into ``Furnished._things``."""
    known = re.compile(r"\{(policy|digest|selection|format)\}|/selections/\{ident\}")
    rest = {path for _, path in guarded_routes if "{" in known.sub("", path)}
    assert [path for path in sorted(rest) if not path.startswith(tuple(service.things))] == []


@pytest.mark.slow
def test_without_a_token_every_route_refuses(service, guarded_routes):
    client, before = service.client(None), service.entries()
    for method, path in guarded_routes:
        answer = service.call(client, method, path, service.other, service.other_list["selection"]["id"])
        login = answer.status_code == 303 and answer.headers["location"].partition("?")[0] == "/login"
        assert answer.status_code == 401 or login, (method, path, answer.status_code)
    assert service.entries() == before


@pytest.mark.slow
def test_a_viewer_changes_nothing(service, guarded_routes):
    client = service.client("viewer")
    before = service.entries()
    for method, path in guarded_routes:
        answer = service.call(client, method, path, service.other, service.other_list["selection"]["id"])
        form = method == "POST" and (method, path) not in VIEWER_FORMS
        refused = form or (method, path) in OPERATOR_READS | ADMIN
        assert (answer.status_code == 403) == refused, (method, path, answer.status_code)
    assert service.entries() == before


@pytest.mark.slow
def test_an_operator_does_everything_but_what_admins_do(service, guarded_routes):
    client = service.client("operator")
    for method, path in guarded_routes:
        answer = service.call(client, method, path, service.other, service.other_list["selection"]["id"])
        assert (answer.status_code == 403) == ((method, path) in ADMIN), (method, path, answer.text)


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("role", ROLES)
def test_a_token_for_some_policies_reaches_no_other(service, guarded_routes, role, several):
    client = service.client(role, service.mine, *[service.also] * several)
    before = service.entries()
    hidden = {
        service.other,
        service.other_list["selection"]["id"],
        service.other_list["selection"]["receipt"]["hash"],
        *service.things.values(),
        service.campaign_pool,
    }
    if not several:
        hidden |= {service.also, service.also_list["selection"]["id"]}
    for method, path in guarded_routes:
        answer = service.call(client, method, path, service.other, service.other_list["selection"]["id"])
        about_other = re.search(r"\{(policy|digest|selection)\}|/selections/\{ident\}|compare", path)
        if about_other:
            assert answer.status_code == 403, (method, path, answer.status_code)
        elif re.search(r"\{(ident|campaign|pool)\}", path):
            assert answer.status_code in (403, 404), (method, path, answer.status_code)
        shown = answer.text.replace(answer.request.url.path, "")
        assert not any(secret in shown for secret in hidden), (method, path)
        if method == "POST":
            assert answer.status_code in (403, 404), (method, path, answer.status_code)
    assert service.entries() == before


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_a_token_for_several_policies_reaches_each_of_them_as_one_for_all_does(service, guarded_routes, role):
    limited, free = service.client(role, service.also, service.mine), service.client(role)
    reads = [path for method, path in guarded_routes if method == "GET" and not path.endswith(".pdf")]
    about = re.compile(r"\{(policy|digest|selection)\}|/selections/\{ident\}|compare")
    lists = {service.mine: service.my_list, service.also: service.also_list}
    for path in filter(about.search, reads):
        for policy, made in lists.items():
            answers = [
                service.call(client, "GET", path, policy, made["selection"]["id"])
                for client in (limited, free)
            ]
            assert answers[0].status_code == answers[1].status_code, path
            assert (answers[0].status_code == 403) == (("GET", path) in OPERATOR_READS and role == "viewer")
    assert [p["hash"] for p in limited.get("/api/v1/policies").json()] == [service.also, service.mine]
    assert [p["hash"] for p in limited.get("/api/v1/policies?limit=1").json()] == [service.also]
    everything = free.get("/api/v1/selections?limit=500").json()
    mine = [each for each in everything if each["policy"] in lists]
    assert mine != everything
    assert limited.get("/api/v1/selections?limit=500").json() == mine  # in the same order
    first = limited.get("/api/v1/selections?limit=1").json()
    rest = limited.get(f"/api/v1/selections?before={first[0]['receipt']['seq']}&limit=500").json()
    assert first + rest == mine


def test_a_token_for_one_policy_still_uses_its_own(service):
    client = service.client("operator", service.mine)
    selection = service.my_list["selection"]["id"]
    for path in (f"/policies/{service.mine}", f"/selections/{selection}", "/policies", "/selections", "/"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert service.mine in answer.text or selection in answer.text
    body = {"reviews": [{"candidate": service.my_list["shortlist"][0]["candidate"], "qualified": True}]}
    assert client.post(f"/api/v1/selections/{selection}/reviews", json=body).status_code == 201
    assert [p["hash"] for p in client.get("/api/v1/policies").json()] == [service.mine]
    assert {s["policy"] for s in client.get("/api/v1/selections").json()} == {service.mine}
    assert client.get("/api/v1/log").status_code == 403
    assert json.loads(client.get(f"/api/v1/selections/{selection}/reviews").text)["reviewed"] == 1
