"""Is the promise still true? Finished reviews feed the monitor; an alarm withdraws the policy everywhere; on both databases."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace

from surelist import Expected, Groups, Monitor, PerPool, calibrate, examples
from surelist.service.record.verify import verify
from surelist.workflows import watching
from surelist.workflows.watching import PoolNumbers, WatchedPool
from tests.helpers.record import by, forge
from tests.helpers.service import close, csv_text
from tests.service.test_api import CSV
from tests.service.test_workspace import Person, Team


@pytest.fixture
def team(settings):
    team = Team(replace(settings, login=True))
    yield team
    close(team.app)


def screen(team: Team, seed: int, watch: bool = True, pool: str | None = None) -> str:
    """A pool on the page; its selection's id."""
    file = {"file": (f"day-{seed}.csv", pool or csv_text(200, labelled=False, seed=seed))}
    page = team.ann.post(f"/policies/{team.policy}/pool", files=file)
    chosen = {"score": "score", "id": "candidate", "name": f"Day {seed}", **({"watch": "1"} if watch else {})}
    return team.ann.post(page.url.path, **chosen).url.path


def review(team: Team, path: str, qualified: int, missing: bool = False):
    """Mark the first candidates yes and the others no, and finish."""
    ids = [line.split(",")[1] for line in team.ann.get(path + "/reviews.csv").text.splitlines()[1:]]
    text = "candidate,review\n" + "".join(f"{each},{int(n < qualified)}\n" for n, each in enumerate(ids))
    team.ann.post(path + "/reviews", files={"file": ("r.csv", text)}, id="candidate", label="review")
    return team.ann.post(path + "/finish", **({"missing": "1"} if missing else {}))


def standing(team: Team) -> dict:
    return team.ann.client.get(f"/api/v1/policies/{team.policy}/standing").json()


@pytest.mark.slow
def test_pools_count_in_the_order_of_screening_and_an_alarm_withdraws_the_policy(team):
    paths = [screen(team, seed) for seed in range(1, 5)]
    assert standing(team)["sentence"] == "Too early to say: no pool has all its reviews yet."
    review(team, paths[1], 6)
    assert standing(team)["pools"] == 0  # the first one has not come
    assert standing(team)["waiting"] == paths[0].rpartition("/")[2]
    page = review(team, paths[0], 6)
    assert "waits for its reviews" in page.text
    known = standing(team)
    assert known["pools"] == 2
    monitor = Monitor(team.runtime.registry.policy(team.policy).policy)
    for _ in range(2):
        monitor.observe(qualified=6, pool_size=200)
    assert known["evidence"][-1] == pytest.approx(monitor.e_value)
    assert known["standing"] == "too early to say"
    for path in paths[2:]:
        review(team, path, 0)
    assert standing(team)["standing"] == "alarm"
    withdrawn = team.runtime.registry.policy(team.policy).withdrawn
    assert withdrawn.facts["reason"] == standing(team)["withdrawn"]
    refused = team.ann.client.post(f"/api/v1/policies/{team.policy}/select", json={"rows": [{"score": 0.9}]})
    assert refused.status_code == 409
    assert "withdrawn" in refused.json()["error"]["message"]
    assert "Calibrate" in refused.json()["error"]["message"]
    page = team.ann.get(f"/policies/{team.policy}").text
    assert "Alarm, the promise is withdrawn" in page
    assert 'class="alarm-line"' in page
    assert "withdrawn" in team.ann.get("/policies").text
    assert (
        "no longer" in team.ann.get(f"/policies/{team.policy}/report").text
        or "withdrawn" in team.ann.get(f"/policies/{team.policy}/report").text
    )
    assert team.ann.client.get(f"/policies/{team.policy}/policy.json").json()["withdrawn"]
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_finished_reviews_cannot_change(team):
    path = screen(team, 1)
    early = team.ann.post(path + "/finish")
    assert early.status_code == 400
    assert "will never come" in early.text
    review(team, path, 1)
    late = team.bob.post(path + "/marks", rank="1", mark="no")
    assert late.status_code == 409
    assert "finished them" in late.text
    assert team.ann.post(path + "/finish").status_code == 409
    page = team.ann.get(path + "/review").text
    assert re.search(r'<option value="all" selected>', page)  # there is nothing left to do: everyone is shown
    assert "Send the file back" not in page
    assert "<kbd>" not in page
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_missing_and_disputed_reviews_speak_for_the_promise(team):
    path = screen(team, 1)
    team.ann.post(path + "/marks", rank="1", mark="yes")
    team.ann.post(path + "/marks", rank="2", mark="yes")
    team.bob.post(path + "/marks", rank="2", mark="no")
    assert "disagree" in team.ann.post(path + "/finish").text
    listed = by(team.runtime.registry).selection(path.rpartition("/")[2]).facts["shortlisted"]
    team.ann.post(path + "/finish", missing="1")
    counts = next(iter(by(team.runtime.registry).closings(team.policy).values()))
    assert counts == PoolNumbers(200, 1, listed - 1)
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_the_same_pool_and_trial_runs_do_not_count(team):
    screen(team, 1)
    again = by(team.runtime.registry).selection(screen(team, 1).rpartition("/")[2]).facts
    assert "counts once" in again["not_watched"]
    head, *rows = csv_text(200, labelled=False, seed=1).splitlines()
    turned = "\r\n".join([head, *rows[::-1]])
    sent = by(team.runtime.registry).selection(screen(team, 1, pool=turned).rpartition("/")[2]).facts
    assert "counts once" in sent["not_watched"]
    trial = by(team.runtime.registry).selection(screen(team, 2, watch=False).rpartition("/")[2]).facts
    assert "watched" not in trial
    assert len(by(team.runtime.registry).watched(team.policy)) == 1
    said = forged(team, "selection.made", "e" * 16, {**sent, "watched": True, "not_watched": None})
    assert any("the same pool counts before" in each for each in said)


@pytest.mark.slow
def test_a_limited_token_finishes_only_its_own(team):
    path = screen(team, 1)
    other = team.ann.client.post(
        "/api/v1/calibrate?k=4&pool_size=100", content=csv_text(2000, labelled=True), headers=CSV
    )
    stranger = Person(team.app, "Cy", policy=other.json()["hash"])
    ident = path.rpartition("/")[2]
    assert stranger.post(path + "/finish").status_code == 403
    assert stranger.client.post(f"/api/v1/selections/{ident}/finish", json={}).status_code == 403
    assert stranger.client.get(f"/api/v1/policies/{team.policy}/standing").status_code == 403
    done = team.ann.client.post(
        f"/api/v1/selections/{ident}/finish", json={"missing": True}, headers={"Idempotency-Key": "k"}
    )
    again = team.ann.client.post(
        f"/api/v1/selections/{ident}/finish", json={"missing": True}, headers={"Idempotency-Key": "k"}
    )
    assert done.json()["receipt"]["seq"] == again.json()["receipt"]["seq"]
    assert done.json()["pools"] == 1


def forged(team: Team, action: str, subject: str, facts: dict) -> list[str]:
    forge(team.runtime.registry, "eve", action, subject, facts).result()
    return verify(team.runtime.registry.database).problems


def test_false_closings_and_withdrawals_are_noticed(team):
    first = screen(team, 1).rpartition("/")[2]
    counts = {"pool_size": 200, "qualified": 12, "unreviewed": 0}
    said = forged(team, "reviews.closed", first, {"policy": team.policy, "counts": counts})
    assert any("not what they show" in each for each in said)
    said = forged(team, "policy.withdrawn", team.policy, {"reason": "because", "pools": 1, "e_value": 20.0})
    assert any("do not speak against the promise" in each for each in said)


@pytest.mark.slow
def test_an_alarm_that_was_kept_quiet_is_noticed(team):
    registry = team.runtime.registry
    for seed in range(1, 5):
        path = screen(team, seed)
        listed = by(registry).selection(path.rpartition("/")[2]).facts["shortlisted"]
        ids = [line.split(",")[1] for line in team.ann.get(path + "/reviews.csv").text.splitlines()[1:]]
        by(registry, "ann").record_reviews(path.rpartition("/")[2], dict.fromkeys(ids, False)).result()
        counts = {"pool_size": 200, "qualified": 0, "unreviewed": listed - len(ids)}
        facts = {"policy": team.policy, "counts": counts}
        forge(registry, "eve", "reviews.closed", path.rpartition("/")[2], facts).result()
    assert any(
        "raise the alarm, but it was not withdrawn" in each for each in verify(registry.database).problems
    )


# -- what is fed to the monitor


def policy_of(target=None, **options):
    rows = examples.population(np.random.default_rng(0), 2000)
    return calibrate(*rows, target or Expected(5, 100), **options)


def test_the_standing_goes_from_early_to_holding():
    policy = policy_of()
    pools = [WatchedPool(str(n), PoolNumbers(100, 9)) for n in range(60)]
    early, late = watching.watch(policy, pools[:1]), watching.watch(policy, pools)
    assert early.standing == "too early to say"
    assert late.standing == "holding"
    assert late.sentence.startswith(
        "Holding: it was promised that at least 5% of candidates are qualified and shortlisted"
    )
    low = Monitor(policy)
    for pool in pools:
        low.observe(qualified=pool.reviewed.qualified, pool_size=pool.reviewed.pool_size)
    assert low.interval[0] >= 0.05
    assert watching.watch(policy, []).sentence == "Too early to say: no pool has all its reviews yet."


def test_a_promise_that_cannot_be_watched_says_why():
    watched = watching.watch(policy_of(PerPool(2, 100)), [])
    assert watched.standing is None
    assert "a promise about every pool cannot be watched" in watched.sentence
    assert watching.cannot_count(policy_of(PerPool(2, 100), rule="pac"), 50, {}).endswith(
        "100 or more, got 50."
    )
    assert watching.cannot_count(policy_of(PerPool(2, 100), rule="pac"), 100, {}) is None


@pytest.mark.parametrize("group_rows", ["own", "all"])
def test_groups_are_counted_apart(group_rows):
    scores, labels = examples.population(np.random.default_rng(0), 4000)
    groups = np.array(["a", "b"])[np.arange(4000) % 2]
    policy = calibrate(
        scores,
        labels,
        {"a": Expected(1, 100), "b": Expected(1, 100)},
        groups=Groups(groups, purpose="outreach", rows=group_rows),
    )
    counts = watching.counts_of(
        policy,
        120,
        {"a": (100, 5), "b": (20, 2)},
        7,
        {"x": True, "y": False, "z": True},
        {"x": "a", "y": "a", "z": "b"},
    )
    assert counts.qualified == {"a": 1, "b": 1}
    assert counts.unreviewed == {"a": 3, "b": 1}
    assert counts.pool_size == (120 if group_rows == "all" else {"a": 100, "b": 20})
    assert watching.watch(policy, [WatchedPool("p", counts)]).standing == "too early to say"


@pytest.mark.parametrize(("different", "known"), [(19, False), (20, True)])
def test_few_different_scores_do_not_tell_a_pool_from_another(different, known):
    scores = np.repeat(np.arange(float(different)), 3)
    assert (watching.pool_scores(scores) is not None) == known
    assert watching.pool_scores(scores) == watching.pool_scores(scores[::-1])
    assert not known or watching.pool_scores(scores) != watching.pool_scores(np.append(scores, 1.0))
