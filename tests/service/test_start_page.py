"""The worklist, names and notes, the history, several policies side by side, and a promise asked again of fresh rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace

from surelist import (
    Budget,
    Expected,
    NextPool,
    PerPool,
    Precision,
    Recall,
    ThisList,
    Triage,
    calibrate,
    examples,
)
from surelist.service import promise_form, wizard
from surelist.service.record.events import PolicyDescribed, PolicySaved
from surelist.service.record.verify import verify
from tests.helpers.service import close, csv_text
from tests.service.test_api import CSV
from tests.service.test_policy_watch import review, screen
from tests.service.test_workspace import Person, Team


@pytest.fixture
def team(tmp_path):
    from surelist.service.settings import Settings

    team = Team(replace(Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "d"), login=True))
    yield team
    close(team.app)


@pytest.mark.slow
def test_home_is_what_waits(team):
    page = team.ann.get("/").text
    assert "No shortlist waits for reviews" in page
    assert 'href="/new"' in page
    assert "Trial" in page
    path = screen(team, 1)
    page = team.ann.get("/").text
    assert f'href="{path}/review"' in page
    assert re.search(r"Day 1.*0 of \d+ reviewed", page, re.S)
    viewer = Person(team.app, "Vi", "viewer").get("/").text
    assert "Day 1" in viewer
    assert 'href="/new"' not in viewer
    assert "/review" not in viewer
    review(team, path, 0)  # not one of 200: that is enough
    page = team.ann.get("/").text
    assert "alarm, withdrawn" in page
    assert f'href="/new?like={team.policy}"' in page
    assert "No shortlist waits for reviews" in page


def test_a_person_with_nothing_on_record_begins_at_once(tmp_path):
    from surelist.service.settings import Settings

    team = Team.__new__(Team)
    from surelist.service.app import create_app

    team.app = create_app(Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "d", login=True))
    assert 'type="file"' in Person(team.app, "Ann").get("/").text
    assert "What waits for you" in Person(team.app, "Vi", "viewer").get("/").text
    close(team.app)


@pytest.mark.slow
def test_names_and_notes_can_change_and_what_was_stays_on_record(team):
    path = screen(team, 1)
    page = team.ann.post(path + "/describe", name="Ulm, spring", note="<i>second try</i>")
    assert "Ulm, spring: &lt;i&gt;second try&lt;/i&gt;" in page.text
    page = team.ann.post(f"/policies/{team.policy}/describe", name="Trial 7", note="of the spring")
    assert "Trial 7" in page.text
    assert "of the spring" in page.text
    assert team.ann.client.get(f"/api/v1/policies/{team.policy}").json()["name"] == "Trial 7"
    assert "Ulm, spring" in team.ann.get("/").text
    assert team.ann.post(path + "/describe", name=" ").status_code == 400
    assert verify(team.runtime.registry.database).intact
    team.runtime.registry.append("eve", "f" * 64, PolicyDescribed(name="x")).result()
    assert "names a policy that was never saved" in verify(team.runtime.registry.database).problems[0]


@pytest.mark.slow
def test_the_history_is_searched(team):
    path = screen(team, 1)
    screen(team, 2)
    team.ann.post(path + "/describe", name="Ulm", note="Frühling")
    found = team.ann.get("/selections?q=ulm+frühling").text
    assert path in found
    assert found.count("/selections/") == 1
    assert "day-2.csv" in team.ann.get("/selections?q=day-2.csv").text
    assert "Nothing fits" in team.ann.get("/selections?q=nonsense").text
    assert team.policy in team.ann.get("/policies?q=trial&state=use").text
    assert "Nothing fits" in team.ann.get("/policies?q=trial&state=withdrawn").text


def test_any_number_of_policies_side_by_side(team):
    others = [
        team.ann.client.post(
            f"/api/v1/calibrate?k={k}&pool_size={size}&name=n{k}",
            content=csv_text(2000, labelled=True),
            headers=CSV,
        ).json()["hash"]
        for k, size in ((3, 100), (8, 200))
    ]
    page = team.ann.get("/policies/compare?" + "&".join(f"p={each}" for each in (team.policy, *others))).text
    assert page.count('class="line line-') == 3
    assert all(f'data-name="{name}"' in page for name in ("Trial", "n3", "n8"))
    assert page.count('class="ring') == 3
    assert team.ann.get(f"/policies/compare?p={team.policy}").status_code == 400


def test_the_legend_names_the_lines_that_are_drawn(team):
    """A promise without such a picture comes first: the colours after it are still those of their lines."""
    drawn = team.runtime.registry.policy(team.policy)
    entry = replace(drawn.entry, details=PolicySaved(name="no picture", policy="").details())
    picture, names = wizard.comparison_picture([replace(drawn, entry=entry), drawn])
    assert names == ["Trial"]
    assert 'class="line line-a"' in picture
    assert wizard.comparison_picture([replace(drawn, entry=entry)]) is None


def test_a_promise_is_asked_again_of_fresh_rows(team):
    page = team.ann.get(f"/new?like={team.policy}").text
    assert "is taken over" in page
    file = {"file": ("fresh.csv", csv_text(3000, labelled=True, seed=9))}
    columns = team.ann.post("/drafts", files=file, like=team.policy)
    promise = team.ann.post(columns.url.path, score="score", label="qualified").text
    assert 'name="k" value="5"' in promise
    assert 'name="alpha" value="10"' in promise


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        (Expected(4.5, 80), {"promise": "expected", "k": "4.5", "pool_size": "80"}),
        (PerPool(2, 100), {"promise": "per-pool", "k": "2", "pool_size": "100"}),
        (Recall(0.9), {"promise": "recall", "share": "90"}),
        (Precision(0.3, start=0.1), {"promise": "precision", "precision": "30", "start": "10"}),
        (Precision(0.3), {"promise": "precision", "precision": "30", "start": ""}),
        (Triage(0.5, reject=0.9), {"promise": "triage", "accept": "50", "reject": "90", "reject_recall": ""}),
        (Triage(0.5, reject_recall=0.7), {"promise": "triage", "reject": "", "reject_recall": "70"}),
        (Budget(10, 100), {"promise": "budget", "budget": "10", "pool_size": "100"}),
        (NextPool(k=1), {"promise": "next-pool", "k": "1"}),
        (NextPool(recall=0.5, by="rank"), {"promise": "pool-recall", "share": "50", "by": "rank"}),
        (PerPool(2, (100, 200)), None),
        ([Recall(0.5), Expected(2, 100)], None),
        (ThisList(50), None),
    ],
)
def test_what_a_form_takes_over(target, asked):
    rng = np.random.default_rng(0)
    rows, others = examples.population(rng, 2000), examples.population(rng, 3000)[0]
    more: dict[str, object] = (
        {"unlabelled": others} if isinstance(target, (Precision, Triage, Budget, ThisList)) else {}
    )
    more |= {"pools": np.arange(2000) // 40} if isinstance(target, NextPool) else {}
    policy = calibrate(*rows, target, alpha=0.2, **more)
    taken = promise_form.asked_like(policy)
    if asked is None:
        assert taken is None
    else:
        assert asked.items() <= taken.fields.items()
        assert taken.fields["alpha"] == "20"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("came_from", "back"),
    [("{ours}/new?like=x", "/new?like=x"), ("{ours}/?token=secret", None), ("{ours}//evil.example/", None),
     ("https://evil.example/new", None), ("javascript:alert(1)", None), ("", None)],
)  # fmt: skip
def test_a_form_that_did_not_work_leads_back_to_its_page(team, came_from, back):
    client = team.ann.client
    sent = client.post(
        "/drafts",
        data={"csrf": "wrong"},
        headers={"referer": came_from.format(ours=str(client.base_url).rstrip("/")), "accept": "text/html"},
    )
    assert "That did not work" in sent.text
    links = re.findall(r'href="([^"]*)">Back<', sent.text)
    assert links == ([] if back is None else [back])
    assert "secret" not in sent.text


def test_a_promise_that_the_form_does_not_have_is_not_said_to_be_taken_over(team):
    rows = csv_text(2000, labelled=True)
    query = {"promise": "recall", "share": 0.5, "false_positive": 0.01, "false_negative": 0.05}
    made = team.ann.client.post("/api/v1/calibrate", params=query, content=rows, headers=CSV)
    assert made.status_code == 201, made.text
    page = team.ann.get(f"/policies/{made.json()['hash']}").text
    assert "Same promise, fresh rows" not in page
    assert "is taken over" not in team.ann.get(f"/new?like={made.json()['hash']}").text
