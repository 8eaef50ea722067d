"""TensorFlow still computes the numbers of testdata/, so that the unit tests beside it compare with it."""

import pathlib
import runpy

import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parent


@pytest.mark.parametrize("name", ["updates.txt", "schedules.txt"])
def test_committed_vectors_are_tensorflows(name: str) -> None:
    now = runpy.run_path(str(FOLDER / "make_test_vectors.py"))["FILES"][name]().splitlines()
    committed = (FOLDER / "testdata" / name).read_text().splitlines()
    assert len(now) == len(committed)
    for a, b in zip(now, committed):
        if not a[0].isdigit():
            assert a == b
            continue
        labels = 2 if name == "updates.txt" else 1
        assert a.split()[:labels] == b.split()[:labels]
        ours, theirs = (np.array(line.split()[labels:], float) for line in (a, b))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6, err_msg=a[:40])
