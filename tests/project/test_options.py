"""One description of what can be asked: signatures, command line, OpenAPI and docs read the same table."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
import pytest

import surelist as sl
from surelist._names import option
from surelist.cli import calibrate, certify, lifecycle
from surelist.cli.options import PromiseOption, in_flags
from surelist.errors import error_body
from surelist.promises import kinds
from surelist.promises.grammar import group_targets, one_target, target_asked
from surelist.promises.options import OPTIONS
from surelist.promises.terms import Roles, Terms
from surelist.service.errors import PARAMETERS
from surelist.service.models import CalibrateOptions, CurveOptions

DOCS = Path(__file__).parents[2] / "docs"
FLAGS = {name: each for each in kinds.classes() for name, _ in each.flags}
TABLE = OPTIONS | kinds.fields()
OPTIONAL_IN_PYTHON = {"score", "label", "target"}  # required there: nothing is guessed


def described(name: str, function: str) -> str:
    return f"curve.{name}" if "curve" in function and f"curve.{name}" in OPTIONS else name


@pytest.mark.parametrize(
    "function", [sl.calibrate, sl.calibrate_table, sl.select_table, sl.guarantee_curve, Terms]
)
def test_python_defaults_and_choices_are_those_of_the_table(function):
    hints = get_type_hints(function)
    shared = 0
    for name, parameter in inspect.signature(function).parameters.items():
        option = TABLE.get(described(name, function.__name__))
        if option is None or parameter.default is inspect.Parameter.empty:
            continue
        shared += 1
        if name not in OPTIONAL_IN_PYTHON and parameter.default is not None:
            assert parameter.default == option.default, name
        if name == "ties" and function is not Terms:
            assert hints[name] == Literal["include"] | sl.Hash  # "hash" of the table is Hash(ids) in Python
        elif get_origin(option.kind) is Literal:
            assert hints[name] == option.kind, name
    assert shared >= 3


def commands() -> list[tuple[str, click.Option]]:
    found = {
        "calibrate": calibrate.calibrate,
        "curve": certify.curve,
        "select": certify.select,
        "plan": lifecycle.plan,
    }
    return [
        (command, each)
        for command, made in found.items()
        for each in made.params
        if isinstance(each, click.Option)
    ]


@pytest.mark.parametrize(("command", "option"), commands(), ids=lambda each: getattr(each, "name", each))
def test_the_command_line_says_what_the_table_says(command: str, option: click.Option):
    name = str(option.name)
    if isinstance(option, PromiseOption):
        assert option.help == FLAGS[name].help
        return
    row = TABLE.get(described(name, command))
    if row is None or (command == "select" and name in Roles.__struct_fields__):
        return  # of this command alone; a pool's columns are by default those of calibration
    assert option.help == row.help
    if get_origin(row.kind) is Literal:
        assert tuple(vars(option.type)["choices"]) == get_args(row.kind)
    if row.default not in ((), None, False):
        assert option.default == row.default


@pytest.mark.parametrize("model", [CalibrateOptions, CurveOptions])
def test_openapi_says_what_the_table_says(model: Any):
    schema = model.model_json_schema()["properties"]
    for name, said in schema.items():
        if name == "name":
            continue
        row = TABLE[described(name, model.__name__.lower())]
        assert said["description"] == row.help
        assert said["default"] == (list(row.default) if row.default == () else row.default)
        if get_origin(row.kind) is Literal:
            assert tuple(said["enum"]) == get_args(row.kind)


def test_every_option_has_a_door():
    at_the_command_line = {str(option.name) for _, option in commands()} | {"pool"}
    in_the_api = CalibrateOptions.model_fields.keys()
    for name in TABLE:
        assert name.rpartition(".")[2] in at_the_command_line | in_the_api, name


def test_flags_in_the_docs_exist():
    known = {flag for _, option in commands() for flag in (*option.opts, *option.secondary_opts)}
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    for line in re.findall(r"^\$? ?surelist calibrate .*(?:\\\n.*)*", text, flags=re.M):
        for flag in re.findall(r"(?<=\s)--[a-z-]+", line):
            assert flag in known, line


# -- one grammar


SAME = [
    ("women=3/60", {}, sl.Expected(3, 60)),
    ("women=expect:3/60", {}, sl.Expected(3, 60)),
    ("women=3", {"pool_size": 60}, sl.Expected(3, 60)),
    ("women=pool:3/76", {}, sl.PerPool(3, 76)),
    ("women=pool:3/50-200", {}, sl.PerPool(3, (50, 200))),
    ("women=3/50-200", {"promise": "per-pool"}, sl.PerPool(3, (50, 200))),
    ("women=3", {"promise": "per-pool", "pool_size": (50, 200)}, sl.PerPool(3, (50, 200))),
    ("women=recall:0.9", {}, sl.Recall(0.9)),
    ("women=0.9", {"promise": "recall"}, sl.Recall(0.9)),
    ("a=b=3/60", {}, sl.Expected(3, 60)),
]


@pytest.mark.parametrize(("text", "beside", "target"), SAME)
def test_one_grammar_for_targets_at_every_door(text, beside, target):
    name = text.rpartition("=")[0]
    kind, size = beside.get("promise", kinds.FIRST), beside.get("pool_size")
    assert group_targets([text], kind, size) == {name: target}
    if beside.get("pool_size") == (50, 200):
        beside = {**beside, "pool_size": "50-200"}
    options = CalibrateOptions.model_validate({"group": "sex", "purpose": "x", "target": [text], **beside})
    assert options.request().terms.targets == {name: target}
    assert target_asked({"group": "sex", "target": [text], **beside}) == {name: target}


@pytest.mark.parametrize(
    "text",
    ["women", "=3/60", "women=", "women=3/x", "women=some:3/60", "women=recall:0.9/60", "women=3/60/7"],
)
def test_targets_outside_the_grammar_are_refused_with_what_was_said(text):
    with pytest.raises(sl.InvalidInput, match=r"target|pool_size"):
        group_targets([text])


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_a_promise_without_its_numbers_says_which_one_is_missing(kind):
    promise = kinds.promise_class(kind)
    assert promise is not None
    first = next(iter(kinds.required(promise)), promise.__struct_fields__[0])
    with pytest.raises(sl.InvalidInput, match=rf"^{first}\b"):
        one_target(kind, {})


@pytest.mark.parametrize(
    ("error", "python", "flags"),
    [
        (sl.InvalidInput("pool_size", expected="a number", got="'x'"), "pool_size: expected a number, got 'x'.",
         "--pool-size: expected a number, got 'x'."),
        (sl.InvalidInput("labels", f"missing; {option('missing_labels', 'unqualified')} keeps them."),
         'labels: missing; missing_labels="unqualified" keeps them.',
         "labels: missing; --missing-labels unqualified keeps them."),
        (sl.InvalidInput("ids", f"{option('ties', 'hash')} breaks ties; pass {option('ids')}."),
         "ids: ties=Hash(ids) breaks ties; pass ids=.", "--id: --ties hash breaks ties; pass --id."),
        (sl.InvalidInput("score", "no column 'pool_size'; there are 'pools='."),
         "score: no column 'pool_size'; there are 'pools='.",
         "--score: no column 'pool_size'; there are 'pools='."),
        (sl.InvalidInput("", f"{option('purpose', '...')} is needed."), 'purpose="..." is needed.',
         '--purpose "..." is needed.'),
    ],
)  # fmt: skip
def test_errors_name_options_in_the_words_of_the_front_end(error, python, flags):
    assert str(error) == python
    assert in_flags(error) == flags
    assert str(pickle.loads(pickle.dumps(error))) == python


def test_an_error_knows_its_parts_and_an_option_that_is_not_offered_goes_with_its_clause():
    dropping = option("on_bad_rows", "drop", before=", or drop them with ")
    error = sl.InvalidInput(
        "pools", expected="a name", got="nothing", row=3, in_all=2, remedy=f"Name them{dropping}."
    )
    assert str(error) == (
        'pools: expected a name, got nothing at position 3 (2 in all). Name them, or drop them with on_bad_rows="drop".'
    )
    assert error_body(error, PARAMETERS) == {
        "type": "InvalidInput", "message": "pool: expected a name, got nothing at position 3 (2 in all). Name them.",
        "field": "pool", "expected": "a name", "got": "nothing", "remedy": "Name them.", "row": 3,
    }  # fmt: skip
    renamed = error.changed(lambda text: text.replace("a name", "an id"))
    assert (renamed.expected, renamed.row, type(renamed)) == ("an id", 3, sl.InvalidInput)
