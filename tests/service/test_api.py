"""The API over HTTP on both databases: what comes back, what goes on record, one error shape."""

from __future__ import annotations

import csv
import hashlib
import io
import json

import pytest

from surelist import PerPool, Policy, calibrate
from surelist.errors import Shortfall
from surelist.promises import policy_file
from surelist.promises.wording import OF_NOBODY
from surelist.score_summary import PoolCheck
from surelist.service.record.access import csrf_token
from surelist.service.record.verify import verify
from tests.helpers.record import by, selection

CSV = {"content-type": "text/csv"}
PARQUET = {"content-type": "application/vnd.apache.parquet"}


def make_policy(client, past, **options) -> dict:
    query = {"k": 5, "pool_size": 100, **options}
    answer = client.post("/api/v1/calibrate", params=query, content=past, headers=CSV)
    assert answer.status_code == 201, answer.text
    return answer.json()


def rows_of(text: str) -> list[dict]:
    return [{**row, "score": float(row["score"])} for row in csv.DictReader(io.StringIO(text))]


def record(client):
    return client.app.state.runtime.registry


def test_calibrate_puts_the_policy_of_the_library_on_record(client, past):
    made = make_policy(client, past, name="trial")
    rows = list(csv.DictReader(io.StringIO(past)))
    from surelist import Expected

    expected = calibrate(
        [float(r["score"]) for r in rows], [int(r["qualified"]) for r in rows], Expected(5, 100)
    )
    assert made["cutoffs"][0]["threshold"] == expected.threshold
    assert made["cutoffs"][0]["critical_count"] == expected.cutoffs[0].steps[0].critical_count
    assert made["promise"] == expected.promise
    assert made["two_lines"]["what"] == expected.two_lines.what
    assert made["two_lines"]["sure"] == expected.two_lines.sure
    assert made["two_lines"]["meaning"] == [*expected.two_lines.meaning]
    saved = record(client).policy(made["hash"])
    assert hashlib.sha256(policy_file.dumps(saved.policy).encode()).hexdigest() == made["hash"]
    assert client.get(f"/api/v1/policies/{made['hash']}").json() == made
    assert [p["hash"] for p in client.get("/api/v1/policies").json()] == [made["hash"]]
    assert saved.entry.facts["rows_sha256"] == hashlib.sha256(past.encode()).hexdigest()


def test_the_policy_on_record_loads_in_the_library(local_client, past, tmp_path):
    made = make_policy(local_client, past)
    text = local_client.get(f"/policies/{made['hash']}/policy.json").text
    assert hashlib.sha256(text.encode()).hexdigest() == made["hash"]
    assert Policy.loads(text).threshold == made["cutoffs"][0]["threshold"]


def test_json_csv_and_parquet_give_the_same_shortlist(client, past, pool, tmp_path):
    import duckdb

    policy = make_policy(client, past)["hash"]
    url = f"/api/v1/policies/{policy}/select"
    by_json = client.post(url, json={"rows": rows_of(pool)}).json()
    by_csv = client.post(url, content=pool, headers=CSV)
    file = tmp_path / "pool.parquet"
    (tmp_path / "pool.csv").write_text(pool)
    duckdb.execute(f"COPY (SELECT * FROM '{tmp_path}/pool.csv') TO '{file}' (FORMAT parquet)")
    by_parquet = client.post(url, content=file.read_bytes(), headers=PARQUET)
    (tmp_path / "out.parquet").write_bytes(by_parquet.content)
    threshold = record(client).policy(policy).policy.threshold
    wanted = [row["candidate"] for row in rows_of(pool) if row["score"] >= threshold]
    assert 0 < len(wanted) < 100
    assert [row["candidate"] for row in by_json["shortlist"]] == wanted
    assert [row["candidate"] for row in csv.DictReader(io.StringIO(by_csv.text))] == wanted
    listed = duckdb.execute(f"SELECT candidate FROM '{tmp_path}/out.parquet'").fetchall()
    assert [row[0] for row in listed] == wanted
    for answer in (by_csv, by_parquet):
        assert hashlib.sha256(answer.content).hexdigest() == answer.headers["surelist-result-sha256"]
    assert by_csv.content.splitlines()[0] == pool.encode().splitlines()[0]
    # JSON rows that come back are those that went in, whole
    assert by_json["shortlist"][0] in rows_of(pool)


def test_numbers_come_back_as_they_were_sent(local_client, past):
    url = f"/api/v1/policies/{make_policy(local_client, past)['hash']}/select"
    large = [2**63 - 1, 2**64 - 1, 2**64, -(2**63) - 1, 12345678901234567890123, 0.1, 1e300, 0]
    rows = [{"score": 0.99, "id": number} for number in large]
    answer = local_client.post(url, json={"rows": rows})
    assert [row["id"] for row in answer.json()["shortlist"]] == large
    for row, status in ((b'{"score": 0.99, "id": 1e999}', 200), (b'{"score": 1e999, "id": 1}', 400)):
        headers = {"content-type": "application/json"}
        answer = local_client.post(url, content=b'{"rows": [' + row + b"]}", headers=headers)
        assert answer.status_code == status
        assert (row in answer.content) == (status == 200)


def test_an_empty_pool_is_no_selection(local_client, past):
    url = f"/api/v1/policies/{make_policy(local_client, past)['hash']}/select"
    answer = local_client.post(url, json={"rows": []})
    assert answer.status_code == 400
    assert "at least one row" in answer.text
    assert local_client.get("/api/v1/selections").json() == []


@pytest.mark.slow
def test_of_a_file_without_candidates_nothing_is_promised(local_client, past, pool):
    made = make_policy(local_client, past)
    nobody, promised = pool.partition("\n")[0] + "\n", made["two_lines"]["what"]
    local_client.get("/")
    form = {"csrf": csrf_token(local_client.cookies["surelist"])}
    for text, anyone in ((nobody, False), (pool, True)):
        sent = {"file": ("pool.csv", text)}
        page = local_client.post(f"/policies/{made['hash']}/pool", data=form, files=sent)
        list_page = local_client.post(page.url.path, data={**form, "score": "score", "id": "candidate"})
        ident = list_page.url.path.rpartition("/")[2]
        report = local_client.get(f"/api/v1/selections/{ident}/report")
        for each in (page, list_page, report):
            assert (promised in each.text) == anyone, each.url
            assert (OF_NOBODY in each.text) != anyone, each.url
        assert ("The exact sentence." in report.text) == anyone
        url = f"/api/v1/policies/{made['hash']}/select"
        assert local_client.post(url, content=text, headers=CSV).status_code == 200
        assert (local_client.get(f"/api/v1/selections/{ident}").json()["candidates"] > 0) == anyone


def test_every_selection_is_on_record(client, past, pool):
    policy = make_policy(client, past)["hash"]
    made = client.post(f"/api/v1/policies/{policy}/select", json={"rows": rows_of(pool)}).json()["selection"]
    entry = record(client).entries(limit=1)[0]
    assert entry.action == "selection.made"
    assert entry.facts["policy"] == policy
    assert (entry.facts["candidates"], entry.facts["shortlisted"]) == (100, made["shortlisted"])
    assert (made["receipt"]["seq"], made["receipt"]["hash"]) == (entry.seq, entry.hash)
    assert client.get(f"/api/v1/selections/{made['id']}").json() == made
    assert [s["id"] for s in client.get("/api/v1/selections", params={"policy": policy}).json()] == [
        made["id"]
    ]
    assert client.get("/api/v1/log").json()[0]["hash"] == entry.hash
    assert verify(record(client).database, (entry.receipt,)).intact


def test_no_candidate_appears_in_the_log(client, past, pool):
    policy = make_policy(client, past)["hash"]
    client.post(f"/api/v1/policies/{policy}/select", content=pool, headers=CSV)
    client.post(f"/api/v1/policies/{policy}/select", json={"rows": rows_of(pool)})
    text = json.dumps(client.get("/api/v1/log").json())
    assert "new-0" not in text
    assert "past-0" not in text


@pytest.mark.slow
def test_uploads_are_gone_when_the_answer_is_there(client, past, pool):
    policy = make_policy(client, past)["hash"]
    client.post(f"/api/v1/policies/{policy}/select", content=pool, headers=CSV)
    client.post("/api/v1/curve", content=past, headers=CSV)
    client.post("/api/v1/curve", content=b"a,b\n1,2\n", headers=CSV)
    assert list(client.app.state.runtime.spool.folder.iterdir()) == []


def test_not_certifiable_is_422_with_the_fields_of_the_exception(client, past):
    answer = client.post("/api/v1/calibrate", params={"k": 30, "pool_size": 100}, content=past, headers=CSV)
    error = answer.json()["error"]
    assert answer.status_code == 422
    assert error["type"] == "NotCertifiable"
    assert error["rows"] == 2000
    assert error["critical_count"] > error["qualified_available"]
    assert set(error) == {"type", "message", *Shortfall.__struct_fields__}
    assert client.get("/api/v1/policies").json() == []


def test_a_second_look_is_recorded_with_the_policy(client, past):
    client.post("/api/v1/calibrate", params={"k": 30, "pool_size": 100}, content=past, headers=CSV)
    client.post("/api/v1/curve", content=past, headers=CSV)
    made = make_policy(client, past)
    assert made["earlier_looks"] == 2
    page = client.get(f"/api/v1/policies/{made['hash']}/report").text
    assert "had been looked at before" in page
    assert "at least 30 qualified" in page


def test_targets_by_group_need_a_purpose_and_are_counted(client, past, pool):
    query = [("group", "site"), ("group_rows", "all")]
    query += [("target", f"{site}=1/100") for site in ("north", "south", "east", "west")]
    refused = client.post("/api/v1/calibrate", params=query, content=past, headers=CSV)
    assert refused.status_code == 400
    assert "purpose" in refused.json()["error"]["message"]
    made = client.post(
        "/api/v1/calibrate", params=[*query, ("purpose", "outreach")], content=past, headers=CSV
    ).json()
    assert {c["group"] for c in made["cutoffs"]} == {"north", "south", "east", "west"}
    assert made["purpose"] == "outreach"
    url = f"/api/v1/policies/{made['hash']}/select"
    by_json = client.post(url, json={"rows": rows_of(pool)}).json()["selection"]
    by_csv = client.post(url, content=pool, headers=CSV)
    counted = client.get(f"/api/v1/selections/{by_csv.headers['surelist-selection']}").json()
    assert by_json["groups"] == counted["groups"]
    assert sum(size for size, _ in counted["groups"].values()) == 100


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"promise": "per-pool", "k": 3, "pool_size": 100}, PerPool),
        ({"promise": "per-pool", "k": 3, "pool_size": 50, "largest_pool": 200}, PerPool),
    ],
)
def test_other_promises(local_client, past, options, kind):
    made = make_policy(local_client, past, **options)
    policy = record(local_client).policy(made["hash"]).policy
    assert isinstance(policy.cutoffs[0].target, kind)


def test_recall(local_client, past):
    query = {"promise": "recall", "share": 0.9}
    made = local_client.post("/api/v1/calibrate", params=query, content=past, headers=CSV).json()
    assert "keeps at least 90% of all qualified" in made["promise"]


def test_ties_by_hash_keep_the_salt_secret(local_client, past, pool):
    made = make_policy(local_client, past, ties="hash", id="candidate")
    context = local_client.app.state.runtime
    salt = context.registry.policy(made["hash"]).policy.salt
    selected = local_client.post(f"/api/v1/policies/{made['hash']}/select", json={"rows": rows_of(pool)})
    assert selected.status_code == 200
    everything = json.dumps(made) + selected.text + local_client.get("/api/v1/log").text
    everything += local_client.get(f"/api/v1/policies/{made['hash']}/report").text
    assert salt.key not in everything


def test_a_retired_policy_is_a_conflict(client, past, pool):
    policy = make_policy(client, past)["hash"]
    url = f"/api/v1/policies/{policy}"
    assert client.post(f"{url}/select", json={"rows": rows_of(pool)}).status_code == 200
    assert client.post(f"{url}/retire", json={"reason": "outdated"}).status_code == 200
    for again in (
        client.post(f"{url}/select", json={"rows": rows_of(pool)}),
        client.post(f"{url}/select", content=pool, headers=CSV),
        client.post(f"{url}/retire", json={"reason": "outdated"}),
    ):
        assert again.status_code == 409
        assert again.json()["error"]["type"] == "Conflict"
    assert client.get(url).json()["retired"] is True


def test_idempotency_keys(client, past, pool):
    key = {"Idempotency-Key": "once"}
    first = client.post(
        "/api/v1/calibrate", params={"k": 5, "pool_size": 100}, content=past, headers={**CSV, **key}
    )
    again = client.post(
        "/api/v1/calibrate", params={"k": 5, "pool_size": 100}, content=past, headers={**CSV, **key}
    )
    assert again.json() == {**first.json(), "receipt": {**first.json()["receipt"], "replayed": True}}
    assert first.json()["receipt"]["replayed"] is False
    assert len(client.get("/api/v1/policies").json()) == 1
    url = f"/api/v1/policies/{first.json()['hash']}/select"
    key = {"Idempotency-Key": "twice"}
    one = client.post(url, json={"rows": rows_of(pool)}, headers=key).json()
    two = client.post(url, json={"rows": rows_of(pool)}, headers=key).json()
    assert one["shortlist"] == two["shortlist"]
    assert two["selection"]["receipt"] == {**one["selection"]["receipt"], "replayed": True}
    other = client.post(url, json={"rows": rows_of(pool)[:50]}, headers=key)
    assert other.status_code == 409
    assert len(client.get("/api/v1/selections").json()) == 1


def test_reviews(client, past, pool):
    policy = make_policy(client, past)["hash"]
    made = client.post(f"/api/v1/policies/{policy}/select", json={"rows": rows_of(pool)}).json()
    url = f"/api/v1/selections/{made['selection']['id']}/reviews"
    first, second = (row["candidate"] for row in made["shortlist"][:2])
    body = {"reviews": [{"candidate": first, "qualified": True}, {"candidate": second, "qualified": False}]}
    answer = client.post(url, json=body)
    assert answer.status_code == 201
    assert {k: answer.json()[k] for k in ("reviewed", "qualified")} == {"reviewed": 2, "qualified": 1}
    assert client.get(url).json()["reviewed"] == 2
    twice = client.post(url, json={"reviews": [body["reviews"][0]] * 2})
    assert twice.status_code == 400
    many = {"reviews": [{"candidate": f"x{i}", "qualified": True} for i in range(100)]}
    assert client.post(url, json=many).status_code == 400
    assert client.post("/api/v1/selections/" + "0" * 16 + "/reviews", json=body).status_code == 404
    assert verify(record(client).database).intact


def test_the_curve_is_that_of_the_library(local_client, past, tmp_path):
    from surelist.workflows import tables as workflows

    (tmp_path / "past.csv").write_text(past)
    wanted = workflows.curve(tmp_path / "past.csv", score="score", label="qualified", pool_size=100)
    found = local_client.post("/api/v1/curve", content=past, headers=CSV).json()
    assert found["qualified"] == wanted.qualified.tolist()
    assert found["rule"] == "simultaneous"


def test_rates_by_attribute_and_the_spreadsheet_format(local_client, past):
    policy = make_policy(local_client, past)["hash"]
    pool = "candidate,score,sex\n=cmd|' /C calc'!A0,0.99,f\n+1,0.98,m\n-5,0.97,m\n@x,0.96,\n"
    url = f"/api/v1/policies/{policy}/select"
    exact = local_client.post(url, content=pool, headers=CSV)
    assert exact.text == pool
    safe = local_client.post(
        url, params={"format": "spreadsheet", "attribute": "sex"}, content=pool, headers=CSV
    )
    cells = [row[0] for row in csv.reader(io.StringIO(safe.content.decode("utf-8-sig")))]
    assert cells == ["candidate", "'=cmd|' /C calc'!A0", "+1", "-5", "'@x"]
    report = local_client.get(f"/api/v1/selections/{safe.headers['surelist-selection']}/report").text
    assert "Selection rates by sex" in report
    assert "unknown" in report


ERRORS = [
    ("GET", "/api/v1/policies/" + "0" * 64, {}, 404),
    ("GET", "/api/v1/policies/nonsense", {}, 400),
    ("GET", "/api/v1/nonsense", {}, 404),
    ("DELETE", "/api/v1/policies", {}, 405),
    ("POST", "/api/v1/curve", {"content": "x", "headers": {"content-type": "text/plain"}}, 415),
    ("POST", "/api/v1/calibrate?k=5&pool_size=100", {"content": "a,b\n1,2\n", "headers": CSV}, 400),
    ("POST", "/api/v1/calibrate?k=5", {"content": "score,qualified\n1,1\n", "headers": CSV}, 400),
    ("POST", "/api/v1/calibrate?alpha=1.7", {"content": "x", "headers": CSV}, 400),
    ("POST", "/api/v1/calibrate?typo=1", {"content": "x", "headers": CSV}, 400),
    ("POST", "/api/v1/calibrate?k=nan&pool_size=5", {"content": "x", "headers": CSV}, 400),
    ("POST", "/api/v1/curve", {"content": "{", "headers": {"content-type": "application/json"}}, 400),
    (
        "POST",
        "/api/v1/curve",
        {"content": '{"rows": [1]}', "headers": {"content-type": "application/json"}},
        400,
    ),
    (
        "POST",
        "/api/v1/curve",
        {"content": '{"rows": []}', "headers": {"content-type": "application/json"}},
        400,
    ),
    ("POST", "/api/v1/policies/" + "0" * 64 + "/select", {"json": {"rows": [{"score": 1}]}}, 404),
    ("POST", "/api/v1/policies/" + "0" * 64 + "/retire", {"json": {"reason": ""}}, 400),
    ("GET", "/api/v1/log?limit=0", {}, 400),
]


@pytest.mark.parametrize(("method", "url", "sent", "status"), ERRORS)
def test_every_error_has_one_shape(local_client, method, url, sent, status):
    answer = local_client.request(method, url, **sent)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert error["type"]
    assert error["message"]


def test_errors_name_the_row_and_not_the_path(local_client):
    bad = "score,qualified\n0.5,1\nabc,0\n"
    answer = local_client.post("/api/v1/calibrate?k=5&pool_size=100", content=bad, headers=CSV)
    message = answer.json()["error"]["message"]
    assert "'abc'" in message
    assert "spreadsheet row 3" in message
    assert "spool" not in message


def test_health_readiness_metrics(client, past, pool):
    policy = make_policy(client, past)["hash"]
    client.post(f"/api/v1/policies/{policy}/select", json={"rows": rows_of(pool)})
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/readyz").json() == {"status": "ready"}
    text = client.get("/metrics").text
    assert 'route="/api/v1/policies/{policy}/select"' in text
    assert "new-0" not in text


def test_statistics_live_in_the_core_only():
    """The service imports no bounds, no calibration mathematics and no SciPy."""
    import ast
    from pathlib import Path

    import surelist.service

    for path in Path(surelist.service.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += (
                [f"{node.module}.{a.name}" for a in node.names] if isinstance(node, ast.ImportFrom) else []
            )
            for name in names:
                assert not name.startswith(("scipy", "surelist.bounds", "surelist.bounds.counts")), (
                    path.name,
                    name,
                )
                assert name not in (
                    "surelist.bounds",
                    "surelist.promises.calibration.calibrate",
                    "surelist.promises.certification.certify",
                )


def test_checks_of_a_pool_are_shown_wherever_the_selection_is(local_client, past):
    policy = make_policy(local_client, past)["hash"]
    warning = "The pool has 12 candidates & the promise is about 100: on average 0.6."
    checks = [
        {"kind": "pool size", "warns": True, "message": warning, "group": None},
        {
            "kind": "range",
            "warns": False,
            "message": "Scores are in the range of calibration.",
            "group": None,
        },
    ]
    made = selection(policy, 12, 2, checks=[PoolCheck(**each) for each in checks])
    by(record(local_client)).record_selection("a" * 16, made).result()
    assert local_client.get(f"/api/v1/selections/{'a' * 16}").json()["checks"] == checks
    shown = warning.replace("&", "&amp;")
    assert shown in local_client.get(f"/selections/{'a' * 16}").text
    report = local_client.get(f"/api/v1/selections/{'a' * 16}/report").text
    assert shown in report
    assert "in the range of calibration" in report
