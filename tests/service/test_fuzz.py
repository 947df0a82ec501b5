"""The API fuzzed from its own OpenAPI description: every answer is one it announces, none a 500."""

from __future__ import annotations

import os

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from surelist.service.app import create_app
from surelist.service.record.database import Database
from surelist.service.record.verify import verify
from surelist.service.settings import Settings
from tests.helpers.service import BUSY, Server, close, csv_text, web_client

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SETTINGS = hypothesis.settings(
    max_examples=int(os.environ.get("SURELIST_FUZZ", "15")), deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    server = Server(folder)
    with web_client(base_url=server.url) as client:
        headers = {"content-type": "text/csv"}
        past, pool = csv_text(2000, labelled=True), csv_text(50, labelled=False)
        made = client.post("/api/v1/calibrate?k=5&pool_size=100", content=past, headers=headers)
        policy = made.json()["hash"]
        chosen = client.post(f"/api/v1/policies/{policy}/select", content=pool, headers=headers)
    vars(server)["known"] = {"policy": policy, "selection": chosen.headers["surelist-selection"]}
    yield server
    server.stop()
    database = Database(str(folder / "surelist.db"))
    assert verify(database).intact
    database.close()


def operations() -> list[tuple[str, str]]:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        made = create_app(Settings(database=str(Path(folder) / "r.db"), folder=Path(folder)))
        schema = made.openapi()
        close(made)
    return sorted((method.upper(), path) for path, item in schema["paths"].items() for method in item)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), operations())
def test_no_request_breaks_it(server, method, path):
    schema = schemathesis.openapi.from_url(server.url + "/api/v1/openapi.json")
    operation = schema[path][method]

    @SETTINGS
    @hypothesis.given(case=operation.as_strategy(), known=hypothesis.strategies.booleans())
    def check(case, known):
        if known:  # half of the requests are about something that exists
            for name, value in vars(server)["known"].items():
                if name in (case.path_parameters or {}):
                    case.path_parameters[name] = value
        case.call_and_validate(checks=CHECKS, timeout=BUSY)

    check()
