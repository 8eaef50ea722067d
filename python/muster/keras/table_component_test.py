"""Which Keras models are exported, and which are refused and why; testbed/exports has the models.
"""

from __future__ import annotations

import pytest

from testbed import keras_checks


@pytest.fixture(scope="module")
def checks(tmp_path_factory) -> keras_checks.Checks:
    return keras_checks.Checks("table_checks.py", tmp_path_factory.mktemp("exports"))


@pytest.mark.parametrize("name", keras_checks.keys("accepted.py", "CASES"))
def test_accepts(checks, name) -> None:
    checks.check(f"accepts_{name}")


@pytest.mark.parametrize("name", keras_checks.keys("refused.py", "CASES"))
def test_refuses(checks, name) -> None:
    checks.check(f"refuses_{name}")


def test_the_table_is_long_enough() -> None:
    assert len(keras_checks.keys("accepted.py", "CASES")) >= 20
    assert len(keras_checks.keys("refused.py", "CASES")) >= 20
