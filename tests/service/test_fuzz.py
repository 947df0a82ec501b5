"""The API fuzzed from its own OpenAPI description: every answer is one it announces, none a 500."""

from __future__ import annotations

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
from starlette.testclient import TestClient

from surelist.service.app import create_app
from surelist.service.settings import Settings
from tests.service.conftest import csv_text

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SETTINGS = hypothesis.settings(
    max_examples=25, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    app = create_app(Settings(database=str(folder / "record.db"), folder=folder, names=("testserver",)))
    with TestClient(app, base_url="http://localhost") as client:
        headers = {"content-type": "text/csv"}
        made = client.post("/api/v1/calibrate?k=5&pool_size=100", content=csv_text(2000, labelled=True), headers=headers)
        policy = made.json()["hash"]
        pool = client.post(f"/api/v1/policies/{policy}/select", content=csv_text(50, labelled=False), headers=headers)
        app.state.known = {"policy": policy, "selection": pool.headers["surelist-selection"]}
        yield app
        context = app.state.context
        from surelist.service.verify import verify

        assert verify(context.registry.database).intact


def operations() -> list[tuple[str, str]]:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        made = create_app(Settings(database=str(Path(folder) / "r.db"), folder=Path(folder)))
        schema = made.openapi()
        made.state.context.registry.close()
    return sorted((method.upper(), path) for path, item in schema["paths"].items() for method in item)


@pytest.mark.parametrize(("method", "path"), operations())
def test_no_request_breaks_it(app, method, path):
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    operation = schema[path][method]

    @SETTINGS
    @hypothesis.given(case=operation.as_strategy(), known=hypothesis.strategies.booleans())
    def check(case, known):
        if known:  # half of the requests are about something that exists
            for name, value in app.state.known.items():
                if name in (case.path_parameters or {}):
                    case.path_parameters[name] = value
        case.call_and_validate(checks=CHECKS)

    check()
