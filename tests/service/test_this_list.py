"""How many of this very list are qualified: by API, and on the page of a shortlist."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape

import numpy as np
import pytest

from surelist import examples, list_curve

N, M = 600, 400


def table(seed: int, n: int, *, labelled: bool) -> tuple[np.ndarray, np.ndarray, str]:
    scores, labels = examples.population(np.random.default_rng(seed), n)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["id", "score", "qualified"] if labelled else ["id", "score"])
    for at in range(n):
        row = [f"c{seed}-{at}", repr(float(scores[at]))]
        writer.writerow([*row, int(labels[at])] if labelled else row)
    return scores, labels, out.getvalue()


@pytest.fixture(scope="module")
def rows():
    return table(1, N, labelled=True)


@pytest.fixture(scope="module")
def pool():
    return table(2, M, labelled=False)


def csrf_of(client) -> str:
    return str(re.search(r'name="csrf" value="(\w+)"', client.get("/new").text)[1])


def shortlisted(client, rows, pool, **promise) -> str:
    """The page of a shortlist, made from two files."""
    query = {"k": 5, "pool_size": 100, "id": "id", "name": "p", **promise}
    headers = {"content-type": "text/csv"}
    made = client.post("/api/v1/calibrate", params=query, content=rows[2], headers=headers)
    assert made.status_code == 201, made.text
    csrf, files = {"csrf": csrf_of(client)}, {"file": ("pool.csv", pool[2], "text/csv")}
    sent = client.post(f"/policies/{made.json()['hash']}/pool", data=csrf, files=files)
    chosen = {**csrf, "score": "score", "id": "id", "decimal": "auto"}
    page = client.post(str(sent.url).removeprefix("http://testserver"), data=chosen)
    assert "/selections/" in str(page.url), page.text
    return str(page.url)


def test_by_api_every_length_is_as_in_python(local_client, rows, pool):
    files = {"past": ("past.csv", rows[2], "text/csv"), "unlabelled": ("pool.csv", pool[2], "text/csv")}
    said = local_client.post("/api/v1/list", params={"alpha": 0.2}, files=files)
    assert said.status_code == 200, said.text
    expected = list_curve(rows[0], rows[1], pool[0], alpha=0.2)
    for name in ("list_size", "threshold", "at_least", "at_most"):
        assert said.json()[name] == getattr(expected, name).tolist()
    assert said.json()["conditions"] == list(expected.conditions)
    entry = local_client.get("/api/v1/log").json()[0]
    assert entry["details"]["how"] == "list", "asking is a look at the rows"


def test_rows_without_a_pool_say_nothing(local_client, rows):
    said = local_client.post("/api/v1/list", content=rows[2], headers={"content-type": "text/csv"})
    assert said.status_code == 400
    assert said.json()["error"]["message"].startswith("unlabelled: the pool is missing")


@pytest.mark.slow
def test_the_page_says_it_of_the_list_at_hand_as_of_the_whole_pool(local_client, rows, pool):
    page = shortlisted(local_client, rows, pool)
    assert "How many of this list are qualified?" in local_client.get(page).text
    files = {"file": ("past.csv", rows[2], "text/csv")}
    data = {"csrf": csrf_of(local_client), "score": "score", "label": "qualified"}
    shown = local_client.post(f"{page}/list", data=data, files=files)
    points = json.loads(unescape(re.search(r'data-counts="([^"]*)"', shown.text)[1]))
    whole = list_curve(rows[0], rows[1], pool[0], alpha=0.1)
    expected = zip(whole.list_size.tolist(), whole.at_least.tolist(), whole.at_most.tolist(), strict=True)
    assert points == [list(each) for each in expected][: len(points)]
    assert len(points) < M
    size, least, most = points[9]
    asked = local_client.get(page, params={"n": size}).text
    assert f"In the first {size} of this list at least {least} and at most {most} are qualified" in asked
    for each in whole.conditions:
        assert each in unescape(shown.text), "conditions stand beside it"


def test_the_page_refuses_what_is_not_there_and_rows_of_the_pool(local_client, rows, pool):
    page = shortlisted(local_client, rows, pool)
    data = {"csrf": csrf_of(local_client), "score": "score", "label": "qualified"}
    assert "choose a file" in local_client.post(f"{page}/list", data=data).text
    wrong = {**data, "label": "decision"}
    files = {"file": ("past.csv", rows[2], "text/csv")}
    assert local_client.post(f"{page}/list", data=wrong, files=files).status_code == 400
    same = table(2, M, labelled=True)[2]
    again = local_client.post(f"{page}/list", data=data, files={"file": ("same.csv", same, "text/csv")})
    assert again.status_code == 400
    assert "scores of other candidates" in again.text
    assert "data-counts" not in local_client.get(page).text


@pytest.mark.slow
def test_the_page_says_of_which_lists_nothing_is_counted_and_ids_stand_once(local_client, rows, pool):
    page = shortlisted(local_client, rows, pool)
    data = {"csrf": csrf_of(local_client), "score": "score", "label": "qualified"}
    files = {"file": ("past.csv", rows[2], "text/csv")}
    counted = local_client.post(f"{page}/list", data=data, files=files).text
    ids = re.findall(r' id="([^"]+)"', counted)
    assert len(ids) == len(set(ids))
    page = shortlisted(local_client, rows, pool)
    digest = re.search(r'href="/policies/(\w{64})"', local_client.get(page).text)[1]
    assert local_client.post(f"/api/v1/policies/{digest}/retire", json={"reason": "old"}).status_code == 200
    assert "is said of lists that are a pool’s best by one score" in local_client.get(page).text
    refused = local_client.post(f"{page}/list", data=data, files=files)
    assert refused.status_code == 400
    assert "not the best of its pool by one score" in refused.text


def test_a_pool_that_holds_the_rows_is_named_as_it_was_sent(local_client, rows):
    files = {"past": ("past.csv", rows[2], "text/csv"), "unlabelled": ("pool.csv", rows[2], "text/csv")}
    refused = local_client.post("/api/v1/list", files=files).json()["error"]
    assert refused["field"] == "unlabelled"
    assert refused["message"].startswith("unlabelled: these scores hold some of the calibration rows")


def test_what_goes_with_groups_is_named_as_a_parameter(local_client, rows):
    query = {"promise": "recall", "share": 0.8, "group_cutoff": "common"}
    headers = {"content-type": "text/csv"}
    refused = local_client.post("/api/v1/calibrate", params=query, content=rows[2], headers=headers)
    assert refused.json()["error"]["message"] == "group_cutoff: goes with group=, got 'common' without."
