"""State files of another format are refused with a sentence, and nobody writes over them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import surelist as sl
from surelist import examples

SCORES, LABELS = examples.population(np.random.default_rng(0), 1000)


def monitor() -> sl.Monitor:
    return sl.Monitor(sl.calibrate(SCORES, LABELS, sl.Expected(5, 100)))


def campaign() -> sl.Campaign:
    return sl.Campaign(SCORES, LABELS, sl.Expected(5, 100))


def labelling() -> sl.Labelling:
    return sl.Labelling(SCORES, sl.AtLeast(5), labels=60)


def stop_test() -> sl.StopTest:
    return sl.StopTest(found=195, rest=8000, recall=0.95)


@pytest.mark.parametrize("make", [monitor, campaign, labelling, stop_test])
@pytest.mark.parametrize("version", [0, 2])
def test_a_state_file_of_another_format_is_refused_and_stays_as_it_is(make, version, tmp_path):
    path = tmp_path / "state.json"
    make().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": version, "earlier": 1}))
    before = path.read_bytes()
    with pytest.raises(
        sl.PolicyFileError,
        match=rf"state.json has format version {version}; .* reads version 1\. .* make it anew",
    ):
        type(make()).load(path)
    with pytest.raises(sl.InvalidInput, match="exists and would be lost"):
        make().save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("make", [monitor, campaign, labelling, stop_test])
def test_a_state_file_says_everything_whatever_is_left_out_is_missed(make, tmp_path):
    """No default of the program stands in for a number that is not in the file."""
    path = tmp_path / "state.json"
    make().save(path)
    good = json.loads(path.read_text())
    for name in good:
        path.write_text(json.dumps({key: value for key, value in good.items() if key != name}))
        with pytest.raises(
            sl.PolicyFileError, match=r"not a surelist|no format version|missing required field"
        ):
            type(make()).load(path)
    path.write_text(json.dumps(good))
    type(make()).load(path)
