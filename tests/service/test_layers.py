"""Three layers: pages and API call jobs, jobs call workflows, the record is below."""

from __future__ import annotations

import pytest

from tests.project.test_layout import modules, own_modules

FRONT_ENDS = {
    "service.api",
    "service.pages",
    "service.drafts",
    "service.wizard",
    "service.answers",
    "service.visitor",
    *(each for each in modules() if each.endswith(("_pages", "_api"))),
}


@pytest.mark.parametrize("front_end", sorted(FRONT_ENDS))
def test_pages_and_api_reach_workflows_through_jobs_only(front_end):
    assert not {each for each in own_modules(front_end) if each.startswith("workflows")}


RECORD = [each for each in modules() if each == "service.record" or each.startswith("service.record.")]


@pytest.mark.parametrize("module", RECORD)
def test_the_record_knows_nothing_of_http_and_files(module):
    above = {each for each in own_modules(module) if each.startswith("service.")}
    assert above <= {*RECORD, "service.errors"}
