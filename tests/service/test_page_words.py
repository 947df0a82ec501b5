"""No insider's word and no exponent on any page, closed details aside; and the report as a file to print."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from surelist._names import option
from surelist.errors import InvalidInput
from surelist.service.errors import plainly, sentence
from surelist.tables.reading import DECIMAL
from tests.helpers.service import csv_text
from tests.service.test_access import form_token
from tests.service.test_promise_form import Tab

INSIDERS = re.compile(
    r"simultaneous|\bDKW\b|\bdkw\b|\bpac\b|bernstein|paper's rule|rule of the paper|exact rule|looked at \d|"
    r"on_bad_rows|missing_labels|pos_label|unlabelled=|ties=|rule=|conformal|martingale|\be-value|rank-chain|"
    r"Clopper|Bonferroni|sidak|\bPython\b|\d[eE][+-]\d|\bnan\b",
)
VOID = {"meta", "link", "input", "br", "hr", "img"}


class Visible(HTMLParser):
    """The text a person sees: no scripts, no titles of pictures, no details that are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.hidden = 0
        self.text: list[str] = []
        self._tags: list[tuple[str, bool]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        closed = tag == "details" and "open" not in given
        hide = tag in ("script", "style", "desc", "title", "head") or closed or "hidden" in given
        if tag not in VOID:
            self._tags.append((tag, hide))
            self.hidden += hide

    def handle_endtag(self, tag):
        while self._tags:
            name, hide = self._tags.pop()
            self.hidden -= hide
            if name == tag:
                break

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)


def check(answer) -> str:
    text = " ".join(" ".join(Visible(answer.text).text).split())
    assert text, answer.url
    assert (found := INSIDERS.search(text)) is None, (
        f"{answer.url}: …{text[max(0, found.start() - 80) :][:160]}…"
    )
    return text


def test_a_sentence_begins_large_and_keeps_its_words():
    assert sentence("at least 5 of Ulm") == "At least 5 of Ulm"
    assert sentence("") == ""


@pytest.mark.slow
def test_every_page_on_the_way_to_a_reviewed_list(local_client, past):
    client, pool = local_client, csv_text(400, labelled=False, seed=2)
    for path in (
        "/",
        "/new",
        "/glossary",
        "/policies",
        "/selections",
        "/record",
        "/kept",
        "/labellings/new",
        "/team",
        "/campaigns",
        "/campaigns/new",
    ):
        check(client.get(path))
    tab = Tab(client, past)
    check(client.get(tab.url))
    check(client.get(f"{tab.url}/promise"))
    check(tab.ask(k="30"))  # refused
    check(client.get(f"{tab.url}/explore"))
    assert "questions have been asked of these rows" in check(client.get(f"{tab.url}/promise"))
    check(tab.ask(k=""))
    check(tab.ask(promise="recall", rule="simultaneous"))
    result = check(tab.ask(k="4", rule="simultaneous"))
    assert "On average at least 4 of about" in result
    tab.save(tab.shown("/result"))
    fresh = Tab(client, csv_text(2000, labelled=True, seed=5))
    fresh.ask()
    policy = fresh.save(fresh.shown("/result")).url.path
    page = check(client.get(policy))
    assert "How sure: at most 1 calibration in 10 ends in a false promise." in page
    hashes = [each["hash"] for each in client.get("/api/v1/policies").json()]
    check(client.get("/policies/compare?" + "&".join(f"p={each}" for each in hashes)))
    check(client.get(f"/new?like={hashes[0]}"))
    sent = client.post(f"{policy}/pool", data={"csrf": fresh.csrf}, files={"file": ("pool.csv", pool)})
    check(sent)
    made = client.post(
        sent.url.path,
        data={"csrf": fresh.csrf, "score": "score", "id": "candidate", "watch": "1", "keep": "86400"},
    )
    selection = check(made)
    assert re.search(r"\d+ listed here; about \d+ to \d+ qualified would be usual\.", selection)
    check(client.get(f"{made.url.path}/review"))
    for path in ("/", "/policies", "/selections", "/record", "/kept", "/nowhere"):
        check(client.get(path, headers={"Accept": "text/html"}))
    assert "would be usual" in client.get(f"{made.url.path}/report").text
    pdf = client.get(f"{made.url.path}/report.pdf")
    assert pdf.content.startswith(b"%PDF")
    assert pdf.headers["content-type"] == "application/pdf"
    assert re.search(r'filename="p_pool-report_\d{4}-\d\d-\d\d\.pdf"', pdf.headers["content-disposition"])
    assert client.get(f"{policy}/report.pdf").content.startswith(b"%PDF")


@pytest.mark.slow
def test_what_would_be_usual_is_not_said_of_a_promise_chosen_after_looking(local_client, past):
    pool = csv_text(400, labelled=False, seed=2)
    tab = Tab(local_client, past)
    local_client.get(f"{tab.url}/explore")
    tab.ask(k="4", rule="exact")
    policy = tab.save(tab.shown("/result")).url.path
    sent = local_client.post(f"{policy}/pool", data={"csrf": tab.csrf}, files={"file": ("pool.csv", pool)})
    made = local_client.post(sent.url.path, data={"csrf": tab.csrf, "score": "score", "id": "candidate"})
    assert "would be usual" not in made.text
    assert "would be usual" not in local_client.get(f"{made.url.path}/report").text


def test_the_labelling_pages(local_client):
    csrf = form_token(local_client, "/labellings/new")
    text = csv_text(600, labelled=False)
    page = local_client.post("/labellings", data={"csrf": csrf}, files={"file": ("people.csv", text)})
    check(page)
    asked = {
        "score": "score",
        "id": "candidate",
        "promise": "at-least",
        "many": "20",
        "labels": "60",
        "alpha": "10",
    }
    check(local_client.post(page.url.path, data={"csrf": csrf, **asked}))
    check(local_client.post(page.url.path, data={"csrf": csrf, **asked, "labels": "x"}))


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (InvalidInput("pool_size", expected="at least 1", got="0"), "Pool size: expected at least 1, got 0."),
        (InvalidInput("score", f"give every candidate a score{option('on_bad_rows', 'drop', before=', or ')}."),
         "Score: give every candidate a score."),
        (InvalidInput("unlabelled", f"scores of others are needed; pass {option('unlabelled')}."),
         "Scores of other candidates: scores of others are needed; pass “Scores of other candidates”."),
        (InvalidInput("labels", f"missing; {option('missing_labels', 'unqualified')} keeps them."),
         "Labels: missing; the field “Labels” keeps them."),
        (InvalidInput("column 'x'", "1,234 is ambiguous.", remedy=DECIMAL),
         "column 'x': 1,234 is ambiguous. Say which mark is the decimal one: the field “Decimal mark”."),
    ],
)  # fmt: skip
def test_errors_in_the_words_of_the_page(error, shown):
    assert plainly(error) == shown


def test_a_promise_that_cannot_be_watched_says_why_without_a_keyword():
    import surelist as sl
    from tests.helpers.promise_kinds import policy_of

    policy = policy_of("budget")
    with pytest.raises(sl.InvalidInput) as refused:
        policy.cutoffs[0].target.watched(policy)
    said = plainly(refused.value)
    assert "averages in pools of a known size, shares that are kept, triages." in said
    assert INSIDERS.search(said) is None
