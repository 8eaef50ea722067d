"""Fixtures of the component tests (*_component_test.py)."""

from __future__ import annotations

import os
import pathlib
from typing import Callable

import pytest

from testbed.muster import Muster, data_file

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


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
