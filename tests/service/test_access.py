"""Who may do what: tokens, roles, sessions, forged requests, and where the service will not start."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from surelist.errors import InvalidInput
from surelist.service.app import create_app
from surelist.service.record import access
from surelist.service.record.record import ROLES
from surelist.service.settings import Settings, is_loopback
from tests.helpers.record import by
from tests.helpers.service import web_client
from tests.service.test_api import CSV, rows_of


@pytest.fixture
def guarded(settings):
    with TestClient(create_app(replace(settings, login=True)), base_url="http://localhost") as client:
        yield client


def token(client, role: str, **options) -> dict[str, str]:
    _, text = access.create_token(by(client.app.state.runtime.registry, "test"), role, role, **options)
    return {"Authorization": f"Bearer {text}"}


def test_without_a_token_nothing_is_shown(guarded):
    for url in ("/api/v1/policies", "/api/v1/log", "/metrics"):
        answer = guarded.get(url)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["type"] == "NotAuthenticated"
    for url in ("/", "/policies", "/selections", "/record"):
        answer = guarded.get(url, headers={"accept": "text/html"}, follow_redirects=False)
        back = "" if url == "/" else f"?next=%2F{url[1:]}"
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login{back}")
    assert guarded.get("/healthz").status_code == 200


@pytest.mark.slow
def test_roles(guarded, past, pool):
    viewer, operator, admin = (token(guarded, role) for role in ROLES)
    url = "/api/v1/calibrate?k=5&pool_size=100"
    assert guarded.post(url, content=past, headers={**CSV, **viewer}).status_code == 403
    made = guarded.post(url, content=past, headers={**CSV, **operator})
    assert made.status_code == 201
    policy = made.json()["hash"]
    assert made.json()["receipt"]["by"].startswith("operator (")
    select = f"/api/v1/policies/{policy}/select"
    assert guarded.post(select, json={"rows": rows_of(pool)}, headers=viewer).status_code == 403
    assert guarded.post(select, json={"rows": rows_of(pool)}, headers=operator).status_code == 200
    assert guarded.get("/api/v1/policies", headers=viewer).status_code == 200
    retire = f"/api/v1/policies/{policy}/retire"
    assert guarded.post(retire, json={"reason": "x"}, headers=operator).status_code == 403
    assert guarded.post(retire, json={"reason": "x"}, headers=admin).status_code == 200


def test_a_token_is_stored_hashed_revocable_and_expires(guarded):
    registry = guarded.app.state.runtime.registry
    made, text = access.create_token(by(registry, "test"), "job", "viewer")
    headers = {"Authorization": f"Bearer {text}"}
    assert guarded.get("/api/v1/policies", headers=headers).status_code == 200
    secret = text.split("_", 2)[2]
    assert not any(secret in entry.details for entry in registry.entries())
    access.revoke_token(by(registry, "test"), made.id)
    assert guarded.get("/api/v1/policies", headers=headers).status_code == 401
    assert [e.action for e in registry.entries(subject=made.id)] == ["token.revoked", "token.created"]
    assert replace(made, expires="2020-01-01T00:00:00").usable is False


@pytest.mark.parametrize(
    "text", ["", "x", "surelist_", "surelist__", "surelist_00000000_x", "surelist_%_x", "a" * 5000]
)
def test_wrong_tokens(guarded, text):
    answer = guarded.get("/api/v1/policies", headers={"Authorization": f"Bearer {text}"})
    assert answer.status_code == 401


@pytest.mark.slow
def test_a_token_for_one_policy(guarded, past, pool):
    admin = token(guarded, "admin")
    url = "/api/v1/calibrate?pool_size=100"
    one, two = (
        guarded.post(f"{url}&k={k}", content=past, headers={**CSV, **admin}).json()["hash"] for k in (4, 5)
    )
    only = token(guarded, "operator", policies=[one])
    body = {"rows": rows_of(pool)}
    made = guarded.post(f"/api/v1/policies/{one}/select", json=body, headers=only)
    assert made.status_code == 200
    assert guarded.post(f"/api/v1/policies/{two}/select", json=body, headers=only).status_code == 403
    assert guarded.get(f"/api/v1/policies/{two}", headers=only).status_code == 403
    assert [p["hash"] for p in guarded.get("/api/v1/policies", headers=only).json()] == [one]
    other = guarded.post(f"/api/v1/policies/{two}/select", json=body, headers=admin).json()["selection"]["id"]
    assert guarded.get(f"/api/v1/selections/{other}", headers=only).status_code == 403
    assert len(guarded.get("/api/v1/selections", headers=only).json()) == 1
    assert guarded.get("/api/v1/log", headers=only).status_code == 403


def form_token(client, url: str) -> str:
    return re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get(url).text).group(1)


def log_in(client, role: str = "admin") -> None:
    text = token(client, role)["Authorization"].split()[1]
    csrf = form_token(client, "/login")
    answer = client.post("/login", data={"csrf": csrf, "token": text}, follow_redirects=False)
    assert answer.status_code == 303


def test_log_in_and_out(guarded):
    log_in(guarded)
    assert guarded.get("/policies").status_code == 200
    cookie = next(iter(guarded.cookies.jar))
    assert cookie.has_nonstandard_attr("HttpOnly")
    csrf = form_token(guarded, "/")
    guarded.post("/logout", data={"csrf": csrf})
    answer = guarded.get("/policies", headers={"accept": "text/html"}, follow_redirects=False)
    assert answer.status_code == 303


def test_a_session_ends_with_its_token(guarded):
    log_in(guarded)
    registry = guarded.app.state.runtime.registry
    access.revoke_token(by(registry, "test"), access.list_tokens(registry)[0].id)
    assert (
        guarded.get("/policies", headers={"accept": "text/html"}, follow_redirects=False).status_code == 303
    )


def test_guessing_is_slowed_down(guarded):
    csrf = form_token(guarded, "/login")
    answers = [guarded.post("/login", data={"csrf": csrf, "token": "guess"}).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2
    assert int(guarded.post("/login", data={"csrf": csrf, "token": "x"}).headers["retry-after"]) > 0
    bearer = guarded.get("/api/v1/policies", headers={"Authorization": "Bearer surelist_00000000_x"})
    assert bearer.status_code == 429


def test_forms_need_the_token_of_their_session(local_client):
    assert local_client.post("/sandbox").status_code == 403
    csrf = form_token(local_client, "/")
    assert local_client.post("/sandbox", data={"csrf": csrf}).status_code == 200
    other = TestClient(local_client.app, base_url="http://localhost")
    other.get("/")
    assert other.post("/sandbox", data={"csrf": csrf}).status_code == 403


def test_someone_elses_upload_does_not_exist(local_client):
    csrf = form_token(local_client, "/")
    draft = local_client.post("/sandbox", data={"csrf": csrf}).url
    other = TestClient(local_client.app, base_url="http://localhost")
    assert other.get(str(draft)).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"Origin": "null"},
    ],
)
def test_other_sites_cannot_send_requests(local_client, past, headers):
    url = "/api/v1/calibrate?k=5&pool_size=100"
    answer = local_client.post(url, content=past, headers={**CSV, **headers})
    assert answer.status_code == 403
    assert (
        local_client.post(url, content=past, headers={**CSV, "Origin": "http://localhost"}).status_code == 201
    )


def test_headers_protect_the_page(local_client):
    headers = local_client.get("/").headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    html = local_client.get("/").text
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", html)


def test_secure_cookies_behind_https(settings):
    with TestClient(create_app(replace(settings, https=True)), base_url="https://localhost") as client:
        answer = client.get("/")
        assert answer.headers["set-cookie"].startswith("__Host-surelist=")
        assert "Secure" in answer.headers["set-cookie"]
        assert "max-age" in answer.headers["strict-transport-security"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", "127.0.0.1.example.org"])
def test_other_addresses_need_a_login(tmp_path, host):
    assert not is_loopback(host)
    with pytest.raises(InvalidInput, match="login"):
        Settings(database="x", folder=tmp_path, host=host)
    assert Settings(database="x", folder=tmp_path, host=host, login=True)


@pytest.mark.slow
def test_the_command_refuses_to_start_open_to_others(tmp_path, capsys):
    from surelist.cli import run

    command = [sys.executable, "-m", "surelist", "serve", "--data", str(tmp_path), "--host", "0.0.0.0"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "login is needed" in refused.stderr
    assert run([*command[3:], "--login"]) == 2
    assert "no token" in capsys.readouterr().err


def test_tokens_and_verify_log_from_the_command_line(address, capsys):
    from surelist.cli import run

    def call(*arguments: str) -> tuple[int, str]:
        code = run([*arguments, "--database", address])
        return code, capsys.readouterr().out

    code, text = call("token", "create", "--role", "operator", "--name", "nightly", "--days", "30", "--json")
    made = json.loads(text)
    assert code == 0
    assert made["token"].startswith("surelist_")
    assert made["id"] in call("token", "list")[1]
    assert call("token", "revoke", made["id"])[0] == 0
    assert call("token", "revoke", made["id"])[0] == 2
    assert "revoked" in call("token", "list")[1]
    code, text = call("verify-log", "--json")
    verdict = json.loads(text)
    assert (code, verdict["intact"], verdict["entries"]) == (0, True, 2)
    assert call("verify-log", "--receipt", verdict["head"])[0] == 0
    assert call("verify-log", "--receipt", "9:" + "0" * 64)[0] == 4
    assert call("verify-log", "--receipt", "nonsense")[0] == 2


GUESS = {"Authorization": "Bearer surelist_00000000_x"}


def test_a_valid_token_is_never_slowed_down(guarded):
    admin = token(guarded, "admin")
    for _ in range(15):
        guarded.get("/api/v1/policies", headers=GUESS)
    assert guarded.get("/api/v1/policies", headers=GUESS).status_code == 429
    assert guarded.get("/api/v1/policies", headers=admin).status_code == 200
    log_in(guarded)


def test_forwarded_addresses_do_not_evade_the_brake(guarded):
    statuses = [
        guarded.get("/api/v1/policies", headers={**GUESS, "X-Forwarded-For": f"10.0.0.{n}"}).status_code
        for n in range(12)
    ]
    assert statuses == [401] * 10 + [429] * 2


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.1.2.3", "203.0.113.7", "203.0.113.7"),
        ("10.1.2.3", "198.51.100.1, 203.0.113.7, 10.9.9.9", "203.0.113.7"),
        ("192.0.2.1", "203.0.113.7", "192.0.2.1"),
        ("10.1.2.3", "", "10.1.2.3"),
        ("10.1.2.3", "nonsense", "nonsense"),
        ("2001:db8::1", "", "2001:db8::/64"),
        ("2001:db8::2", "", "2001:db8::/64"),
    ],
)
def test_only_a_trusted_proxy_says_who_is_asking(tmp_path, peer, forwarded, client):
    settings = Settings(database="x", folder=tmp_path, trusted_proxies=("10.0.0.0/8",))
    assert settings.client_of(peer, forwarded) == client


def test_a_trusted_proxy_has_to_be_an_address(tmp_path):
    with pytest.raises(InvalidInput, match="trusted_proxy"):
        Settings(database="x", folder=tmp_path, trusted_proxies=("proxy.example",))


def test_behind_a_trusted_proxy_guesses_of_one_do_not_slow_down_another(settings):
    behind = replace(settings, login=True, trusted_proxies=("127.0.0.1",))
    with TestClient(create_app(behind), base_url="http://localhost", client=("127.0.0.1", 5000)) as client:
        for _ in range(12):
            client.get("/api/v1/policies", headers={**GUESS, "X-Forwarded-For": "203.0.113.7"})
        again = client.get("/api/v1/policies", headers={**GUESS, "X-Forwarded-For": "203.0.113.8"})
        assert again.status_code == 401


@pytest.fixture
def tokened(settings):
    with TestClient(
        create_app(replace(settings, local_token="k" * 32)), base_url="http://localhost"
    ) as client:
        yield client


def test_without_a_login_the_address_has_a_token(tokened, past):
    page = {"accept": "text/html"}

    def location(url: str) -> str:
        return tokened.get(url, headers=page, follow_redirects=False).headers.get("location", "")

    assert tokened.get("/api/v1/policies").status_code == 401
    assert tokened.get("/metrics").status_code == 401
    assert {location(url) for url in ("/", "/?token=wrong")} == {"/login"}
    assert location("/policies") == "/login?next=%2Fpolicies"
    assert location(f"/?token={'k' * 32}") == "/"
    assert tokened.get("/policies").status_code == 200
    other = TestClient(tokened.app, base_url="http://localhost")
    assert other.get("/policies", headers=page, follow_redirects=False).status_code == 303
    bearer = {"Authorization": f"Bearer {'k' * 32}"}
    made = tokened.post("/api/v1/calibrate?k=5&pool_size=100", content=past, headers={**CSV, **bearer})
    assert made.status_code == 201
    assert made.json()["receipt"]["by"] == "local"
    tokened.post("/logout", data={"csrf": form_token(tokened, "/")})
    assert location("/policies") == "/login?next=%2Fpolicies"
    tokened.post("/login", data={"csrf": form_token(tokened, "/login"), "token": "k" * 32})
    assert tokened.get("/policies").status_code == 200


@pytest.mark.slow
def test_the_printed_address_opens_the_page_and_another_does_not(tmp_path):
    command = [sys.executable, "-m", "surelist", "serve", "--port", "0", "--data", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = process.stdout.readline().split(" at ")[1].split()[0]
        base, _, key = address.partition("?token=")
        assert len(key) >= 32
        with web_client(follow_redirects=True, headers={"accept": "text/html"}) as web:
            assert web.get(base).url.path == "/login"
            assert "Shortlists with a proof" in web.get(address).text
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
