"""TensorFlow still computes the values of testdata/, so that the unit tests compare with it."""

import pathlib
import runpy

import pytest

FOLDER = pathlib.Path(__file__).parent


@pytest.mark.parametrize(
    "script, committed",
    [("make_test_values.py", "binary.txt"), ("make_head_values.py", "heads.txt")],
)
def test_committed_values_are_tensorflows(script: str, committed: str) -> None:
    now = runpy.run_path(str(FOLDER / script))["text"]().splitlines()
    then = (FOLDER / "testdata" / committed).read_text().splitlines()
    assert len(now) == len(then)
    for a, b in zip(now, then):
        if a.startswith("value"):
            assert a.split()[1] == b.split()[1]
            assert float(a.split()[2]) == pytest.approx(float(b.split()[2]), rel=1e-5, abs=1e-6), a
        else:
            assert a == b
