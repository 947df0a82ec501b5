"""One set of helpers and fixtures for every room; the tests' folders mirror the rooms."""

pytest_plugins = ["tests.helpers.engines", "tests.helpers.service", "tests.helpers.slow"]
