"""TensorFlow loads what ExportServing wrote: the trained weights, and their predictions."""

from __future__ import annotations

import pytest

from testbed import keras_checks

FILE = "serving_checks.py"
NAMES = [*keras_checks.names(FILE), *keras_checks.keys(FILE, "CASES")]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> keras_checks.Checks:
    return keras_checks.Checks(FILE, tmp_path_factory.mktemp("serving"), with_binary=True)


@pytest.mark.parametrize("name", NAMES)
def test_served(checks: keras_checks.Checks, name: str) -> None:
    checks.check(name)
