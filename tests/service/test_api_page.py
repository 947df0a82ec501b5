"""The page of the API: every operation, option and shape of the OpenAPI description, with nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest


@pytest.fixture
def page(local_client) -> str:
    answer = local_client.get("/docs", headers={"accept": "text/html"})
    assert answer.status_code == 200
    return unescape(answer.text)


@pytest.fixture
def schema(local_client) -> dict[str, Any]:
    return local_client.get("/api/v1/openapi.json").json()


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from ([part["$ref"]] if "$ref" in part else [])
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from references(each)


def test_every_shape_that_the_description_refers_to_is_declared(schema):
    shapes = {f"#/components/schemas/{name}" for name in schema["components"]["schemas"]}
    assert set(references(schema)) <= shapes


def test_the_page_lists_every_operation_option_and_shape(page, schema):
    for path, operations in schema["paths"].items():
        for method, each in operations.items():
            start = page.index(f"<code>{method.upper()} {path}</code> {each['summary']}")
            section = page[start : page.index("</details>", start)]
            for field in each.get("parameters", ()):
                assert f"<code>{field['name']}</code>" in section, (path, field["name"])
                assert field["schema"].get("description", "") in section
            for kind in each.get("requestBody", {}).get("content", {}):
                assert f"<code>{kind}</code>" in section, (path, kind)
    for name, shape in schema["components"]["schemas"].items():
        section = page.partition(f'<h3 id="{name}">')[2].partition("<h3")[0]
        for field in shape.get("properties", {}):
            assert f"<code>{field}</code>" in section, (name, field)


def test_every_link_of_the_page_leads_somewhere_here(page, local_client):
    for target in re.findall(r'(?:href|src)="([^"]+)"', page):
        if target.startswith("#"):
            assert f'id="{target[1:]}"' in page, target
        else:
            assert target.startswith("/")
            assert local_client.get(target).status_code == 200, target


def test_values_are_said_in_words(page):
    section = page[page.index("<code>POST /api/v1/calibrate</code>") :].partition("</details>")[0]
    for said in (
        "expected, per-pool, recall", '"expected"</code> if left out', "number, above 0 or null",
        '<a href="#PastRows">PastRows</a>', "<code>text/csv</code>: text", "file",
    ):  # fmt: skip
        assert said in section, said
