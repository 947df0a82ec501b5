"""What each extra adds on disk: the wheel installed with it into an empty folder, against without it.

    python benchmarks/sizes.py [--out benchmarks/sizes.txt]

Packages as in constraints.txt, without compiled caches. Sizes are the files' own, in millions of bytes; an extra
that includes another counts it. Needs a registry that pip can reach, and some minutes.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for name in declared["optional-dependencies"] if name not in ("dev", "docs")]
    lines = [
        f"Python {sys.version_info.major}.{sys.version_info.minor}, {platform.system()} {platform.machine()}"
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run(*PIP, "wheel", "--no-deps", "-w", folder, ROOT)
        (wheel,) = folder.glob("surelist-*.whl")
        alone = installed(f"{wheel}", folder / "none")
        lines.append(f"{'(none)':<10}{alone / 1e6:>6.0f} MB")
        for extra in extras:
            added = installed(f"{wheel}[{extra}]", folder / extra) - alone
            lines.append(f"{extra:<10}{max(1, round(added / 1e6)):>6} MB")
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


def installed(what: str, folder: Path) -> int:
    """Bytes of what pip puts into an empty folder; the folder is removed again."""
    run(*PIP, "install", "--no-compile", "--target", folder, "-c", ROOT / "constraints.txt", what)
    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    run("rm", "-rf", folder)
    return size


def run(*command: object) -> None:
    subprocess.run([str(each) for each in command], check=True, cwd=ROOT, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
