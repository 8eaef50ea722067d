"""TensorFlow still computes the values of testdata/, so that binary_test.cc compares with it."""

import pathlib
import runpy

FOLDER = pathlib.Path(__file__).parent


def test_committed_values_are_tensorflows() -> None:
    now = runpy.run_path(str(FOLDER / "make_test_values.py"))["text"]().splitlines()
    committed = (FOLDER / "testdata" / "binary.txt").read_text().splitlines()
    assert len(now) == len(committed)
    for a, b in zip(now, committed):
        if a.startswith("value"):
            assert a.split()[1] == b.split()[1]
            assert abs(float(a.split()[2]) - float(b.split()[2])) < 1e-6, (a, b)
        else:
            assert a == b
