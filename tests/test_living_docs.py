"""docs/living.md runs as it stands, and prints what it says it prints."""

import contextlib
import io
import re
import shlex
from pathlib import Path

from surelist.cli import run

PAGE = Path(__file__).parent.parent / "docs" / "living.md"
BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.M | re.S)


def test_the_worked_example_runs_and_prints_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed, compared, commands = "", 0, 0
    for kind, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(body, str(PAGE), "exec"), names)
            printed = out.getvalue()
        elif kind == "text":
            assert printed.strip() == body.strip()
            compared += 1
        else:
            for line in body.splitlines():
                assert line.startswith("$ surelist ")
                assert run(shlex.split(line)[2:]) == 0
                commands += 1
    assert compared >= 6
    assert commands == 6
    assert (tmp_path / "campaign.png").exists()
    assert Path("shortlist.csv").read_text().startswith("id,score")
