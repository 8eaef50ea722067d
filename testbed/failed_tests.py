"""Writes down which tests failed, so that tools/phases.sh can run them again on their own."""

from __future__ import annotations

import pathlib

import pytest


class FailedTests:
    """One node id a line, in the order of the failures; no file where nothing failed."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        if self.failed:
            self.path.write_text("".join(f"{test}\n" for test in self.failed))
