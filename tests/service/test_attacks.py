"""Attacks on every route of the app: forms of other sessions and sites, bodies, odd addresses, what others keep.

The routes come from the app itself. Who may do what is in ``test_tokens_and_routes``; names and files that would
run somewhere are in ``test_hostile_names``.
"""

from __future__ import annotations

import asyncio
import re
from urllib.parse import quote

import pytest

from surelist.service import middleware
from surelist.service.record import access
from tests.helpers.service import close, operations
from tests.service.test_limits import send_endlessly
from tests.service.test_tokens_and_routes import OPEN, VIEWER_FORMS, Furnished

ODD = (
    "../../etc/passwd",
    "..\\..\\x",
    "%2e%2e%2f",
    "\0",
    "x" * 5000,
    "*",
    "'; DROP TABLE log; --",
    "😀",
    "con",
    "0",
)
UPLOADS = ("/drafts/", "/pools/", "/collections/", "/campaigns/pools/")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Furnished(tmp_path_factory.mktemp("service"))
    yield service
    close(service.app)


@pytest.fixture(scope="module")
def routes(service):
    return operations(service.app)


def filled(service: Furnished, path: str) -> str:
    return service.address(path, service.other, service.other_list["selection"]["id"])


@pytest.mark.slow
def test_what_one_person_uploaded_is_nobody_elses(service, routes):
    other, before = service.client("admin"), service.entries()
    asked = [(method, path) for method, path in routes if path.startswith(UPLOADS)]
    assert len(asked) > 10
    for method, path in asked:
        answer = service.call(other, method, path, service.other, service.other_list["selection"]["id"])
        assert answer.status_code == 404, (method, path, answer.status_code)
    assert service.entries() == before
    for kind in UPLOADS:
        assert service.admin.get(kind + service.things[kind]).status_code == 200


@pytest.mark.slow
def test_an_upload_is_only_what_it_was_sent_as(service, routes):
    """Past candidates asked for as a pool, a pool as a collection: not there, for their owner either."""
    before = service.entries()
    csrf = {"csrf": access.csrf_token(service.admin.cookies.get("surelist")), "score": "score", "alpha": "10"}
    for method, path in routes:
        kind = max((each for each in UPLOADS if path.startswith(each)), key=len, default=None)
        for other in set(UPLOADS) - {kind} if kind else ():
            address = path.replace("{ident}", service.things[other])
            answer = service.admin.request(method, address, data=csrf if method == "POST" else None)
            led = path == "/pools/{ident}" and answer.status_code == 303  # to where it belongs
            assert led or answer.status_code in (400, 404), (method, path, other, answer.status_code)
    assert service.entries() == before


@pytest.mark.slow
def test_every_form_needs_the_token_of_its_own_session(service, routes):
    forms = [path for method, path in routes if method == "POST" and not path.startswith("/api/")]
    forms = [path for path in forms if path != "/login"]
    assert len(forms) > 20
    before = service.entries()
    other = access.csrf_token(service.client("admin").cookies.get("surelist"))
    began = service.entries() - before  # that session
    for path in forms:
        for csrf in ({}, {"csrf": ""}, {"csrf": other}):
            answer = service.admin.post(filled(service, path), data={**csrf, "reason": "x", "name": "n"})
            assert answer.status_code == 403, (path, csrf, answer.status_code)
    assert service.entries() == before + began


def test_no_other_site_can_send_anything(service, routes):
    before = service.entries()
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        for method, path in routes:
            if method == "POST":
                answer = service.admin.post(filled(service, path), json={}, headers=headers)
                assert answer.status_code == 403, (path, headers)
    assert service.entries() == before


@pytest.mark.parametrize("kind", [b"application/json", b"multipart/form-data; boundary=x"])
def test_who_may_not_do_a_thing_cannot_make_it_read_a_body(service, routes, kind):
    """A viewer, and an operator of another policy, with an endless body for every route."""
    clients = service.client("viewer"), service.client("operator", service.mine)
    for client in clients:
        sent = [
            (b"content-type", kind),
            (b"authorization", client.headers["authorization"].encode()),
            (b"cookie", f"surelist={client.cookies.get('surelist')}".encode()),
        ]
        for method, path in routes:
            if method == "POST" and (method, path) not in OPEN | VIEWER_FORMS:
                status, taken = asyncio.run(send_endlessly(service.app, filled(service, path), sent))
                assert status in (401, 403, 404, 413), (path, status)
                assert taken <= middleware.SMALL + (1 << 14), path


@pytest.mark.slow
def test_odd_names_in_addresses_lead_nowhere(service, routes):
    before = service.entries()
    named = [path for method, path in routes if method == "GET" and "{" in path]
    for path in named:
        for part in re.findall(r"\{\w+\}", path):
            for odd in ODD:
                address = filled(service, path.replace(part, quote(odd, safe="")))
                answer = service.admin.get(address)
                back = answer.status_code == 307 and answer.headers["location"].startswith(
                    "http://localhost/"
                )
                assert back or answer.status_code in (400, 404), (address[:200], answer.status_code)
                assert "root:" not in answer.text
    assert service.entries() == before


def test_files_beside_the_pages_are_out_of_reach(service):
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/%2e%2e%2fapp.py",
                 "/static//etc/passwd", "/static/%00"):  # fmt: skip
        assert service.admin.get(path).status_code in (400, 404), path
