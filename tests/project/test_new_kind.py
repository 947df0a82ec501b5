"""A kind of promise is added in its module and by a line of KINDS: every front end has its fields then."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args, get_type_hints

import pytest

from surelist.promises import kinds

# a promise that is thrown away, and what every front end makes of it
SCRIPT = '''
from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Annotated

from surelist.promises import kinds
from surelist.promises.conditions import LABELLED, Proved
from surelist.promises.options import Option, share_option
from surelist.promises.promise import PageChoice, Promise

WAITING = Option(None, float, "Candidates who can wait.", "N", "how many can wait")


class Patience(Promise, tag="patience", frozen=True):
    page = (
        PageChoice(
            "patience", "Calm", "Of those listed {calm:70|Percent who are calm} % are, {waiting|Who can wait} wait."
        ),
    )
    labelled = PageChoice("patience", "Calm among these", "A list with {calm_here=calm:60|Percent who are calm here} %.")
    help = "This share of the list is calm."
    flags = (("patience", "calm"),)
    alias = "calm"
    proved_with = (Proved("recall"), LABELLED)

    calm: Annotated[float, share_option("The share that is calm.", "the calm share")]
    waiting: Annotated[float | None, WAITING] = None

    def describe(self) -> str:
        return f"{self.calm:g} calm, {self.waiting or 0:g} waiting"


module = ModuleType("surelist.promises.kinds.patience")
module.Patience = Patience
sys.modules[module.__name__] = module
kinds.KINDS["patience"] = ("patience", "Patience")

from click.testing import CliRunner

from surelist.cli import calibrate, options
from surelist.promises import grammar, proved
from surelist.service import labelling, labelling_pages, models, promise_form
from surelist.service.choices import AskedPromise, ChosenColumns

said = {"promise": "patience", "calm": 0.7, "waiting": 3}
form = {"promise": "patience", "calm": "70", "waiting": "3"}
flags = {each.name: [each.opts, each.help, each.metavar] for each in calibrate.calibrate.params}
offer = next(each for each in promise_form.offers(ChosenColumns()) if each.kind is Patience)
api = labelling_pages.LabellingOptions(promise="patience", calm_here=0.5, labels=9)
print(
    json.dumps(
        {
            "flags": [flags["patience"], flags["waiting"]],
            "help": CliRunner().invoke(calibrate.calibrate, ["--help"]).output,
            "asked": grammar.target_asked(options.asked({"patience": 0.7, "waiting": 3.0})).describe(),
            "errors": options.flag_names(["calibrate"]).field("waiting"),
            "grammar": grammar.target_asked(said).describe(),
            "short": grammar.group_targets(["a=calm:0.7"])["a"].describe(),
            "model": models.CalibrateOptions.model_json_schema()["properties"],
            "request": models.CalibrateOptions(**said).request().terms.targets[None].describe(),
            "page": [
                [each.name, each.label, each.shown, each.percent]
                for each in promise_form.parts(Patience, offer.choice.words)
                if each.name
            ],
            "shown": promise_form.DEFAULTS,
            "form": promise_form.request_of(
                ChosenColumns(score="s", label="l"), AskedPromise(form), others=False
            ).terms.targets[None].describe(),
            "labelling shown": labelling.DEFAULTS,
            "labelling": labelling._target(api.asked()).describe(),
            "promises": proved.page(),
        }
    )
)
'''  # fmt: skip


@pytest.mark.slow
def test_a_kind_is_known_everywhere_by_its_module_and_one_line():
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["flags"] == [
        [["--patience"], "This share of the list is calm.", "SHARE"],
        [["--waiting"], "Candidates who can wait.", "N"],
    ]
    promised = found["help"].partition("What is promised")[2].partition("Columns:")[0]
    assert "--patience SHARE" in promised
    assert "--waiting N" in promised
    assert found["errors"] == "--waiting"
    both = "0.7 calm, 3 waiting"
    assert [found[each] for each in ("asked", "grammar", "request", "form")] == [both] * 4
    assert found["short"] == "0.7 calm, 0 waiting"
    model = found["model"]
    assert model["calm"]["description"] == "The share that is calm."
    assert model["calm"]["anyOf"][0]["exclusiveMaximum"] == 1
    assert model["waiting"]["description"] == "Candidates who can wait."
    assert "patience" in model["promise"]["enum"]
    assert found["page"] == [
        ["calm", "Percent who are calm", "70", True],
        ["waiting", "Who can wait", "", False],
    ]
    assert (found["shown"]["calm"], found["shown"]["waiting"]) == ("70", "")
    assert found["labelling shown"]["calm_here"] == "60"
    assert found["labelling"] == "0.5 calm, 0 waiting"
    assert "## Patience\n\nThis share of the list is calm." in found["promises"]


@pytest.mark.parametrize("promise", kinds.classes(), ids=lambda each: each.__name__)
def test_every_field_is_described_in_its_kind(promise):
    """And as other kinds describe it that have one of the same name, which is one flag for all."""
    hints = get_type_hints(promise)
    for name, described in kinds.fields_of(promise).items():
        assert described.help == kinds.fields()[name].help
        assert described.kind == kinds.fields()[name].kind or {described.kind, kinds.fields()[name].kind} == {
            int,
            float,
        }
        if name in kinds.optional(promise):
            assert described.default == promise.__struct_defaults__[kinds.optional(promise).index(name)]
        if described.default is not None:
            assert described.kind == hints[name]
            assert described.default in get_args(described.kind)
