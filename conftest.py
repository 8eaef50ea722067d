"""Fixtures of the component tests (*_component_test.py)."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from typing import Any, Callable

import pytest

from testbed.muster import Muster, data_file

if importlib.util.find_spec("pyspark") is None:  # tools/phases.sh runs them in a Python that has it
    collect_ignore_glob = [
        f"{folder}/*_test.py"
        for folder in ("python/muster/spark", "python/muster/tfos", "python/muster/text_estimator", "examples/spark")
    ]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from testbed.failed_tests import FailedTests
    from testbed.longest_first import LongestFirst, Times

    config.pluginmanager.register(Times())
    if "MUSTER_FAILED_TESTS" in os.environ:
        config.pluginmanager.register(FailedTests(pathlib.Path(os.environ["MUSTER_FAILED_TESTS"])))
    return LongestFirst(config, log)


@pytest.fixture(scope="session")
def muster() -> Muster:
    return Muster()


@pytest.fixture(scope="session")
def repository() -> pathlib.Path:
    return pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], pathlib.Path]:
    """Path of a real data file; skips the test where MUSTER_DATA does not have it."""

    def find(name: str) -> pathlib.Path:
        path = data_file(name)
        if path is None:
            pytest.skip("needs MUSTER_DATA")
        return path

    return find
