"""Reported success means kept: state files that several processes change at once."""

from __future__ import annotations

import csv
import multiprocessing
import subprocess
import sys
import time

import numpy as np
import pytest

import surelist as sl
from surelist._files import Versions, updating
from tests.helpers.simulated_pools import pools

pytestmark = pytest.mark.slow


def table(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def at_once(commands):
    """Run commands of surelist at the same time; their exit codes and what they print."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "surelist", *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    return [(each.communicate()[0], each.returncode) for each in running]


@pytest.fixture
def state(tmp_path):
    scores, labels = next(pools(np.random.default_rng(0), 1, 2000))
    sl.Campaign(scores, labels, sl.Expected(5, 100)).save(tmp_path / "campaign.json")
    return tmp_path / "campaign.json"


def test_four_concurrent_screens_keep_all_four_pools(tmp_path, state):
    commands = []
    for name, (scores, _) in zip("abcd", pools(np.random.default_rng(1), 4, 100), strict=True):
        rows = [(f"{name}{i}", score) for i, score in enumerate(scores)]
        pool = table(tmp_path / f"{name}.csv", ["id", "score"], rows)
        commands.append(
            ["campaign", "screen", state, pool, "--pool", name, "-o", tmp_path / f"{name}.out.csv"]
        )
    assert [code for _, code in at_once(commands)] == [0] * 4
    campaign = sl.Campaign.load(state)
    assert campaign.pools == 4
    assert sorted(campaign.reviews.kept) == list("abcd")
    reviews = [
        ["campaign", "review", state, table(tmp_path / f"{name}.rev.csv", ["id", "qualified"],
                                            [(each, 1) for each in campaign.reviews.kept[name].ids]),
         "--pool", name]
        for name in "abcd"
    ]  # fmt: skip
    assert [code for _, code in at_once(reviews)] == [0] * 4
    assert sl.Campaign.load(state).reviews.missing == 0
    assert not list(tmp_path.glob(".*"))


def test_two_first_runs_of_watch_count_both_tables(tmp_path):
    scores, labels = next(pools(np.random.default_rng(0), 1, 2000))
    sl.calibrate(scores, labels, sl.Expected(5, 100)).save(tmp_path / "policy.json")
    header = ["pool", "pool_size", "qualified"]
    commands = [
        ["watch", tmp_path / "monitor.json", table(tmp_path / f"{n}.csv", header, [(f"pool {n}", 100, 5)]),
         "--policy", tmp_path / "policy.json"]
        for n in (1, 2)
    ]  # fmt: skip
    assert [code for _, code in at_once(commands)] == [0, 0]
    assert sl.Monitor.load(tmp_path / "monitor.json").pools == 2


def test_the_loser_of_two_writers_is_told_and_nothing_is_lost(state):
    first, second = sl.Campaign.load(state), sl.Campaign.load(state)
    first.screen(np.arange(100.0), pool="first")
    first.save(state)
    kept = state.read_bytes()
    second.screen(np.arange(100.0), pool="second")
    with pytest.raises(sl.InvalidInput, match="changed by someone else since it was read"):
        second.save(state)
    assert state.read_bytes() == kept
    first.screen(np.arange(100.0), pool="third")
    first.save(state)  # who wrote last may go on
    assert sl.Campaign.load(state).pools == 2


def test_a_new_state_does_not_replace_another(tmp_path, state):
    scores, labels = next(pools(np.random.default_rng(0), 1, 2000))
    campaign = sl.Campaign(scores, labels, sl.Expected(5, 100))
    kept = state.read_bytes()
    with pytest.raises(sl.InvalidInput, match="exists and would be lost"):
        campaign.save(state)
    with pytest.raises(sl.InvalidInput, match="exists and would be lost"):
        sl.Monitor(campaign.policy).save(state)
    assert state.read_bytes() == kept
    campaign.save(tmp_path / "other.json")
    campaign.save(tmp_path / "other.json")


def _hold(path, started):
    with updating(path):
        started.set()
        time.sleep(600)  # until it is killed


def test_a_state_in_use_is_waited_for_and_a_killed_process_lets_go(tmp_path):
    path = tmp_path / "state.json"
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    holder = context.Process(target=_hold, args=(path, started))
    holder.start()
    assert started.wait(300)
    with pytest.raises(sl.InvalidInput, match=r"in use by another process"), updating(path, wait=0.2):
        pass
    holder.kill()
    holder.join()
    with updating(path, wait=3600), updating(path):  # and again in the same thread
        pass
    assert not list(tmp_path.glob(".*"))


def _count(path, times):
    for _ in range(times):
        with updating(path, wait=3600):  # others may be quicker for a long time
            versions = Versions()
            number = int(versions.read(path))
            time.sleep(0.001)
            with versions.replacing(path, str(number + 1)):
                pass


def test_no_increment_is_lost(tmp_path):
    path = tmp_path / "number"
    path.write_text("0")
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=_count, args=(path, 50)) for _ in range(4)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert path.read_text() == "200"


def test_two_who_record_labels_at_once_lose_none_and_a_stale_copy_is_not_saved(tmp_path):
    state = tmp_path / "work.json"
    rows = [(f"c{i}", i / 500) for i in range(500)]
    path = table(tmp_path / "all.csv", ["name", "score"], rows)
    sl.label_table(path, sl.AtLeast(20), score="score", labels=100).save(state)
    stale = sl.Labelling.load(state)
    asked = stale.ask().tolist()
    sheets = [
        table(tmp_path / f"{part}.csv", ["surelist_row", "label"], [(row, 1) for row in asked[part::2]])
        for part in (0, 1)
    ]
    assert [code for _, code in at_once([["label", "record", state, sheet] for sheet in sheets])] == [0, 0]
    work = sl.Labelling.load(state)
    assert not set(work.ask().tolist()) & set(asked)  # the pilot is complete: the block is asked for
    stale.tell(asked[:3], [0, 0, 0])
    with pytest.raises(sl.InvalidInput):
        stale.save(state)
    assert sl.Labelling.load(state).ask().tolist() == work.ask().tolist()
