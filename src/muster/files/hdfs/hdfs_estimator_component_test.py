"""Programs of `muster.estimator` whose data and models are on HDFS."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

from testbed.muster import Muster

ROOT = pathlib.Path(__file__).parents[4]
sys.path.insert(0, str(ROOT / "python"))

from muster import estimator, feature_column  # noqa: E402


def make(model_dir: str) -> estimator.Estimator:
    columns = [feature_column.numeric_column("x")]
    return estimator.DNNClassifier([4], columns, model_dir=model_dir,
                                   config=estimator.RunConfig(tf_random_seed=1))  # fmt: skip


@pytest.fixture
def rows(folder: str, muster: Muster, tmp_path: pathlib.Path) -> str:
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,1\n0,0\n" * 200)
    muster.run("fs", "mkdir", folder)
    muster.run("fs", "put", tmp_path / "rows.csv", folder)
    return f"{folder}/rows.csv"


def files(rows: str, epochs: int = 1) -> estimator.inputs.FilesInput:
    return estimator.inputs.csv(rows, label="y", batch_size=10, num_epochs=epochs)


def test_a_model_on_hdfs_is_that_of_this_machine(
    folder: str, rows: str, muster: Muster, tmp_path: pathlib.Path
) -> None:
    there, here = make(f"{folder}/model"), make(str(tmp_path / "model"))
    for each, data in ((there, rows), (here, str(tmp_path / "rows.csv"))):
        assert each.latest_checkpoint() is None
        each.train(lambda data=data: files(data), steps=20)
        each.train(lambda data=data: files(data, epochs=2), max_steps=40)
    assert there.latest_checkpoint() == f"{folder}/model/model.ckpt-40"
    assert there.evaluate(lambda: files(rows)) == here.evaluate(lambda: files(rows))
    assert there.get_variable_names() == here.get_variable_names()
    kernel = "dnn/hiddenlayer_0/kernel"
    assert (there.get_variable_value(kernel) == here.get_variable_value(kernel)).all()
    (tmp_path / "words").write_text("a")
    spec = feature_column.make_parse_example_spec([feature_column.numeric_column("x")])
    receiver = estimator.export.build_parsing_serving_input_receiver_fn(spec)
    exported = there.export_saved_model(f"{folder}/export", receiver, assets_extra={"w": tmp_path / "words"})
    assert re.fullmatch(f"{folder}/export/[0-9]{{10}}", exported.decode())
    listed = muster.run("fs", "ls", "--recursive", exported.decode())
    assert "saved_model.pb" in listed and "assets.extra/w" in listed


def test_a_program_that_evaluates_and_exports(folder: str, rows: str, muster: Muster) -> None:
    spec = feature_column.make_parse_example_spec([feature_column.numeric_column("x")])
    exporter = estimator.LatestExporter(
        "e", estimator.export.build_parsing_serving_input_receiver_fn(spec)
    )
    metrics, exports = estimator.train_and_evaluate(
        make(f"{folder}/model"),
        estimator.TrainSpec(lambda: files(rows), max_steps=20),
        estimator.EvalSpec(lambda: files(rows), steps=None, exporters=exporter, throttle_secs=0),
    )
    assert metrics["global_step"] == 20
    assert exports[0].decode().startswith(f"{folder}/model/export/e/")
    assert "saved_model.pb" in muster.run("fs", "ls", exports[0].decode())
    with pytest.raises(ValueError, match="hdfs://NAMENODE/PATH"):
        make("s3://bucket/model")
