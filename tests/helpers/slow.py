"""What `make check` and `make test` leave out, by rule; other tests carry the mark themselves.

``slow``: half a second of work or more. Spark, PostgreSQL and the browser are always slow, and so is a table that comes to the same
engine by another way in.
``exhaustive``: more cases of what one case tests already. On Spark, where a case takes seconds, every test runs with its
first case in `make test` and with the others in `make exhaustive`: put the hardest one first.
"""

from __future__ import annotations

import pytest

ENGINES = {"spark_session", "spark_cluster", "postgres", "browser", "page"}
LONG = {  # ten seconds and more in one piece: begun first, so that all processes end together
    "test_no_declared_pair_of_conditions_makes_false_promises_more_often_than_alpha",
    "test_pilot_intervals_are_honest",
    "test_the_real_2024_file_bears_the_paper_out",
    "test_the_site_builds_strictly_and_needs_no_network",
}
SAME_ENGINE = {"pandas-nullable", "polars", "csv-polars", "capsule", "parquet-folder", "csv-gz"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: set[tuple[str, str]] = set()
    for item in items:
        name, _, case = item.name.partition("[")
        if "spark" in case or "postgresql" in case or ENGINES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        cases = getattr(getattr(item, "callspec", None), "params", {})
        engine = str(cases.get("engine", cases.get("any_engine")))
        if engine in SAME_ENGINE:
            item.add_marker(pytest.mark.slow)
        if engine.endswith("spark"):
            test = (f"{item.path}::{name}", engine)
            if test in seen:
                item.add_marker(pytest.mark.exhaustive)
            seen.add(test)
    items.sort(key=_neighbours)  # so that most processes never start a Spark or a browser of their own


def _neighbours(item: pytest.Item) -> int:
    """First the long ones, then those on Spark, then those in the browser."""
    fixtures = getattr(item, "fixturenames", ())
    if item.name.partition("[")[0] in LONG:
        return 0
    if "spark" in item.name or "spark_session" in fixtures:
        return 1
    return 2 if "browser" in fixtures else 3
