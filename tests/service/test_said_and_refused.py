"""What the service refuses it refuses in a sentence: JSON that contradicts itself, odd names; and no path leaves it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from starlette.testclient import TestClient

from surelist import examples
from surelist.cli import run
from surelist.errors import InvalidInput
from surelist.service.app import create_app
from surelist.service.errors import TooLarge, without_places
from surelist.service.record import access
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.sent_rows import refuse_twice
from surelist.service.settings import Settings
from tests.helpers.record import by
from tests.helpers.service import csv_text

CSV = {"content-type": "text/csv"}
JSON = {"content-type": "application/json"}
SCORES, LABELS = examples.population(np.random.default_rng(0), 400)


def table(score: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([score, "qualified", "who"])
    writer.writerows(
        [[f"{s:.6f}", int(q), f"p{i}"] for i, (s, q) in enumerate(zip(SCORES, LABELS, strict=True))]
    )
    return text.getvalue().encode()


def refusal(answer: Any) -> str:
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]["message"])


def test_a_json_object_that_says_a_key_twice_is_refused(local_client, past):
    policy = local_client.post("/api/v1/calibrate?k=5&pool_size=100", content=past, headers=CSV).json()[
        "hash"
    ]
    select, retire = f"/api/v1/policies/{policy}/select", f"/api/v1/policies/{policy}/retire"
    rows = json.dumps([{"score": s, "qualified": int(q)} for s, q in zip(SCORES, LABELS, strict=True)])
    for address, body, key in (
        (select, '{"rows": [{"score": 0.9}, {"score": 0.2, "score": 0.9}]}', "score"),
        (select, '{"rows": [{"score": 0.2, "sc\\u006fre": 0.9}]}', "score"),
        (select, '{"rows": [{"score": 0.2, "x": 1, "x": 1}]}', "x"),
        (select, '{"rows": [], "rows": [{"score": 0.2}]}', "rows"),
        ("/api/v1/calibrate?k=5&pool_size=100", f'{{"rows": [], "rows": {rows}}}', "rows"),
        (f"/api/v1/policies/{policy}/evaluate", f'{{"rows": {rows[:-2]}, "score": 1}}]}}', "score"),
        (retire, '{"reason": "a", "reason": "b"}', "reason"),
    ):
        answer = local_client.post(address, content=body, headers=JSON)
        assert refusal(answer) == f"body: an object says {key!r} twice. Say each key once."
    assert not local_client.get(f"/api/v1/policies/{policy}").json()["retired"]
    fine = '{"rows": [{"score": 0.9, "a": {"b": 1}, "c": [{"b": 2}]}, {"score": 12345678901234567}]}'
    refuse_twice(fine.encode())
    refuse_twice(b'{"a": 1' + b"0" * 10_000 + b"}")  # a long number is not its business
    refuse_twice(b"\xff{")


@pytest.mark.parametrize(
    "name",
    [
        "*",
        'a"b',
        "{x}",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("count(*)", "COLUMNS(*)", "a'b", '"', "^a$", "a;b", "[y]", "%s", "?", "a\\b")
        ),
    ],
)
def test_a_column_with_an_odd_name_works_or_is_refused_with_a_sentence(local_client, name):
    post, score = local_client.post, quote(name, safe="")
    made = post(f"/api/v1/calibrate?k=5&pool_size=100&score={score}", content=table(name), headers=CSV)
    drawn = post(f"/api/v1/labellings?score={score}&id=who&labels=200", content=table(name), headers=CSV)
    begun = post(
        f"/api/v1/campaigns?score={score}&label=qualified&k=5&pool_size=100&name=x", content=table(name),
        headers=CSV,
    )  # fmt: skip
    if name == "*":
        for answer in (made, drawn, begun):
            assert "column '*': " in refusal(answer)
        return
    assert [each.status_code for each in (made, drawn, begun)] == [201] * 3, made.text + drawn.text
    policy = made.json()["hash"]
    listed = post(f"/api/v1/policies/{policy}/select", json={"rows": [{name: 0.99}, {name: 0.0}]})
    assert listed.json()["shortlist"] == [{name: 0.99}]
    file = post(f"/api/v1/policies/{policy}/select", content=table(name), headers=CSV)
    assert file.status_code == 200
    assert next(csv.reader(io.StringIO(file.text))) == [name, "qualified", "who"]


@pytest.mark.slow
def test_a_path_of_the_server_never_leaves_it(tmp_path):
    settings = Settings(database=str(tmp_path / "record.db"), folder=tmp_path / "data")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        client.headers["accept"] = "text/html"
        texts = []
        for body in (
            table("*"), table("a\nb"), b'"a\nb",qualified\n0.5\n', b"a,qualified\n0.5,1\n0.5\n", b"\x00\x01",
            b'"a,b\n1,2\n', b"score,score,qualified\n1,2,1\n", b"PK\x03\x04 nothing", b"PAR1 nothing PAR1",
            b"score,qualified\nx,1\n1e999,0\n", b"", b"score;qualified\n1,5;1\n2.5;0\n",
        ):  # fmt: skip
            for kind in ("text/csv", "application/vnd.apache.parquet", "application/vnd.ms-excel"):
                for address in (
                    "/api/v1/calibrate?k=5&pool_size=100&score=a", "/api/v1/labellings?score=a&labels=20",
                    "/api/v1/campaigns?score=a&label=qualified&k=5&pool_size=100&name=x",
                ):  # fmt: skip
                    answer = client.post(address, content=body, headers={"content-type": kind})
                    assert answer.status_code < 500, answer.text
                    texts.append(answer.text)
        csrf = client.get("/").text.partition('name="csrf" value="')[2].partition('"')[0]
        (tmp_path / "record.db").rename(tmp_path / "elsewhere.db")
        texts.append(client.post("/record/verify", data={"csrf": csrf}).text)
        (tmp_path / "elsewhere.db").rename(tmp_path / "record.db")
        assert not [text for text in texts if str(tmp_path) in text or "spool" in text]


def test_an_error_keeps_its_kind_and_loses_the_path(tmp_path):
    with (
        pytest.raises(InvalidInput, match=r"^'the file': odd, see the file: line 2$"),
        without_places([tmp_path]),
    ):
        raise InvalidInput("", f"'{tmp_path}/spool/made-1.csv': odd, see {tmp_path}/x.db: line 2")
    with pytest.raises(TooLarge, match="the file is large") as caught, without_places([tmp_path]):
        raise TooLarge(5, f"{tmp_path}/x is large")
    assert caught.value.status == 413
    with pytest.raises(InvalidInput, match="data is data"), without_places([Path("data"), Path(".")]):
        raise InvalidInput("", "data is data. Nothing else.")


def test_a_token_of_the_record_is_good_for_a_service_without_a_login_too(tmp_path, past):
    settings = Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "data", local_token="local" * 8)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        app: Any = client.app
        registry = app.state.runtime.registry

        def ask(text: str, **more: Any) -> Any:
            return client.request(**{"method": "GET", "url": "/api/v1/policies", **more},
                                  headers={"authorization": f"Bearer {text}", **CSV})  # fmt: skip

        viewer, text = access.create_token(by(registry, "test"), "Vi", "viewer")
        assert ask(text).status_code == ask("local" * 8).status_code == 200
        calibrate = {"method": "POST", "url": "/api/v1/calibrate?k=5&pool_size=100", "content": past}
        assert ask(text, **calibrate).status_code == 403  # its role counts
        assert ask("local" * 8, **calibrate).status_code == 201
        access.revoke_token(by(registry, "test"), viewer.id)
        for wrong in (text, "surelist_nonsense"):
            refused = ask(wrong)
            assert refused.status_code == 401
            assert "surelist token create with the same --database" in refused.json()["error"]["message"]


def test_a_new_token_says_for_which_record_it_is(tmp_path, capsys):
    address = str(tmp_path / "r.db")
    assert run(["token", "create", "--role", "viewer", "--name", "Vi", "--database", address]) == 0
    printed = capsys.readouterr()
    assert f"For the service on the record {address}." in printed.err
    registry = Registry(Database(address))
    assert access.find_token(registry, printed.out.strip()).name == "Vi"
    registry.close()


def test_the_plain_csv_has_another_file_name_than_the_one_without_formulas(local_client, past):
    policy = local_client.post("/api/v1/calibrate?k=5&pool_size=100", content=past, headers=CSV).json()[
        "hash"
    ]
    csrf = local_client.get("/new").text.partition('name="csrf" value="')[2].partition('"')[0]
    pool = {"file": ("monday.csv", csv_text(100, labelled=False))}
    page = local_client.post(f"/policies/{policy}/pool", files=pool, data={"csrf": csrf})
    made = local_client.post(
        page.url.path, data={"csrf": csrf, "score": "score", "id": "candidate", "name": "Monday"}
    )
    names = [
        local_client.get(f"{made.url.path}/shortlist.{end}").headers["content-disposition"]
        for end in ("csv", "csv?safe=true")
    ]
    assert '_plain.csv"' in names[0]
    assert names[0].replace("_plain", "") == names[1]
