"""The table of front ends in docs/promises.md is what they take."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from surelist.cli.calibrate import calibrate
from surelist.promises.kinds import classes, fields as promise_fields
from surelist.promises.options import OPTIONS
from surelist.service import promise_form
from surelist.service.bodies import FORM_FILES
from surelist.service.choices import ChosenColumns
from surelist.service.models import CalibrateOptions

ROOT = Path(__file__).parents[2]
TEMPLATES = Path(promise_form.__file__).parent / "templates"
SPECIAL = {
    "also", "pool", "by", "of", "spread", "start", "unlabelled", "other_score", "audit_rate", "audited_below",
    "probability", "lowest_rate", "lowest_score", "false_positive", "false_negative", "longest",
}  # fmt: skip


def table() -> list[list[str]]:
    text = (
        (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").partition("## Where each is offered")[2]
    )
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ROWS = table()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_cell_names_what_its_door_takes(row):
    _, _, flags, fields, page = row
    known = {flag for each in calibrate.params if isinstance(each, click.Option) for flag in each.opts}
    assert set(re.findall(r"`(.*?)`", flags)) <= known
    assert set(re.findall(r"`(.*?)`", fields)) <= CalibrateOptions.model_fields.keys() | set(FORM_FILES)
    form = (TEMPLATES / "promise.html").read_text(encoding="utf-8")
    form += " ".join(f"{each.title} {each.words}{each.beside}" for kind in classes() for each in kind.page)
    form += " ".join(each.words for each in promise_fields().values())
    form = re.sub(r"\s+", " ", form)
    shown = re.findall("“(.*?)”", page)
    assert shown or page == "no"
    for words in shown:
        assert words in form, words


def test_nothing_that_can_be_asked_is_left_out():
    said = " ".join(cell for row in ROWS for cell in row[2:4])
    for name in SPECIAL:
        assert name in OPTIONS | promise_fields()
        assert f"`--{name.replace('_', '-')}`" in said
        assert f"`{name}`" in said


def test_the_page_refuses_what_it_does_not_offer():
    for columns in (
        ChosenColumns(),
        ChosenColumns(pool="query"),
        ChosenColumns(labels="amounts"),
        ChosenColumns(group="sex"),
    ):
        assert "false-share" not in {each.choice.name for each in promise_form.offers(columns)}
