"""TensorFlow still computes the updates of testdata/, so that optimizer_vectors_test.cc compares with it."""

import pathlib
import runpy

import numpy as np

FOLDER = pathlib.Path(__file__).parent


def test_committed_vectors_are_tensorflows() -> None:
    now = runpy.run_path(str(FOLDER / "make_test_vectors.py"))["text"]().splitlines()
    committed = (FOLDER / "testdata" / "updates.txt").read_text().splitlines()
    assert len(now) == len(committed)
    for a, b in zip(now, committed):
        if not a[0].isdigit():
            assert a == b
            continue
        assert a.split()[:2] == b.split()[:2]
        ours, theirs = (np.array(line.split()[2:], float) for line in (a, b))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6, err_msg=a[:40])
