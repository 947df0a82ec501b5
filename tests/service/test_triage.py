"""A triage over HTTP and on the page: from two files to three lists."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

from surelist import Policy

CSV = {"content-type": "text/csv"}


def judged(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.5
    return np.where(labels, rng.beta(3, 1, n), rng.beta(1, 3, n)), labels


def text(**columns: np.ndarray) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows(zip(*(each.tolist() for each in columns.values()), strict=True))
    return out.getvalue()


@pytest.fixture
def policy(local_client) -> dict:
    scores, labels = judged(1, 1_000)
    past, others = text(score=scores, qualified=labels.astype(int)), text(score=judged(2, 3_000)[0])
    query = {"promise": "triage", "accept": 0.9, "reject": 0.9}
    files = {"past": ("past.csv", past, "text/csv"), "unlabelled": ("others.csv", others, "text/csv")}
    made = local_client.post("/api/v1/calibrate", params=query, files=files)
    assert made.status_code == 201, made.text
    return dict(made.json())


def test_rows_and_files_come_back_on_three_lists(local_client, policy):
    kept = Policy.loads(local_client.get(f"/policies/{policy['hash']}/policy.json").text)
    pool = judged(3, 200)[0]
    expected = kept.triage(pool).tolist()
    assert set(expected) == {"accept", "look", "reject"}
    rows = [{"score": each, "name": str(at)} for at, each in enumerate(pool.tolist())]
    answer = local_client.post(f"/api/v1/policies/{policy['hash']}/select", json={"rows": rows})
    assert answer.json()["triage"] == expected
    assert answer.json()["shortlist"] == [
        row for row, kind in zip(rows, expected, strict=True) if kind == "accept"
    ]
    sent = local_client.post(
        f"/api/v1/policies/{policy['hash']}/select", content=text(score=pool), headers=CSV
    )
    assert [row["triage"] for row in csv.DictReader(io.StringIO(sent.text))] == expected


@pytest.mark.slow
def test_five_clicks_from_two_files_to_three_lists(local_client):
    """Upload, columns, the choice of a triage, what can be promised, and save it with the second file's lists."""
    scores, labels = judged(1, 1_000)
    past, pool = text(score=scores, qualified=labels.astype(int)), judged(2, 3_000)[0]
    csrf = {"csrf": re.search(r'name="csrf" value="(\w+)"', local_client.get("/new").text)[1]}
    page = local_client.post("/drafts", data=csrf, files={"file": ("judged.csv", past)})
    address = str(page.url)
    shown = local_client.post(address, data={**csrf, "score": "score", "label": "qualified"}).text
    asked = {"promise": "triage", "accept": "90", "reject": "90", "alpha": "10", "rule": "exact"}
    asked |= {"shown": re.search(r'name="shown" value="(\w+)"', shown)[1]}
    others = {"others": ("answers.csv", text(score=pool))}
    result = local_client.post(f"{address}/promise", data={**csrf, **asked}, files=others).text
    assert "Save, and triage answers.csv" in result
    assert "For people to look at, about" in result
    shown = re.search(r'name="shown" value="(\w+)"', result)[1]
    last = local_client.post(f"{address}/save", data={**csrf, "shown": shown, "name": "judge", "list": "1"})
    assert "/selections/" in str(last.url), last.text
    made = csv.DictReader(io.StringIO(local_client.get(f"{last.url}/shortlist.csv").text))
    assert "it cannot be reviewed here" in last.text  # these answers have no ids
    listed = {float(row["score"]): row["triage"] for row in made}
    digest = re.search(r'href="/policies/(\w{64})"', last.text)[1]
    kept = Policy.loads(local_client.get(f"/policies/{digest}/policy.json").text)
    lists = kept.triage(pool)
    assert [listed[each] for each in pool.tolist()] == lists.tolist()
    shown = re.search(r"<dl class=\"numbers\">(.*?)</dl>", last.text)[1]
    counts = [f"{np.count_nonzero(lists == name):,}" for name in ("accept", "look", "reject")]
    assert re.findall(r"<dd>([\d,]+)</dd>", shown) == counts
    assert local_client.get(address).status_code == 404, "the uploads are gone"
