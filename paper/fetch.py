"""Person files from the Census Bureau: download, resume, check, remember the checksum.

A file appears under its name only after it proved to be a complete archive with a person file
that has the task's columns. What has arrived so far waits beside it as ``.part``.
"""

from __future__ import annotations

import csv
import hashlib
import io
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import surelist as sl
from paper.data import FEATURES, is_person_file, require_task
from paper.inputs import writing

BASE_URL = "https://www2.census.gov/programs-surveys/acs/data/pums"
ATTEMPTS = 6
TIMEOUT = 60.0
BLOCK = 1 << 18
SUMS = "SHA256SUMS"

STATES = (
    "al", "ak", "az", "ar", "ca", "co", "ct", "de", "dc", "fl", "ga", "hi", "id", "il",
    "in", "ia", "ks", "ky", "la", "me", "md", "ma", "mi", "mn", "ms", "mo", "mt", "ne",
    "nv", "nh", "nj", "nm", "ny", "nc", "nd", "oh", "ok", "or", "pa", "ri", "sc", "sd",
    "tn", "tx", "ut", "vt", "va", "wa", "wv", "wi", "wy", "pr", "us",
)  # fmt: skip

Say = Callable[[str], None]


class FetchError(sl.SurelistError):
    """A download did not succeed; the message says what came instead and what to do."""


@dataclass(frozen=True)
class Download:
    """One file on disk, checked."""

    path: Path
    size: int
    sha256: str


def state_list(text: str) -> list[str]:
    """``"DE,hi"`` to ``["de", "hi"]``; anything that is no state is an error."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    wrong = [repr(name) for name in names if name not in STATES]
    if wrong or not names:
        raise sl.InvalidInput("states", expected="two-letter states such as DE,HI", got=[*wrong, "none"][0])
    return list(dict.fromkeys(names))


def fetch(
    year: int,
    state: str,
    folder: Path,
    base_url: str = BASE_URL,
    say: Say = lambda line: None,
    pause: float = 1.0,
) -> Download:
    """Download one state's person file of one year, unless it is there already and unchanged.

    ``pause`` seconds before the first retry, doubled each time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{year}_csv_p{state}.zip"
    url = f"{base_url.rstrip('/')}/{year}/1-Year/csv_p{state}.zip"
    known = _sums(folder).get(path.name)
    if path.exists() and known is not None and _sha256(path) == known:
        say(f"{path.name}: already there, checksum unchanged.")
        return Download(path, path.stat().st_size, known)
    part = path.with_suffix(".zip.part")
    _download(url, part, say, pause)
    _check(part, url)
    digest, size = _sha256(part), part.stat().st_size
    part.replace(path)
    _remember(folder, path.name, digest)
    return Download(path, size, digest)


def _download(url: str, part: Path, say: Say, pause: float) -> None:
    """Fill ``part``, going on from what it holds; retries after broken connections and 5xx."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            if _receive(url, part):
                return
            problem = "the connection ended early"
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # what is here does not fit what is there
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                hint = "Is there a 1-year file for that state and year?" if error.code == 404 else ""
                raise FetchError(
                    f"fetch: {url} answered {error.code} {error.reason}. {hint}".strip()
                ) from error
            problem = f"the server answered {error.code}"
        except (OSError, HTTPException) as error:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt < ATTEMPTS:
            have = part.stat().st_size if part.exists() else 0
            say(f"{url}: {problem}; {have:,} bytes so far, trying again.")
            time.sleep(pause * 2 ** (attempt - 1))
    raise FetchError(
        f"fetch: {url}: {problem}, {ATTEMPTS} times. The same command goes on from what has arrived."
    )


def _receive(url: str, part: Path) -> bool:
    """One request; True if everything the server announced is here."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "surelist", "Accept-Encoding": "identity"})
    tag = _tag_file(part)
    if have and tag.exists():  # without knowing it is the same file, start again
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", tag.read_text(encoding="utf-8"))
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        headers, going_on = answer.headers, answer.status == 206
        if "html" in (headers.get("Content-Type") or "").lower():
            shown = " ".join(answer.read(300).decode("utf-8", "replace").split())[:120]
            raise FetchError(f"fetch: {url} answered a web page instead of an archive: {shown!r}. Try later.")
        # a strong ETag or the date identifies the version that a resume must go on with
        name = headers.get("ETag") or ""
        version = name if name and not name.startswith("W/") else headers.get("Last-Modified")
        tag.unlink(missing_ok=True)
        if version:
            tag.write_text(version, encoding="utf-8")
        with open(part, "ab" if going_on else "wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
    length = headers.get("Content-Length")
    return length is None or part.stat().st_size == int(length) + (have if going_on else 0)


def _tag_file(part: Path) -> Path:
    return part.with_suffix(".tag")


def _check(part: Path, url: str) -> None:
    """A complete archive, a person file in it, the task's columns; anything else is removed."""
    try:
        with zipfile.ZipFile(part) as archive:
            broken = archive.testzip()
            if broken:
                raise zipfile.BadZipFile(f"{broken} is damaged")
            inside = [name for name in archive.namelist() if is_person_file(name)]
            if not inside:
                raise sl.InvalidInput("data", f"{url} holds no person file (psam_pNN.csv).")
            for name in inside:
                with archive.open(name) as file:
                    header = next(csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig")), [])
                require_task([column.upper() for column in header], name, fewest=len(FEATURES))
    except (zipfile.BadZipFile, sl.InvalidInput) as error:
        part.unlink(missing_ok=True)
        if isinstance(error, sl.InvalidInput):
            raise
        raise FetchError(f"fetch: {url} did not send a complete ZIP archive ({error}). Try again.") from error
    finally:
        _tag_file(part).unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sums(folder: Path) -> dict[str, str]:
    """SHA256SUMS in the form of sha256sum, so that ``sha256sum -c`` checks it too."""
    path = folder / SUMS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    pairs = [line.split(maxsplit=1) for line in lines]
    return {pair[1].lstrip("*"): pair[0] for pair in pairs if len(pair) == 2}


def _remember(folder: Path, name: str, digest: str) -> None:
    sums = _sums(folder) | {name: digest}
    with writing(folder / SUMS) as path:
        path.write_text("".join(f"{sums[key]}  {key}\n" for key in sorted(sums)), encoding="utf-8")
