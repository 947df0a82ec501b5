"""The page's choices: the promises of the library in a person's words, an empty field or a missing file named."""

from __future__ import annotations

import re
from typing import Any

import pytest

from surelist.service.choices import ChosenColumns
from surelist.service.promise_form import offers
from tests.helpers.service import csv_text
from tests.service.test_api import CSV
from tests.service.test_promise_form import Tab, looks
from tests.service.test_promises_api import others, rows, text

__all__ = ["others", "rows"]

SITES = ("east", "north", "south", "west")
PLAIN = {"promise": "expected", "k": "5", "pool_size": "100"}
PAGE: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "every pool": ({"pool": "query"}, {"promise": "next-pool", "k": "2"}, "next pool holds at least 2"),
    "by rank": ({"pool": "query"}, {"promise": "next-pool", "k": "1", "by": "rank"}, "by rank"),
    "average of pools": ({"pool": "query"}, {"promise": "pool-average", "k": "2", "spread": "3"}, "on average over pools"),
    "own recall": ({"pool": "query"}, {"promise": "pool-recall", "share": "70"}, "least 70% of that pool"),
    "of those listed": ({}, {"promise": "precision", "precision": "50", "start": "10", "others": True}, "50% of those"),
    "review only": ({}, {"promise": "budget", "budget": "10", "pool_size": "100", "others": True}, "pools of 100"),
    "other scores": ({}, {**PLAIN, "others": True}, "at least 5 qualified"),
    "two at once": ({}, {**PLAIN, "also": "40", "start": "10", "others": True}, "40% of those"),
    "several scores": ({}, {**PLAIN, "other_score": ["bm25"]}, "at least 5 qualified"),
    "audited": ({"label": "drawn", "labels": "drawn"}, {**PLAIN, "audited_below": "0.6", "audit_rate": "30"}, "labelled"),
    "rates": ({"label": "drawn", "labels": "drawn"}, {**PLAIN, "k": "4", "probability": "rate", "lowest_rate": "30"}, "4 q"),
    "value": ({"label": "value", "labels": "amounts"}, {"promise": "value", "k": "40", "pool_size": "100"}, "value of 40"),
}  # fmt: skip


PICTURED = {  # the others have no curve of their own
    "every pool": "Qualified in the next pool, at least", "by rank": "Qualified in the next pool, at least",
    "average of pools": "Qualified on average, at least", "own recall": "Of its qualified kept, at least, %",
    "of those listed": "Of the list qualified, at least, %", "review only": "Qualified, at least",
    "value": "Value on average, at least",
}  # fmt: skip


SAID_HOW_LONG = {  # in the two lines of the promise
    "of those listed", "review only", "other scores", "two at once", "several scores", "audited", "rates",
}  # fmt: skip


def ask(tab: Tab, frame, asked: dict[str, Any]):
    data = {"csrf": tab.csrf, "shown": tab.shown("/promise"), "alpha": "10", "rule": "exact", **asked}
    files = {"others": ("others.csv", text(frame))} if data.pop("others", False) else None
    return tab.client.post(f"{tab.url}/promise", data=data, files=files)


@pytest.mark.slow
@pytest.mark.parametrize("choice", PAGE)
def test_every_choice_is_certified_shown_saved_and_used(local_client, rows, others, choice):
    columns, asked, said = PAGE[choice]
    tab = Tab(local_client, text(rows))
    assert tab.choose(**columns).status_code == 200
    answer = ask(tab, others, asked)
    assert answer.status_code == 200, answer.text
    assert "This can be promised" in answer.text
    assert said in answer.text
    assert ("What each list length would carry" in answer.text) == (choice in PICTURED)
    assert f'data-y="{PICTURED.get(choice)}"' in answer.text or choice not in PICTURED
    assert ("averages over the pools of your rows, of about 38 candidates" in answer.text) == (
        "pool" in columns
    )
    lengths = set(
        re.findall(r"about ([\d.]+) (?:candidates )?listed per 100|>([\d.]+)<span> of 100", answer.text)
    )
    assert len({one or other for one, other in lengths}) == 1
    assert ("listed per 100" in answer.text) == (choice in SAID_HOW_LONG)
    assert looks(local_client) == (2 if choice == "several scores" else 1)
    assert tab.save(tab.shown("/result")).status_code == 200
    saved = local_client.get("/api/v1/policies").json()[0]
    assert said in saved["promise"]
    listed = local_client.post(
        f"/policies/{saved['hash']}/pool", data={"csrf": tab.csrf},
        files={"file": ("pool.csv", text(others.assign(query=[f"n{i % 20}" for i in range(len(others))])))},
    )  # fmt: skip
    assert (re.search(r'name="pool"', listed.text) is not None) == (choice == "by rank")
    pool = {"pool": "query"} if choice == "by rank" else {}
    score = saved["score_column"]
    done = local_client.post(
        listed.url.path, data={"csrf": tab.csrf, "score": score, "name": "monday", **pool}
    )
    assert done.status_code == 200, done.text
    assert "of 2,000" in done.text
    report = local_client.get(f"/policies/{saved['hash']}/report")
    assert report.status_code == 200
    for page in (report, local_client.get(f"/policies/{saved['hash']}")):
        assert page.text.count('class="mark"') == (choice in PICTURED)
    assert not list(local_client.app.state.runtime.spool.folder.glob("body-*"))


WRONG: list[tuple[dict[str, str], dict[str, Any], str, str]] = [
    ({}, {"promise": "precision", "precision": ""}, "precision", "this field is empty"),
    ({}, {"promise": "precision", "precision": "120"}, "precision", "between 0 and 100"),
    ({}, {"promise": "precision", "precision": "50"}, "others", "needs a file"),
    ({}, {"promise": "budget", "budget": ""}, "budget", "this field is empty"),
    ({}, {**PLAIN, "also": "40"}, "others", "needs a file"),
    ({}, {"promise": "pool-recall", "share": "70"}, "promise", "Choose what is to be promised"),
    ({"pool": "query"}, {"promise": "recall", "share": "70"}, "promise", "Choose what is to be promised"),
    ({"pool": "query"}, {"promise": "next-pool", "k": ""}, "k", "this field is empty"),
    ({"pool": "query"}, {"promise": "pool-average", "k": "2", "spread": "much"}, "spread", "expected a number"),
    ({"label": "drawn", "labels": "drawn"}, {**PLAIN, "audited_below": ""}, "audited_below", "this field is empty"),
    ({"label": "drawn", "labels": "drawn"}, {**PLAIN, "audited_below": "0.6", "audit_rate": ""}, "audit_rate", "empty"),
    ({"label": "drawn", "labels": "drawn"}, {**PLAIN, "probability": "rate", "lowest_rate": ""}, "lowest_rate", "empty"),
    ({"pool": "query"}, {"promise": "next-pool", "k": "2", "rule": "simultaneous"}, "rule", "only a promise on average"),
    ({"pool": "query"}, {"promise": "pool-average", "k": "2", "rule": "simultaneous"}, "rule", "only a promise on average"),
    ({}, {"promise": "budget", "budget": "10", "pool_size": "100", "others": True, "rule": "simultaneous"}, "rule", "only"),
    ({}, {**PLAIN, "others": True, "rule": "simultaneous"}, "rule", "without a file of other scores"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "asked", "field", "said"), WRONG)
def test_what_is_missing_is_said_at_its_field_and_nothing_is_looked_at(
    local_client, rows, others, columns, asked, field, said
):
    tab = Tab(local_client, text(rows))
    tab.choose(**columns)
    answer = ask(tab, others, asked)
    assert answer.status_code == 400
    assert said in answer.text
    if field != "promise":
        assert re.search(rf'name="{field}"[^>]*aria-invalid', answer.text), field
    assert looks(local_client) == 0


@pytest.mark.slow
def test_labels_are_what_a_person_says_they_are(local_client, rows):
    tab = Tab(local_client, text(rows))
    stopped = tab.choose(label="drawn")
    assert stopped.status_code == 400
    assert "say below what an empty one means" in stopped.text
    assert tab.choose(label="drawn", labels="unqualified").status_code == 200
    assert tab.choose(label="query", labels="amounts").status_code == 400
    assert tab.choose(label="value", labels="amounts").status_code == 200


@pytest.mark.slow
def test_a_file_of_other_scores_stays_until_it_is_done_without(local_client, rows, others):
    tab = Tab(local_client, text(rows))
    budget = {"promise": "budget", "budget": "10", "pool_size": "100"}
    assert ask(tab, others, {**budget, "others": True}).status_code == 200
    assert "others.csv is here" in local_client.get(tab.url + "/promise").text
    assert ask(tab, others, {**budget, "budget": "20"}).status_code == 200
    answer = ask(tab, others, {**budget, "no_others": "1"})
    assert "needs a file" in answer.text
    bad = others.rename(columns={"score": "points"})
    answer = ask(tab, bad, {**budget, "others": True})
    assert answer.status_code == 400
    assert "Scores of other candidates: " in answer.text
    assert "points" in answer.text
    assert str(local_client.app.state.runtime.spool.folder) not in answer.text


@pytest.mark.parametrize("rows_of_group", ["own", "all"])
def test_every_group_has_its_picture_with_its_promise_marked(local_client, past, rows_of_group):
    query = [("group", "site"), ("group_rows", rows_of_group), ("purpose", "outreach")]
    targets = [("target", f"{site}=expect:1/{100 if rows_of_group == 'all' else 25}") for site in SITES]
    made = local_client.post("/api/v1/calibrate", params=[*query, *targets], content=past, headers=CSV)
    assert made.status_code == 201, made.text
    address = f"/policies/{made.json()['hash']}"
    page, report = local_client.get(address).text, local_client.get(address + "/report").text
    for site, at in zip(SITES, range(1, 5), strict=True):
        assert f"<h3>Group {site}</h3>" in page
        assert f"What each list length carries, group {site}" in report
        assert page.count(f'id="curve-{at}"') == report.count(f'id="curve-{at}"') == 1
    assert page.count('class="mark"') == report.count('class="mark"') == 4
    assert "Guarantee curve" not in report


def ticked(page: str) -> list[str]:
    radios = re.findall(r'<input type="radio"[^>]*name="promise" value="([^"]*)"( checked)?', page)
    return [value for value, checked in radios if checked]


CHANGED: list[tuple[dict[str, str], str]] = [
    ({}, "per-pool"), ({"pool": "query"}, "next-pool"), ({"label": "drawn", "labels": "drawn"}, "per-pool"),
    ({"label": "value", "labels": "amounts"}, ""),
]  # fmt: skip


@pytest.mark.slow
def test_the_average_is_ticked_at_first_and_a_choice_stays_when_other_columns_are_chosen(
    local_client, rows, others
):
    tab = Tab(local_client, text(rows))
    for columns, first in (({}, "expected"), ({"pool": "query"}, "pool-average"),
                           ({"label": "value", "labels": "amounts"}, "value"),
                           ({"label": "value", "labels": "amounts", "pool": "query"}, "pool-average")):  # fmt: skip
        tab.choose(**columns)
        assert ticked(tab.client.get(f"{tab.url}/promise").text) == [first]
    tab.choose()
    assert ask(tab, others, {"promise": "per-pool", "k": "2", "pool_size": ""}).status_code == 400
    for columns, stays in CHANGED:
        tab.choose(**columns)
        assert ticked(tab.client.get(f"{tab.url}/promise").text) == ([stays] if stays else [])


@pytest.mark.parametrize(
    "columns",
    [{}, {"pool": "query"}, {"label": "drawn", "labels": "drawn"}, {"label": "value", "labels": "amounts"},
     {"label": "value", "labels": "amounts", "pool": "query"}, {"group": "query"}],
)  # fmt: skip
def test_the_form_shows_the_promises_that_it_takes(local_client, rows, columns):
    tab = Tab(local_client, text(rows))
    tab.choose(**columns)
    page = tab.client.get(f"{tab.url}/promise").text
    shown = re.findall(r'<input type="radio"[^>]*name="promise" value="([^"]*)"', page)
    assert sorted(shown) == sorted(each.choice.name for each in offers(ChosenColumns(**columns)))


@pytest.mark.parametrize("together", ["", "4"])
def test_one_cutoff_for_everybody_says_what_each_group_gets_and_what_others_would_have_cost(
    local_client, together
):
    past = csv_text(2000, labelled=True)
    csrf = {"csrf": re.search(r'name="csrf" value="(\w+)"', local_client.get("/new").text)[1]}
    page = str(local_client.post("/drafts", data=csrf, files={"file": ("past.csv", past)}).url)
    columns = {**csrf, "score": "score", "label": "qualified", "group": "site"}
    shown = re.search(r'name="shown" value="(\w+)"', local_client.post(page, data=columns).text)[1]
    sites = dict(enumerate(("east", "north", "south", "west"), 1))
    asked = {f"group-{at}": name for at, name in sites.items()} | {f"k-{at}": "1" for at in sites}
    asked |= {"promise": "expected", "k": "1", "pool_size": "100", "alpha": "10", "rule": "exact"}
    asked |= {"cutoff": "common", "all": together, "shown": shown}
    result = local_client.post(f"{page}/promise", data={**csrf, **asked})
    table = result.text.partition("<h2>One cutoff for everybody</h2>")[2].partition("<h2>")[0]
    assert [name for name in sites.values() if f"<td>{name}</td>" in table] == list(sites.values())
    assert re.search(r"holds for everybody and lists [\d.]+% of the calibration rows", table)
    assert re.search(r"Cutoffs that differ would have listed [\d.]+% of them", table)
    assert "promise nothing" in table
