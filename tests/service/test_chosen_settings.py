"""Settings that admins change on the page: they hold at once and after a restart, options given win, all on record."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from surelist.service.record import live_settings
from surelist.service.record.live_settings import SettingsChanged
from surelist.service.record.record import Actor, Bound
from surelist.service.record.verify import verify
from surelist.service.settings import Settings
from tests.helpers.furnished import Remote, review, screen, serve
from tests.helpers.record import forge
from tests.helpers.service import close, csv_text
from tests.service.test_workspace import Person, Team

CHOSEN = {"longest_keep": str(30 * 86400), "keep_results": "3600", "keep_uploads": "3600"}


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(database=str(tmp_path / "record.db"), folder=tmp_path / "data", login=True)


@pytest.fixture
def team(settings):
    team = Team(settings)
    yield team
    close(team.app)


def entries(team):
    return team.runtime.registry.entries(SettingsChanged)


@pytest.mark.slow
def test_what_an_admin_chooses_holds_at_once_and_is_on_record(team):
    boss = Person(team.app, "Cleo", "admin")
    page = boss.post("/team/settings", **CHOSEN)
    assert page.status_code == 200
    assert "Uploads are removed 1 hour after their result is made" in team.ann.get("/").text
    pool = team.ann.post(
        f"/policies/{team.policy}/pool", files={"file": ("p.csv", csv_text(50, labelled=False))}
    )
    offered = re.findall(
        r'<option value="(\d+)"( selected)?>([^<]+)', pool.text.split('name="keep"')[1].split("</select>")[0]
    )
    assert [words for _, _, words in offered] == ["1 hour", "1 day", "7 days", "30 days"]
    assert [words for _, chosen, words in offered if chosen] == ["7 days"]
    (entry,) = entries(team)
    assert entry.facts["before"]["longest_keep"] == 90 * 86400
    assert boss.post("/team/settings", **CHOSEN).status_code == 200
    assert len(entries(team)) == 1  # nothing new, nothing written
    told = boss.get("/record?kind=team").text
    assert (
        "changed the settings: candidates are kept for 30 days at most; uploads are kept for 1 hour after"
        in told
    )
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_only_admins_of_all_policies_change_them(team):
    for person in (team.ann, Person(team.app, "Vi", "viewer"), Person(team.app, "Lim", "admin", team.policy)):
        assert person.post("/team/settings", **CHOSEN).status_code == 403
    with pytest.raises(Exception, match="admin"):
        live_settings.change(Bound(team.runtime.registry, Actor("x", "operator")), {}, {})
    assert entries(team) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keep_results", "-1"),
        ("longest_keep", ""),
        ("keep_uploads", "9" * 11),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_is_written(team, name, value):
    page = Person(team.app, "Cleo", "admin").post("/team/settings", **{**CHOSEN, name: value})
    assert page.status_code == 400
    assert entries(team) == []


def test_what_was_fixed_at_the_start_stays_and_is_shown_as_fixed(settings, team):
    boss = Person(team.app, "Cleo", "admin")
    boss.post("/team/settings", **CHOSEN)
    started = replace(settings, keep_uploads=0, fixed=frozenset({"keep_uploads"}))
    now = started.with_chosen(live_settings.latest(team.runtime.registry).chosen)
    assert (now.keep_uploads, now.keep_results, now.longest_keep) == (0, 3600, 30 * 86400)
    team.runtime.settings = now
    page = boss.get("/team").text
    assert 'name="keep_uploads"' not in page
    assert "<code>--keep-uploads</code>" in page
    boss.post("/team/settings", **{**CHOSEN, "longest_keep": "604800"})
    assert "keep_uploads" not in entries(team)[0].facts["settings"]
    assert team.runtime.settings.keep_uploads == 0
    assert team.runtime.settings.longest_keep == 604800


def test_forged_settings_are_noticed(team):
    registry = team.runtime.registry
    for facts in (
        {"settings": {"login": False}, "before": {"login": True}},
        {"settings": {"keep_uploads": "3"}, "before": {"keep_uploads": 0}},
        {"settings": {"keep_uploads": 0}, "before": {}},
    ):
        forge(registry, "eve", SettingsChanged.action, live_settings.SUBJECT, facts).result()
    assert len(verify(registry.database).problems) == 3


@pytest.mark.slow
def test_they_outlive_the_server_and_options_given_win(tmp_path):
    server, anna = serve(tmp_path / "service")
    try:
        anna.post("/team/settings", **CHOSEN)
        token = anna.client.headers["authorization"].removeprefix("Bearer ")
        server.stop()
        server.options = (*server.options, "--keep-uploads", "0", "--longest-keep", "7")
        server.start()
        again = Remote(server.url, token)
        page = again.get("/team").text
        again.client.close()
        assert "Uploads are removed as soon as their result is made" in page
        assert "<code>--keep-uploads</code>" in page
        assert "7 days: fixed by <code>--longest-keep</code>" in page
        assert 'name="keep_results"' in page
        assert 'name="longest_keep"' not in page
    finally:
        anna.client.close()
        server.stop()


@pytest.mark.slow
def test_a_finished_review_offers_no_form_that_would_be_refused(team):
    shortlist = screen(team.ann, f"/policies/{team.policy}", 1)
    review(team.ann, shortlist, 3)
    team.ann.post(shortlist + "/finish")
    page = team.ann.get(shortlist + "/review?show=all&at=1&done=1").text
    main = page.partition("<main")[2]
    assert re.findall(r'<form[^>]* method="post" action="([^"]+)"', main) == [f"{shortlist}/notes"]
    kept = team.ann.post(shortlist + "/notes", rank="1", text="came by later")
    assert "came by later" in kept.text
    assert verify(team.runtime.registry.database).intact
