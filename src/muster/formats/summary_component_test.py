"""TensorBoard's protobufs still encode testdata/summaries.txt, which summary_test.cc compares with."""

import pathlib
import runpy

FOLDER = pathlib.Path(__file__).parent


def test_committed_summaries_are_tensorboards() -> None:
    made = runpy.run_path(str(FOLDER / "make_test_summaries.py"))["text"]()
    assert (FOLDER / "testdata/summaries.txt").read_text() == made
