"""Names, notes, ids and columns that would run in a page or a spreadsheet: everywhere they are text.

Every page that can be asked for is looked at, from the app's own routes; then every file that people take home.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile

import pytest
from msgspec.structs import replace

from tests.helpers.service import close, csv_text, operations
from tests.service.test_api import CSV
from tests.service.test_workspace import Person, Team

TAG = "<img src=x onerror=alert(1)>'\""
FORMULA = "=HYPERLINK(0)"
EVIL = FORMULA + TAG
RAW = re.compile(r"<img src=x|onerror=alert\(1\)>'\"")


def table(rows: int, seed: int, *, labelled: bool) -> str:
    """A pool whose ids, columns and group are all hostile."""
    lines = list(csv.reader(io.StringIO(csv_text(rows, labelled=labelled, seed=seed))))
    at = lines[0].index("candidate")
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    for number, line in enumerate(lines):
        line[at] = f"{EVIL}id" if number == 0 else f"{EVIL}{number}"
        writer.writerow([*line, f"{EVIL}column" if number == 0 else f"{EVIL}cell"])
    return out.getvalue()


class Poisoned:
    """A service in which every text that a person may write is hostile."""

    def __init__(self, settings) -> None:
        self.team = Team(replace(settings, login=True))
        self.ann, self.boss = self.team.ann, Person(self.team.app, EVIL, "admin")
        past = {"file": (f"{EVIL}.csv", table(2000, 0, labelled=True))}
        self.draft = self.ann.post("/drafts", files=past).url.path.split("/")[2]
        chosen = {"score": "score", "label": "qualified", "group": f"{EVIL}column", "id": f"{EVIL}id"}
        assert self.ann.post(f"/drafts/{self.draft}", **chosen).status_code in (200, 400)
        policy = f"/policies/{self.team.policy}"
        assert self.ann.post(policy + "/describe", name=EVIL, note=EVIL).status_code == 200
        pool = {"file": (f"{EVIL}.csv", table(300, 1, labelled=False))}
        self.pool = self.ann.post(policy + "/pool", files=pool).url.path.split("/")[2]
        again = self.ann.post(policy + "/pool", files=pool).url.path
        names = {"score": "score", "id": f"{EVIL}id", "name": EVIL, "note": EVIL, "purpose": EVIL}
        done = self.ann.post(again, **names)
        assert done.status_code == 200, done.text
        self.selection = done.url.path.rpartition("/")[2]
        for path, form in (("marks", {"mark": "yes"}), ("notes", {"text": EVIL})):
            sent = self.ann.post(f"/selections/{self.selection}/{path}", rank="1", **form)
            assert sent.status_code == 200, sent.text
        self.collection, begun = (
            self.ann.post("/labellings", files=pool).url.path.split("/")[2] for _ in range(2)
        )
        asked = {"score": "score", "id": f"{EVIL}id", "promise": "at-least", "many": "3", "labels": "300"}
        page = self.ann.post(f"/collections/{begun}", **asked, alpha="10", name=EVIL)
        self.labelling = page.url.path.split("/")[2]
        assert page.status_code == 200, page.text
        self.campaign, self.campaign_pool = self._campaign()

    def _campaign(self) -> tuple[str, str]:
        columns = {"score": "score", "label": "qualified", "id": f"{EVIL}id"}
        asked = {**columns, "k": 5, "pool_size": 100, "name": EVIL, "note": EVIL}
        post, past = self.ann.client.post, table(2000, 0, labelled=True)
        made = post("/api/v1/campaigns", params=asked, content=past, headers=CSV).json()["id"]
        screen, pool = f"/api/v1/campaigns/{made}/screen", table(300, 1, labelled=False)
        screened = post(screen, params={"name": EVIL, "note": EVIL}, content=pool, headers=CSV)
        return made, screened.json()["pool"]

    def address(self, path: str) -> str:
        kinds = {
            "/drafts/": self.draft, "/pools/": self.pool, "/collections/": self.collection,
            "/labellings/": self.labelling, "/selections/": self.selection, "/campaigns/": self.campaign,
        }  # fmt: skip
        ident = next((thing for kind, thing in kinds.items() if path.startswith(kind)), "0" * 16)
        parts = {
            "campaign": self.campaign,
            "pool": self.campaign_pool,
            "ident": ident,
            "selection": self.selection,
            "format": "xlsx",
        }
        parts |= {"digest": self.team.policy, "policy": self.team.policy}
        return re.sub(r"\{(\w+)\}", lambda part: parts.get(part[1], "0" * 16), path)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    from surelist.service.settings import Settings

    folder = tmp_path_factory.mktemp("poisoned")
    made = Poisoned(Settings(database=str(folder / "r.db"), folder=folder / "data"))
    yield made
    close(made.team.app)


@pytest.mark.slow
def test_no_page_holds_markup_out_of_a_name(poisoned):
    seen, escaped = 0, 0
    for method, path in operations(poisoned.team.app):
        if method != "GET":
            continue
        for person in (poisoned.ann, poisoned.boss):
            both = f"?p={poisoned.team.policy}&p={poisoned.team.policy}" if "compare" in path else ""
            answer = person.get(poisoned.address(path) + both)
            if "html" in answer.headers.get("content-type", ""):
                seen += answer.status_code == 200
                escaped += "&lt;img src=x" in answer.text
                assert not RAW.search(answer.text), path
    assert seen > 20
    assert escaped > 12


@pytest.mark.slow
def test_errors_hold_no_markup_either(poisoned):
    for path in (
        f"/selections?q={TAG}",
        f"/policies/{TAG}",
        f"/selections/{TAG}",
        f"/login?next={TAG}",
        f"/{TAG}",
    ):
        assert not RAW.search(poisoned.ann.get(path).text), path
    page = poisoned.ann.post(f"/pools/{poisoned.pool}", score=EVIL, id=EVIL)
    assert page.status_code == 400
    assert not RAW.search(page.text)


def cells_of(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


@pytest.mark.slow
def test_no_file_for_people_holds_a_formula(poisoned):
    path = f"/selections/{poisoned.selection}"
    for name in ("/reviews.csv", "/shortlist.csv?safe=1"):
        cells = cells_of(poisoned.ann.get(path + name).content.decode("utf-8-sig"))
        assert any(FORMULA in cell for cell in cells)
        assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "\t"))], name
    pool = f"/campaigns/{poisoned.campaign}/pools/{poisoned.campaign_pool}"
    cells = cells_of(poisoned.ann.get(pool + "/shortlist.csv").content.decode("utf-8-sig"))
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "\t"))]
    books = (path + "/shortlist.xlsx", pool + "/shortlist.xlsx", f"/drafts/{poisoned.draft}/problems.xlsx")
    for address in books:
        answer = poisoned.ann.get(address)
        if answer.status_code != 200:  # no problem rows
            continue
        with zipfile.ZipFile(io.BytesIO(answer.content)) as book:
            sheets = [book.read(name).decode() for name in book.namelist() if "worksheets/sheet" in name]
        assert sheets
        assert not [sheet for sheet in sheets if "<f>" in sheet or "<f " in sheet], address


def test_the_certified_list_of_a_collection_holds_no_formula(poisoned):
    ident, ann = poisoned.labelling, poisoned.ann
    text = ann.get(f"/selections/{ident}/reviews.csv").content.decode("utf-8-sig")
    ids = [row[1].removeprefix("'") for row in csv.reader(io.StringIO(text))][1:]
    out = io.StringIO(newline="")
    csv.writer(out).writerows([("id", "review"), *((each, "yes") for each in ids)])
    sent = ann.post(
        f"/selections/{ident}/reviews", files={"file": ("a.csv", out.getvalue())}, id="id", label="review"
    )
    assert sent.status_code == 200, sent.text
    told = ann.post(f"/labellings/{ident}/tell")
    assert "This can be promised" in told.text
    listed = ann.client.post(f"/labellings/{ident}/list", data={"csrf": ann.csrf})
    assert listed.status_code == 200, listed.text
    cells = cells_of(listed.content.decode("utf-8-sig"))
    assert any(FORMULA in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "\t"))]


def test_the_name_of_a_download_stays_in_its_header(poisoned):
    answer = poisoned.ann.get(f"/selections/{poisoned.selection}/shortlist.xlsx")
    said = answer.headers["content-disposition"]
    assert re.fullmatch(r"attachment; filename(\*=utf-8''[\w%.-]+|=\"[\w.-]+\")", said), said
