"""The examples of Keras models are exported, and what they are trained on is written."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import pytest

from testbed import keras_checks

HERE = pathlib.Path(__file__).parent
RECORDS = {"keras_wide_deep/wide_deep.py": 5, "text_classifier/text_classifier.py": 4}


def run_example(program: str, place: pathlib.Path, *arguments: object) -> dict[str, Any]:
    """Runs it in `place`; the manifest of what it exported."""
    done = subprocess.run(
        [os.environ["MUSTER_PYTHON_TENSORFLOW"], HERE / program, "exported", *map(str, arguments)],
        cwd=place, env=keras_checks.environment(), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    manifest: dict[str, Any] = json.loads((place / "exported/model.json").read_text())
    return manifest


def features(path: pathlib.Path) -> dict[str, str]:
    """The kinds of the first record's features."""
    import tensorflow as tf

    record = next(iter(tf.data.TFRecordDataset(str(path)))).numpy()
    found = tf.train.Example.FromString(record).features.feature
    return {name: feature.WhichOneof("kind") for name, feature in found.items()}


def test_mnist(tmp_path: pathlib.Path) -> None:
    manifest = run_example("mnist/mnist.py", tmp_path)
    (image,) = manifest["inputs"]
    assert (image["feature"], image["dtype"], image["decode"]) == ("image", "uint8", "raw")
    kinds = {variable["kind"] for variable in manifest["variables"]}
    assert kinds == {"dense", "state", "seed"}


@pytest.mark.parametrize("program", RECORDS)
def test_examples_that_write_their_records(program: str, tmp_path: pathlib.Path) -> None:
    manifest = run_example(program, tmp_path, "data")
    parts = sorted((tmp_path / "data").rglob("part-*"))
    assert len(parts) == RECORDS[program]
    wanted = {port["feature"] for port in [*manifest["inputs"], *manifest["labels"]]}
    for part in parts:
        assert set(features(part)) == wanted
    assert {"table", "dense"} <= {variable["kind"] for variable in manifest["variables"]}
    assert manifest["metrics"]


def test_the_census_table(real_data, tmp_path: pathlib.Path) -> None:
    run_example("keras_wide_deep/wide_deep.py", tmp_path, "data", real_data("adult/adult.csv"))
    kinds = features(tmp_path / "data/part-0")
    assert kinds["education-num"] == "float_list" and kinds["sex"] == "bytes_list"


def test_a_program_fits_a_screen_or_two() -> None:
    for program in ("mnist/mnist.py", *RECORDS):
        path = HERE / program
        assert len(path.read_text().splitlines()) < 80, program
        assert "muster train exported --train" in path.with_name("README.md").read_text()
