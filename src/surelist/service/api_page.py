"""The page of the API: its OpenAPI description as plain values, without a script or the network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

SHAPES = "#/components/schemas/"
KINDS = {"integer": "whole number", "string": "text", "boolean": "true or false", "null": "null"}
LIMITS = {
    "minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below",
    "minLength": "characters from", "maxLength": "characters to",
}  # fmt: skip
Schema = Mapping[str, Any]


def described(schema: Schema) -> Schema:
    """Operations by what they are about, the shapes they name, and the errors common to them."""
    about: dict[str, list[Schema]] = {}
    errors: dict[str, str] = {}
    for path, operations in schema["paths"].items():
        for method, each in operations.items():
            answers = each["responses"]
            errors |= {code: answer["description"] for code, answer in answers.items() if code >= "400"}
            about.setdefault(each["tags"][0], []).append({
                "method": method.upper(), "path": path, "title": each["summary"],
                "more": each.get("description", "").removeprefix(each["summary"]).lstrip(". "),
                "fields": [_parameter(field) for field in each.get("parameters", ())],
                "bodies": _contents(each.get("requestBody", {})),
                "answers": [
                    {"code": code, "says": answer["description"], "contents": _contents(answer)}
                    for code, answer in answers.items() if code < "400"
                ],
            })  # fmt: skip
    shapes = {name: _shape(each) for name, each in schema["components"]["schemas"].items()}
    return {"about": about, "shapes": dict(sorted(shapes.items())), "errors": dict(sorted(errors.items()))}


def _shape(schema: Schema) -> Schema:
    needed = schema.get("required", ())
    fields = [_field(name, each, name in needed) for name, each in schema.get("properties", {}).items()]
    return {"says": schema.get("description", ""), "fields": fields}


def _parameter(field: Schema) -> Schema:
    where = "" if field["in"] == "query" else f"in the {field['in']}"
    return {**_field(field["name"], field["schema"], field.get("required", False)), "where": where}


def _field(name: str, schema: Schema, needed: bool) -> Schema:
    says, default = schema.get("description", ""), schema.get("default")
    return {"name": name, **_kind_of(schema), "needed": needed, "default": default, "says": says, "where": ""}


def _contents(part: Schema) -> list[Schema]:
    contents = part.get("content", {})
    return [{"type": kind, **_kind_of(each.get("schema", {}))} for kind, each in contents.items()]


def _kind_of(schema: Schema) -> Schema:
    """A type in words, and the shape that it names, also inside a list."""
    named = re.search(f'"{SHAPES}(\\w+)"', json.dumps(schema))
    return {"kind": _kind(schema), "shape": named and named[1]}


def _kind(schema: Schema) -> str:
    """A type in words."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(SHAPES)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    if values := schema.get("enum") or ([schema["const"]] if "const" in schema else None):
        return ", ".join(map(str, values))
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if kind == "object" and schema.get("additionalProperties"):
        inside = schema["additionalProperties"]
        return f"object of {'anything' if inside is True else _kind(inside)}"
    word: str = "file" if schema.get("format") == "binary" else KINDS.get(kind, kind)
    limits = [f"{said} {schema[name]}" for name, said in LIMITS.items() if name in schema]
    return ", ".join([word, *limits])
