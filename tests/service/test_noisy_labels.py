"""Labels that may be wrong, on the page: two fields of the promise, and what two reviewers would support."""

from __future__ import annotations

import csv
import io
import re
from html import unescape

import numpy as np
import pytest
from scipy import stats

from surelist import examples
from surelist.reports.audit import noise_supported
from surelist.service import wizard
from surelist.service.record.marks import Marks


def text(seed: int, n: int, *, labelled: bool) -> str:
    scores, labels = examples.population(np.random.default_rng(seed), n)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["score", "qualified"][: 1 + labelled])
    writer.writerows([repr(float(s)), int(q)][: 1 + labelled] for s, q in zip(scores, labels, strict=True))
    return out.getvalue()


@pytest.fixture
def form(local_client):
    """The form of the promise with columns chosen; sends it with other fields."""
    client = local_client
    csrf = {"csrf": re.search(r'name="csrf" value="(\w+)"', client.get("/new").text)[1]}
    page = client.post("/drafts", data=csrf, files={"file": ("past.csv", text(1, 3000, labelled=True))})
    address = str(page.url)
    shown = client.post(address, data={**csrf, "score": "score", "label": "qualified"}).text
    mark = {"shown": re.search(r'name="shown" value="(\w+)"', shown)[1]}
    others = {"others": ("others.csv", text(2, 5000, labelled=False))}
    usual = {
        "promise": "expected",
        "k": "5",
        "pool_size": "100",
        "share": "80",
        "alpha": "10",
        "rule": "exact",
    }

    def send(*, pool: bool = True, **fields: str) -> str:
        data = {**csrf, **mark, **usual, **fields}
        return unescape(client.post(f"{address}/promise", data=data, files=others if pool else None).text)

    return shown, send


def test_the_form_offers_it_for_the_promises_that_declare_it(form):
    shown, _ = form
    offered = re.search(r"Labels that may be wrong</summary>(.*?)</details>", unescape(shown), re.S)[1]
    assert re.findall(r"“([^”]*)”", offered.partition("How often")[0]) == ["On average", "Miss few"]
    assert "is an assumption" in offered


@pytest.mark.slow
def test_a_promise_about_those_who_really_are_qualified(form):
    _, send = form
    plain, noisy = send(), send(noise="2", longest="30")
    assert "This can be promised" in plain
    assert "This can be promised" in noisy
    assert "This is an assumption: the rows cannot show it." in noisy
    assert "This is an assumption" not in plain
    length = [float(re.search(r"List length, about</dt><dd>([\d.]+)", each)[1]) for each in (plain, noisy)]
    assert length[0] < length[1], "wrong labels cost longer lists"
    assert "This is an assumption" in send(promise="recall", noise="2", pool=False, no_others="1")


@pytest.mark.slow
def test_what_does_not_fit_is_said_at_its_field(form):
    _, send = form
    for fields, said in (
        (
            {"noise": "2", "promise": "precision", "precision": "80"},
            "has no proof with labels that may be wrong",
        ),
        ({"longest": "30"}, "how often a label is wrong at most: this field is empty"),
        ({"noise": "120"}, "expected a percentage between 0 and 100"),
        ({"noise": "2"}, "The longest list"),
    ):
        page = send(**fields)
        assert "That does not fit" in page, fields
        assert said in page, fields


def test_two_reviewers_support_a_bound_and_prove_none():
    said = noise_supported(40, 3)
    wrong = float(re.search(r"at most ([\d.]+) % of labels", said)[1]) / 100
    split = stats.beta.ppf(0.95, 4, 37)  # Clopper-Pearson, one-sided
    assert 0 <= wrong - (1 - np.sqrt(1 - 2 * split)) / 2 < 0.001, "rounded up"
    assert stats.binom.cdf(3, 40, 2 * wrong * (1 - wrong)) <= 0.05
    assert "an assumption, never a proof" in said
    assert "too little" in noise_supported(3, 1)
    assert "Two people marked 1 candidate," in noise_supported(1, 0)


def test_marks_of_two_people_are_compared_and_what_settles_is_not():
    marks = Marks()
    said = [
        ("a", 1, "Anna"),
        ("a", 1, "Ben"),
        ("b", 1, "Anna"),
        ("b", 0, "Ben"),
        ("b", 5, "Anna"),
        ("c", 1, "Ben"),
    ]
    assert wizard.wrong_labels(marks) is None
    marks.take((candidate, code, seq, who, f"{seq}") for seq, (candidate, code, who) in enumerate(said, 1))
    assert wizard.wrong_labels(marks) == noise_supported(2, 1)


def test_no_list_is_counted_by_labels_that_may_be_wrong(local_client):
    query = {"promise": "recall", "share": 0.8, "false_positive": 0.01, "false_negative": 0.05}
    files = {"past": ("past.csv", text(1, 3000, labelled=True), "text/csv")}
    made = local_client.post("/api/v1/calibrate", params=query, files=files)
    assert made.status_code == 201, made.text
    saved = local_client.app.state.runtime.registry.policy(made.json()["hash"])
    assert not wizard.one_ranking(saved)
