"""The team on the page: who may, what is on record of it, and that nobody is offered what would be refused."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from surelist.cli import run
from surelist.service.app import create_app
from surelist.service.errors import NotAuthenticated, StorageError
from surelist.service.record import access
from surelist.service.record.database import Database
from surelist.service.record.record import Actor
from surelist.service.record.verify import verify
from surelist.service.settings import Settings
from surelist.service.visitor import safe_path
from tests.helpers.record import by
from tests.helpers.service import close, operations
from tests.service.test_tokens_and_routes import Furnished


class Page(HTMLParser):
    """The links and forms of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[dict[str, Any]] = []
        self._select: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "a" and given.get("href", "").startswith(("/", "?")):
            self.links.append(given["href"])
        elif tag == "form":
            self.forms.append(
                {"method": given.get("method", "get"), "action": given.get("action"), "fields": {}}
            )
        elif tag in ("input", "button") and given.get("name") and self.forms:
            if given.get("type") not in ("checkbox", "radio", "file") or "checked" in given:
                self.forms[-1]["fields"].setdefault(given["name"], given.get("value") or "")
        elif tag == "select" and self.forms:
            self._select = given.get("name")
        elif tag == "option" and self._select and self.forms:
            fields = self.forms[-1]["fields"]
            chosen = "selected" in given or self._select not in fields
            fields[self._select] = given.get("value") or "" if chosen else fields[self._select]


def walk(client: TestClient, starts: list[str]) -> tuple[set[str], dict[tuple[str, ...], dict[str, Any]]]:
    """Every page that links lead to, and every form on them, once; of ``starts`` those that are open."""
    waiting = [path for path in starts if client.get(path).status_code == 200]
    seen, forms = set[str](), dict[tuple[str, ...], dict[str, Any]]()
    while waiting:
        path = waiting.pop()
        if (
            path in seen or len(seen) > 300 or path.endswith(".pdf")
        ):  # those are slow, and as open as their pages
            continue
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code in (200, 303), (path, answer.status_code, answer.text[-400:])
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        page = Page(answer.text)
        base = urlsplit(path).path
        for link in page.links:
            link = link.partition("#")[0]
            waiting.append(base + link if link.startswith("?") else link or base)
        for form in page.forms:
            action = form["action"] or base
            forms.setdefault((form["method"], action, *sorted(form["fields"])), {**form, "action": action})
    return seen, forms


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Furnished(tmp_path_factory.mktemp("service"))
    yield service
    close(service.app)


ROLES = [(role, limited) for role in ("viewer", "operator", "admin") for limited in (0, 1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("role", "limited"), ROLES)
def test_nobody_is_offered_what_would_be_refused(service, role, limited):
    client = service.client(role, *[service.mine, service.also][:limited])
    starts = [path for method, path in operations(service.app) if method == "GET" and "{" not in path]
    pages, forms = walk(
        client, [path for path in starts if not path.startswith(("/api", "/metrics", "/login"))]
    )
    assert {"/", "/policies", f"/policies/{service.mine}"} <= pages
    assert (f"/policies/{service.other}" in pages) == (not limited)
    assert (f"/policies/{service.also}" in pages) == (limited != 1)
    assert ("/team" in pages) == (role == "admin" and not limited)
    posts = {key: form for key, form in forms.items() if form["method"] == "post"}
    assert (len(posts) > 1 + (not limited)) == (role != "viewer")  # to log out, and to verify the record
    later = {"/logout": 3, "/sandbox": 2, **{a: 1 for _, a, *_ in posts if "forget" in a or "retire" in a}}
    for _, form in sorted(posts.items(), key=lambda item: later.get(item[1]["action"], 0)):
        if re.search("/team/tokens/.*/(revoke|change)", form["action"]):
            continue  # of oneself, among others; see below
        answer = client.post(form["action"], data=form["fields"])
        service.app.state.sandboxes.close()
        assert answer.status_code not in (401, 403, 404, 405, 500), (
            form,
            answer.status_code,
            answer.text[-300:],
        )


# -- people and tokens


@pytest.fixture
def app(tmp_path):
    app = create_app(Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "data", login=True))
    yield app
    close(app)


def visitor(app, role: str = "admin", name: str = "Anna") -> tuple[TestClient, str]:
    registry = app.state.runtime.registry
    token, text = access.create_token(by(registry, "test"), name, role)
    client = TestClient(app, base_url="http://localhost", follow_redirects=False)
    client.headers["accept"] = "text/html"
    client.get("/login")
    client.post("/login", data={"csrf": csrf(client), "token": text})
    return client, token.id


def csrf(client: TestClient) -> str:
    return access.csrf_token(client.cookies.get("surelist"))


def post(client: TestClient, path: str, **fields: Any) -> Any:
    return client.post(path, data={"csrf": csrf(client), **fields})


def last(app) -> Any:
    return app.state.runtime.registry.entries(limit=1)[0]


def problems(app) -> list[str]:
    return verify(Database(app.state.runtime.settings.database, read_only=True)).problems


def test_somebody_is_let_in_changed_and_sent_away_on_record(app):
    anna, _ = visitor(app)
    assert "Anna" in anna.get("/").text
    made = post(anna, "/team/tokens", name="Ben <b>", role="operator", days="30", once="x1")
    assert made.status_code == 201
    text = re.search(r'value="(surelist_[^"]+)"', made.text)[1]
    assert "Ben &lt;b&gt;" in made.text
    assert text not in anna.get("/team").text
    ben = TestClient(
        app, base_url="http://localhost", follow_redirects=False, headers={"accept": "text/html"}
    )
    ben.get("/login")
    assert post(ben, "/login", token=text).headers["location"] == "/"
    assert "operator" in ben.get("/").text
    assert ben.get("/team").status_code == 403
    ident = text.split("_")[1]
    assert post(anna, f"/team/tokens/{ident}/change", role="viewer").status_code == 303
    assert (last(app).action, last(app).facts) == ("token.changed", {"role": "viewer", "policy": None})
    assert last(app).actor.startswith("Anna (")
    assert ben.get("/new").status_code == 403
    again = post(anna, f"/team/tokens/{ident}/change", role="viewer")
    assert again.status_code == 409
    assert post(anna, f"/team/tokens/{ident}/change", role="king").status_code == 400
    assert post(anna, f"/team/tokens/{ident}/revoke").status_code == 303
    assert ben.get("/").headers["location"] == "/login"
    assert post(anna, f"/team/tokens/{ident}/change", role="admin").status_code == 404
    assert post(anna, f"/team/tokens/{ident}/revoke").status_code == 404
    assert problems(app) == []


@pytest.mark.slow
def test_a_token_for_several_policies_is_made_and_changed(service, capsys):
    admin, registry = service.client("admin"), service.runtime.registry
    both = sorted([service.mine, service.also])
    made = post(admin, "/team/tokens", name="Dora", role="operator", scope="some", policy=both)
    ident = re.search(r'value="surelist_([^_]+)_', made.text)[1]

    def dora() -> Any:
        return next(each for each in access.list_tokens(registry) if each.id == ident)

    assert dora().policies == tuple(both)
    assert "let Dora in as operator, for the policies " in admin.get("/record").text
    cards = re.findall(r"<li class=\"card tight\">.*?</li>", admin.get("/team").text, re.S)
    card = next(each for each in cards if ident in each)
    assert set(re.findall(r'value="([0-9a-f]{64})" checked', card)) == set(both)
    path = f"/team/tokens/{ident}/change"
    for fields in ({"scope": "some"}, {"scope": "all", "policy": [service.mine]}):
        assert post(admin, path, role="operator", **fields).status_code == 400
    assert (
        post(admin, path, role="operator", scope="some", policy=["0" * 64, service.mine]).status_code == 404
    )
    assert post(admin, path, role="operator", scope="some", policy=both).status_code == 409
    assert dora().policies == tuple(both)
    assert post(admin, path, role="operator", scope="some", policy=[service.also]).status_code == 303
    assert dora().policies == (service.also,)
    assert post(admin, path, role="operator", scope="all").status_code == 303
    assert dora().policies is None
    database = ["--database", service.runtime.settings.database]
    given = [word for each in both for word in ("--policy", each)]
    assert run(["token", "create", "--role", "viewer", "--name", "nightly", *given, *database]) == 0
    assert access.find_token(registry, capsys.readouterr().out.strip()).policies == tuple(both)
    assert run(["token", "list", *database]) == 0
    assert f"nightly, policies {both[0][:12]}, {both[1][:12]}" in capsys.readouterr().out
    assert run(["token", "list", "--json", *database]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["policies"] == both
    assert verify(Database(service.runtime.settings.database, read_only=True)).problems == []


def test_a_token_as_older_versions_wrote_it_is_for_one_policy():
    token = access.Token("0a1b2c3d", "Eve", "admin", "a" * 64, "2026-01-01T00:00:00.000+00:00", None, None)
    eve = access.as_actor(token)
    assert eve.policies == ("a" * 64,)
    assert not eve.leads
    assert not eve.may_use("b" * 64)
    assert not Actor("nobody", "admin", ()).may_use("a" * 64)  # for none is not for all


def test_a_form_that_is_sent_twice_makes_one_token(app):
    anna, _ = visitor(app)
    first = post(anna, "/team/tokens", name="Ben", role="viewer", once="same")
    second = post(anna, "/team/tokens", name="Ben", role="viewer", once="same")
    other = post(anna, "/team/tokens", name="Eve", role="admin", once="same")
    assert (first.status_code, second.status_code, other.status_code) == (201, 409, 409)
    assert "shown then and is not kept" in second.text
    assert len(access.list_tokens(app.state.runtime.registry)) == 2
    anna.headers["idempotency-key"] = "k1"
    path = f"/team/tokens/{access.list_tokens(app.state.runtime.registry)[-1].id}/revoke"
    entries = {post(anna, path).status_code: last(app).seq, post(anna, path).status_code: last(app).seq}
    assert set(entries) == {303}
    assert problems(app) == []


def test_the_last_admin_stays(app):
    anna, ident = visitor(app)
    for path, fields in (
        (f"/team/tokens/{ident}/revoke", {}),
        (f"/team/tokens/{ident}/change", {"role": "viewer"}),
    ):
        answer = post(anna, path, **fields)
        assert answer.status_code == 409
        assert "the last admin" in answer.text
    ben, _ = visitor(app, "operator", "Ben")
    assert post(ben, f"/team/tokens/{ident}/revoke").status_code == 403
    _, other = visitor(app, "admin", "Cleo")
    assert post(anna, f"/team/tokens/{ident}/change", role="operator").status_code == 303
    assert post(anna, f"/team/tokens/{other}/revoke").status_code == 403
    assert problems(app) == []


def test_forms_of_other_sites_are_refused(app):
    anna, ident = visitor(app)
    for path in ("/team/tokens", f"/team/tokens/{ident}/change", f"/team/tokens/{ident}/revoke"):
        assert anna.post(path, data={"csrf": "0" * 64, "name": "x", "role": "admin"}).status_code == 403


@pytest.mark.parametrize("change", ["'operator', 'admin'", "'policy', 'police'"])
def test_a_token_cannot_be_changed_behind_the_record(app, change):
    _, ident = visitor(app, "viewer")
    registry = app.state.runtime.registry
    access.change_token(by(registry, "test"), ident, "operator", [])
    sql = f"UPDATE log SET details = replace(details, {change}) WHERE subject = ?"
    with pytest.raises(StorageError) as refused:
        registry.writer.submit(lambda batch: batch.connection.execute(sql, [ident])).result()
    assert "append-only" in refused.value.detail
    assert problems(app) == []


def test_a_token_made_again_under_its_name_lets_nobody_in(app):
    """An entry with the same id and another secret: the first one counts, and verifying says so."""
    _, ident = visitor(app, "viewer")
    registry = app.state.runtime.registry
    again = access.TokenCreated(
        name="Eve", role="admin", policy=None, expires=None,
        fingerprint=access.fingerprint(hashlib.sha256(b"mine").hexdigest()),
    )  # fmt: skip
    registry.append("eve", ident, again).result()
    assert next(each for each in access.list_tokens(registry) if each.id == ident).role == "viewer"
    with pytest.raises(NotAuthenticated):
        access.find_token(registry, f"surelist_{ident}_mine")
    assert [each.partition(": ")[2] for each in problems(app)] == ["the same token was made before"]


# -- logging in


def test_after_login_one_is_where_one_was(app):
    anna, _ = visitor(app)
    _, text = access.create_token(by(app.state.runtime.registry, "test"), "Ben", "viewer")
    ben = TestClient(
        app, base_url="http://localhost", follow_redirects=False, headers={"accept": "text/html"}
    )
    asked = ben.get("/policies?q=a%26b&state=use")
    assert asked.headers["location"] == "/login?next=%2Fpolicies%3Fq%3Da%2526b%26state%3Duse"
    page = ben.get(asked.headers["location"])
    back = re.search(r'name="next" value="([^"]+)"', page.text)[1].replace("&amp;", "&")
    wrong = post(ben, "/login", token="nonsense", next=back)
    assert wrong.status_code == 401
    assert 'name="next" value="/policies?q=a%26b' in wrong.text
    assert post(ben, "/login", token=text, next=back).headers["location"] == "/policies?q=a%26b&state=use"
    anna.cookies.clear()
    sent = anna.post("/drafts", data={}, headers={"referer": "http://localhost/new?like=1"})
    assert sent.headers["location"] == "/login?next=%2Fnew%3Flike%3D1"
    sent = anna.post("/drafts", data={}, headers={"referer": "http://elsewhere/new"})
    assert sent.headers["location"] == "/login"


@pytest.mark.parametrize(
    "text",
    [
        "//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil", "javascript:alert(1)", "/a\nb", "",
        "policies", "/login", "/logout", "/" + "a" * 3000, "///evil", "/\t/evil", "http:/evil", " /x",
    ],
)  # fmt: skip
def test_nothing_leads_elsewhere_after_login(app, text):
    assert safe_path(text) == "/"
    assert safe_path("/record?q=a b&x=%2F%2Fy#z") == "/record?q=a b&x=%2F%2Fy#z"
