"""Outputs destroy nothing: what ``writing`` does with links, pipes, modes, inputs and failures."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import surelist as sl
from surelist import _files, cli
from surelist._files import writing


def put(path: Path, text: str = "new", **options: object) -> None:
    with writing(path, **options) as temporary:  # type: ignore[arg-type]
        temporary.write_text(text)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_link_is_written_through_to_its_target(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "real.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    put(link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["far", "link.json", "real.json"]


def test_a_link_to_nothing_yet_makes_its_target(tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real.json")
    put(link)
    assert link.is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_a_link_that_leads_to_itself_is_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(sl.InvalidInput, match="output: cannot write"):
        put(tmp_path / "a")


def test_an_existing_file_keeps_its_mode(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text("old")
    path.chmod(0o600)
    put(path)
    assert (path.read_text(), mode_of(path)) == ("new", 0o600)
    path.chmod(0o664)
    with writing(path) as temporary:
        temporary.unlink()  # writers that make the file anew
        temporary.write_text("newer")
    assert (path.read_text(), mode_of(path)) == ("newer", 0o664)


def test_a_secret_is_never_readable_by_others(tmp_path):
    path = tmp_path / "policy.json.salt"
    path.write_text("old")
    path.chmod(0o644)
    with writing(path, mode=0o600) as temporary:
        assert mode_of(temporary) == 0o600
        temporary.write_text("secret")
    assert mode_of(path) == 0o600


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    path, heard = tmp_path / "pipe.csv", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: heard.append(path.read_text()))
    reader.start()
    put(path)
    reader.join()
    assert heard == ["new"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_is_written_into_and_stays_a_device(tmp_path):
    link = tmp_path / "null.csv"
    link.symlink_to("/dev/null")
    put(link)
    put(Path("/dev/null"))
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(sl.InvalidInput, match="cannot write /dev/full: No space left"):
        put(Path("/dev/full"))
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_folder_or_a_socket_is_refused_with_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(sl.InvalidInput, match="is a folder; choose another name"):
        put(tmp_path)
    monkeypatch.chdir(tmp_path)  # socket paths are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.csv")
        with pytest.raises(sl.InvalidInput, match="choose another name"):
            put(tmp_path / "s.csv")


@pytest.mark.parametrize("way", ["same", "relative", "symlink", "hardlink", "folder link"])
def test_an_output_that_is_an_input_is_refused_under_any_name(tmp_path, monkeypatch, way):
    (tmp_path / "data").mkdir()
    source = tmp_path / "data" / "pool.csv"
    source.write_text("id,score\n1,0.5\n")
    output = tmp_path / "other.csv"
    if way == "same":
        output = source
    elif way == "relative":
        monkeypatch.chdir(tmp_path)
        output = Path("data/../data/pool.csv")
    elif way == "symlink":
        output.symlink_to(source)
    elif way == "hardlink":
        os.link(source, output)
    else:
        (tmp_path / "again").symlink_to(tmp_path / "data")
        output = tmp_path / "again" / "pool.csv"
    with pytest.raises(sl.InvalidInput, match=r"output: .* is the input .*; choose another name"):
        put(output, inputs=[source])
    policy = sl.calibrate([0.9, 0.8, 0.7] * 30, [1, 1, 0] * 30, sl.Expected(1, 100))
    with pytest.raises(sl.InvalidInput, match="is the input"):
        sl.select_table(source, policy, score="score", output=output)
    assert source.read_text() == "id,score\n1,0.5\n"
    assert not list(tmp_path.rglob("*.part*"))


def test_the_folder_is_flushed_after_the_file(tmp_path, monkeypatch):
    flushed = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    put(tmp_path / "policy.json")
    assert ".part" in flushed[0]
    assert flushed[1:] == [str(tmp_path)]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text("old")

    def stopped() -> None:
        with writing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["policy.json"]


@pytest.mark.parametrize("where", ["close", "open"])
def test_an_interrupt_just_as_the_temporary_file_is_made_leaves_none(tmp_path, monkeypatch, where):
    real = getattr(os, where)

    def interrupted(*arguments: object) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, where, interrupted)
        with pytest.raises(KeyboardInterrupt), _files.writing(tmp_path / "s.csv"):
            raise AssertionError("never begun")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("where", ["mkdir", "is_dir"])
def test_an_interrupt_just_as_a_temporary_folder_is_made_or_removed_leaves_none_once_the_command_has_ended(
    tmp_path, monkeypatch, where
):
    real = getattr(Path, where)

    def interrupted(*arguments: object) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, where, interrupted)
        with pytest.raises(KeyboardInterrupt), _files.temporary_folder(tmp_path) as folder:
            (folder / "spool.csv").write_text("half")
    _files.remove_unfinished()
    assert os.listdir(tmp_path) == []


def test_a_second_interrupt_while_the_first_one_is_told_is_no_traceback_and_leaves_nothing(tmp_path):
    """As a process: what happens then happens at its end."""
    script = """
import os, signal, sys
from surelist import _files, cli
def told(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
def stopped(*_, **__):
    _files.named_folder(".").mkdir()
    raise KeyboardInterrupt
cli.click.echo, cli.cli.main = told, stopped
_files.remove = lambda path, remove=_files.remove: (told(), remove(path))
cli.main([])
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert os.listdir(tmp_path) == []


def test_an_interrupt_while_the_temporary_file_is_removed_leaves_none_once_the_command_has_ended(
    tmp_path, monkeypatch
):
    def interrupted(path: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", interrupted)
        with pytest.raises(KeyboardInterrupt), _files.writing(tmp_path / "s.csv"):
            raise ValueError
    assert len(os.listdir(tmp_path)) == 1
    _files.remove_unfinished()
    assert os.listdir(tmp_path) == []


@pytest.fixture
def full_disk(tmp_path):
    """A file system without room, where mounting is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    (folder / "fill").write_bytes(bytes(4096))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_a_full_disk_is_said_of_the_file_that_was_to_be_written(full_disk, tmp_path, capsys, source):
    table = pd.DataFrame({"score": np.arange(900) / 900, "label": np.arange(900) % 3 > 0})
    pool = tmp_path / f"pool.{source}"
    _ = table.to_csv(pool, index=False) if source == "csv" else table.to_parquet(pool)
    policy = sl.calibrate_table(pool, score="score", label="label", target=sl.Expected(5, 100))
    policy.save(tmp_path / "policy.json")
    for name in ("list.csv", "list.parquet", "list.xlsx", "list.jsonl"):
        words = ["select", str(pool), "--policy", str(tmp_path / "policy.json"), "-o", str(full_disk / name)]
        assert cli.run(words) == 1
        said = capsys.readouterr().err
        assert f"No space left on device: '{full_disk / name}'" in said
        assert "cannot be read" not in said
        assert [each.name for each in full_disk.iterdir()] == ["fill"]
