"""The page's forms say what they show and act on that alone; looks are counted by the rows themselves."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient

from surelist.promises import policy_file
from surelist.service.record.event import KINDS
from tests.helpers.service import csv_text
from tests.service.test_access import form_token
from tests.service.test_api import CSV, make_policy, rows_of

ASKED = {"promise": "expected", "k": "5", "pool_size": "100", "share": "95", "alpha": "10", "rule": "exact"}


class Tab:
    """A browser tab: pages as they were loaded, forms sent from them."""

    def __init__(self, client: TestClient, body: str | bytes, name: str = "past.csv") -> None:
        self.client, self.csrf = client, form_token(client, "/new")
        sent = client.post("/drafts", data={"csrf": self.csrf}, files={"file": (name, body)})
        self.url = sent.url.path
        self.choose()

    def choose(self, **columns: str):
        chosen = {"score": "score", "label": "qualified", **columns}
        return self.client.post(self.url, data={"csrf": self.csrf, **chosen})

    def shown(self, page: str) -> str:
        return re.search(r'name="shown" value="([0-9a-f]{32})"', self.client.get(self.url + page).text).group(
            1
        )

    def ask(self, shown: str | None = None, **asked: str):
        shown = shown or self.shown("/promise")
        data = {"csrf": self.csrf, "shown": shown, **ASKED, **asked}
        return self.client.post(f"{self.url}/promise", data=data)

    def save(self, shown: str):
        return self.client.post(f"{self.url}/save", data={"csrf": self.csrf, "shown": shown, "name": "p"})


@pytest.fixture
def tab(local_client, past) -> Tab:
    return Tab(local_client, past)


def looks(client) -> int:
    return len(client.app.state.runtime.registry.entries(KINDS["rows.looked"]))


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["per-pool", "recall"])
def test_after_looking_is_refused_at_the_field_where_no_rule_covers_it(tab, local_client, promise):
    answer = tab.ask(promise=promise, rule="simultaneous", k="3")
    assert answer.status_code == 400
    assert "only a promise on average" in answer.text
    assert re.search(r'value="simultaneous" checked aria-invalid="true"', answer.text)
    assert looks(local_client) == 0
    assert tab.ask(promise=promise, rule="exact", k="3").status_code == 200


@pytest.mark.parametrize("field", ["k", "pool_size", "alpha"])
def test_an_empty_field_is_an_error_at_that_field(tab, local_client, field):
    answer = tab.ask(**{field: ""})
    assert answer.status_code == 400
    assert "this field is empty" in answer.text
    invalid = re.findall(r"<input[^>]*aria-invalid[^>]*>", answer.text)
    assert [re.search('name="([^"]+)"', each).group(1) for each in invalid] == [field]
    assert 'value=""' in invalid[0]
    assert looks(local_client) == 0


@pytest.mark.slow
def test_an_empty_share_is_an_error_for_recall_only(tab):
    assert tab.ask(promise="recall", share="").status_code == 400
    assert tab.ask(promise="expected", share="").status_code == 200


def test_a_form_without_a_promise_or_a_time_is_an_error(tab):
    assert tab.ask(promise="").status_code == 400
    assert tab.ask(rule="").status_code == 400


@pytest.mark.slow
def test_an_empty_group_field_is_an_error_at_that_field(tab):
    tab.choose(group="site")
    groups = {f"group-{n}": name for n, name in enumerate(("east", "north", "south", "west"), 1)}
    wanted = {f"k-{n}": "1" for n in range(1, 5)} | {"k-3": ""}
    for without in (
        {"cutoff": ""},
        {"cutoff": "own", "purpose": ""},
        {"cutoff": "common", "rule": "simultaneous"},
    ):
        assert tab.ask(**groups, **(wanted | {"k-3": "1"}), **without).status_code == 400
    answer = tab.ask(cutoff="common", **groups, **wanted)
    assert answer.status_code == 400
    assert "how many qualified you need of south: this field is empty" in answer.text
    assert re.search(r'name="k-3"[^>]*aria-invalid', answer.text)


def test_a_policy_is_written_down_once_and_verified_once_on_its_way_to_the_record(tab, monkeypatch):
    done: list[str] = []

    def noted(name: str, real: Any) -> Any:
        def called(*args: Any, **more: Any) -> Any:
            done.append(name)
            return real(*args, **more)

        return called

    for name in ("dumps", "loads"):
        monkeypatch.setattr(policy_file, name, noted(name, getattr(policy_file, name)))
    assert tab.ask().status_code == 200  # and the page with the result
    assert tab.save(tab.shown("/result")).status_code == 200  # and the page of the policy
    assert done == ["dumps", "loads"]


@pytest.mark.slow
def test_saving_stores_what_the_tab_shows_or_nothing(tab, local_client):
    tab.ask(k="4")
    first = tab.shown("/result")
    tab.ask(k="6")  # in another tab
    conflict = tab.save(first)
    assert conflict.status_code == 409
    assert "another tab" in conflict.json()["error"]["message"]
    assert local_client.get("/api/v1/policies").json() == []
    assert tab.save(tab.shown("/result")).status_code == 200
    assert "at least 6 qualified" in local_client.get("/api/v1/policies").json()[0]["promise"]


def test_a_promise_is_certified_on_the_columns_its_form_was_shown_with(local_client, past):
    text = "\n".join(f"{line},{'other' if n == 0 else n % 7}" for n, line in enumerate(past.splitlines()))
    tab = Tab(local_client, text)
    shown = tab.shown("/promise")
    tab.choose(score="other")  # in another tab
    assert tab.ask(shown=shown).status_code == 409
    assert looks(local_client) == 0


def shuffled(text: str) -> str:
    rows = list(csv.DictReader(io.StringIO(text)))
    order = np.random.default_rng(0).permutation(len(rows))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, ["note", *rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"note": f"n{n}", **rows[n]} for n in order)
    return out.getvalue()


def test_the_same_rows_shuffled_and_with_a_column_added_are_the_same_rows(client, past):
    client.post("/api/v1/calibrate?k=30&pool_size=100", content=past, headers=CSV)
    again = make_policy(client, shuffled(past))
    assert again["earlier_looks"] == 1
    assert "at least 30 qualified" in again["conditions"][-1]
    other = make_policy(client, csv_text(2000, labelled=True, seed=9))
    assert other["earlier_looks"] == 0


def test_the_page_knows_rows_that_were_looked_at_under_another_name(local_client, past):
    local_client.post("/api/v1/curve", content=past, headers=CSV)
    assert (
        "A question has been asked of these rows before."
        in local_client.get(Tab(local_client, shuffled(past)).url + "/promise").text
    )


@pytest.mark.parametrize(
    "query", ["k=5&pool_size=100&score=scor", "k=5&pool_size=100&label=age", "k=5&pool_size=100&group=site"]
)
def test_a_request_that_fails_before_anything_is_seen_is_no_look(client, past, query):
    assert client.post(f"/api/v1/calibrate?{query}", content=past, headers=CSV).status_code == 400
    assert client.post("/api/v1/curve?score=scor", content=past, headers=CSV).status_code == 400
    assert looks(client) == 0


def test_a_repeated_idempotency_key_is_no_look(client, past):
    for _ in range(3):
        answer = client.post(
            "/api/v1/calibrate?k=5&pool_size=100", content=past, headers={**CSV, "Idempotency-Key": "once"}
        )
        assert answer.status_code == 201
    assert looks(client) == 1


@pytest.mark.slow
def test_another_alpha_on_the_explore_page_is_a_look_and_the_conditions_say_so(tab, local_client):
    assert local_client.get(f"{tab.url}/explore?pool_size=100&alpha=20").status_code == 200
    assert local_client.get(f"{tab.url}/explore?pool_size=100&alpha=10").status_code == 200
    assert looks(local_client) == 2
    tab.ask(rule="simultaneous", alpha="10", k="4")
    page = local_client.get(f"{tab.url}/result").text
    assert (
        "chosen after looking at what these rows carry, with the same chance of error; that is covered"
        in page
    )
    assert "the curve, false at most 20%" in page
    tab.save(tab.shown("/result"))
    saved = local_client.get("/api/v1/policies").json()[0]
    assert any("at most 20%" in condition for condition in saved["conditions"])


@pytest.mark.slow
def test_exploring_at_the_promised_alpha_is_covered(tab, local_client):
    local_client.get(f"{tab.url}/explore?pool_size=100&alpha=7")
    tab.ask(rule="simultaneous", alpha="7", k="4")
    page = local_client.get(f"{tab.url}/result").text
    assert "that is covered" in page
    assert "alpha does not cover it" not in page


@pytest.mark.parametrize("field", ["pool_size", "alpha"])
def test_an_empty_field_on_the_explore_page_is_an_error_at_that_field(tab, local_client, field):
    before = looks(local_client)
    answer = local_client.get(f"{tab.url}/explore", params={"pool_size": "100", "alpha": "10", field: ""})
    assert answer.status_code == 400
    assert "this field is empty" in answer.text
    marked = answer.text.split("aria-invalid")[0].rsplit("<input", 1)[1]
    assert f'name="{field}"' in marked
    assert "Draw again" in answer.text
    assert looks(local_client) == before


def test_a_viewer_is_told_that_candidates_are_not_for_viewers(settings, past, pool):
    from msgspec.structs import replace

    from surelist.service.app import create_app
    from tests.service.test_access import log_in, token

    with TestClient(create_app(replace(settings, login=True)), base_url="http://localhost") as client:
        operator = token(client, "operator")
        policy = make_policy_as(client, past, operator)
        made = client.post(
            f"/api/v1/policies/{policy}/select", json={"rows": rows_of(pool)}, headers=operator
        ).json()["selection"]["id"]
        log_in(client, "viewer")
        text = client.get(f"/selections/{made}").text
        assert "shown to operators and admins only" in text
        assert "not kept on this server any more" not in text
        log_in(client, "operator")
        assert "not kept on this server any more" in client.get(f"/selections/{made}").text


def make_policy_as(client, past, headers) -> str:
    answer = client.post("/api/v1/calibrate?k=5&pool_size=100", content=past, headers={**CSV, **headers})
    return answer.json()["hash"]


ODD_SCORES = {
    "decimal commas": lambda score, n: f'"{score}"'.replace(".", ","),
    "percent signs": lambda score, n: f"{100 * float(score):.2f} %",
    "a few n/a": lambda score, n: "n/a" if n % 50 == 0 else score,
}


@pytest.mark.parametrize("kind", ODD_SCORES)
def test_a_score_that_cannot_be_read_is_not_replaced_by_another_column(local_client, past, kind):
    lines = [f"{row['candidate']},{row['age']},{ODD_SCORES[kind](row['score'], n)},{row['qualified']}"
             for n, row in enumerate(csv.DictReader(io.StringIO(past)))]  # fmt: skip
    text = "\n".join(["candidate,age,score,qualified", *lines])
    sent = local_client.post(
        "/drafts", data={"csrf": form_token(local_client, "/new")}, files={"file": ("past.csv", text)}
    )
    assert selected(sent.text, "label") == "qualified"
    if kind != "a few n/a":  # numbers, written in another way
        assert selected(sent.text, "score") == "score"
        assert "is read as " in sent.text
        return
    assert selected(sent.text, "score") == ""
    assert "is named like a score, but" in sent.text
    assert "could not be recognised" in sent.text


def selected(page: str, name: str) -> str:
    part = re.search(rf'<select id="{name}".*?</select>', page, re.DOTALL).group(0)
    chosen = re.search(r'<option value="([^"]*)" selected', part)
    return chosen.group(1) if chosen else ""


@pytest.mark.slow
def test_the_chosen_score_is_shown_with_its_range_and_auc(tab, local_client):
    promise = local_client.get(f"{tab.url}/promise").text
    assert re.search(r"Score column: score, from [0-9.e-]+ to 0\.9\d*\.", promise)
    assert "AUC 0." not in promise  # to see it before the promise is fixed would be a look
    tab.ask()
    page = local_client.get(f"{tab.url}/result").text
    shown = re.search(r"Score column “score”: [0-9.e-]+ to 0\.9\d* on the calibration rows, AUC 0\.8\d", page)
    assert shown
    saved = tab.save(tab.shown("/result"))
    assert shown.group(0) in saved.text
    policy = local_client.get("/api/v1/policies").json()[0]
    assert policy["score_column"] == "score"
    assert 0.8 < policy["scores"][0]["auc"] < 0.9


def test_a_score_that_ranks_the_wrong_way_is_warned_of(local_client, past):
    rows = list(csv.DictReader(io.StringIO(past)))
    lines = [f"{1 - float(row['score'])},{row['qualified']}" for row in rows]
    made = make_policy(local_client, "\n".join(["score,qualified", *lines]))
    assert "score lower than the others" in made["warnings"][0]
    assert "is it the right score column" in local_client.get(f"/policies/{made['hash']}").text


def test_a_pool_without_the_calibrated_column_gets_no_other_one(local_client, past, pool):
    made = make_policy(local_client, past)
    renamed = pool.replace("score", "rating", 1)
    sent = local_client.post(
        f"/policies/{made['hash']}/pool",
        data={"csrf": form_token(local_client, "/new")},
        files={"file": ("pool.csv", renamed)},
    )
    assert sent.status_code == 200
    assert selected(sent.text, "score") == ""


@pytest.mark.slow
def test_a_parquet_file_goes_from_upload_to_shortlist_on_the_page_and_its_rows_are_those_of_the_csv(
    tab, local_client, past
):
    tab.ask()
    frame = pl.read_csv(io.StringIO(past))
    frame.write_parquet(body := io.BytesIO())
    other = Tab(local_client, body.getvalue(), "past.parquet")
    assert "A question has been asked of these rows before" in local_client.get(f"{other.url}/promise").text
    other.ask()
    policy = other.save(other.shown("/result")).url.path
    pool = local_client.post(
        f"{policy}/pool", data={"csrf": tab.csrf}, files={"file": ("pool.parquet", body.getvalue())}
    )
    assert selected(pool.text, "score") == "score"
    chosen = {"csrf": tab.csrf, "score": "score", "id": "candidate"}
    listed = local_client.post(pool.url.path, data=chosen)
    assert listed.url.path.startswith("/selections/")
    assert f"of {len(frame):,} candidates" in listed.text
