"""muster.tfos with programs of real TensorFlow, that of MUSTER_PYTHON_COMPONENT."""

from __future__ import annotations

import pathlib
from typing import Any, Iterator

import pytest

from muster.tfos import TFCluster
from muster.tfos.pipeline import TFEstimator
from testbed.spark import sessions

WEIGHTS = (3.0, -1.5)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session whose Python workers find TensorFlow."""
    yield from sessions.running(spark__executorEnv__PYTHONPATH=sessions.path_with_tensorflow())


def train_linear(args: Any, ctx: Any) -> None:
    """As TensorFlowOnSpark's examples: MultiWorkerMirroredStrategy on rows that Spark sends."""
    import tensorflow as tf

    from muster.tfos import TFNode, compat

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[2], name="out")])
        model.compile(optimizer=tf.keras.optimizers.Adam(0.3), loss="mse")
    feed = TFNode.DataFeed(ctx.mgr, input_mapping=args.input_mapping)

    def rows() -> Any:
        while not feed.should_stop():
            batch = feed.next_batch(1)
            if batch["x"]:
                yield batch["x"][0], batch["y"]

    shapes = (tf.TensorShape([2]), tf.TensorShape([1]))
    dataset = tf.data.Dataset.from_generator(rows, (tf.float32, tf.float32), shapes)
    options = tf.data.Options()
    compat.disable_auto_shard(options)
    dataset = dataset.with_options(options).batch(args.batch_size)
    model.fit(dataset, epochs=args.epochs, steps_per_epoch=50, verbose=0)
    compat.export_saved_model(model, args.export_dir, ctx.job_name == "chief")
    feed.terminate()


def test_an_estimator_of_a_keras_program(spark: Any, tmp_path: pathlib.Path) -> None:
    rows = [(n % 7 / 7, n % 11 / 11) for n in range(4000)]
    data = [([a, b], WEIGHTS[0] * a + WEIGHTS[1] * b) for a, b in rows]
    df = spark.createDataFrame(data, "features array<double>, label double").repartition(4)
    estimator = TFEstimator(train_linear, {}).setInputMapping({"features": "x", "label": "y"})
    estimator.setClusterSize(2).setBatchSize(16).setEpochs(2).setExportDir(str(tmp_path / "exported"))
    model = estimator.fit(df)
    model.setInputMapping({"features": "out_input"}).setOutputMapping({"out": "prediction"})
    scored = model.transform(spark.createDataFrame([([1.0, 1.0],), ([0.0, 1.0],)], "features array<double>"))
    predictions = [row.prediction[0] for row in scored.collect()]
    assert scored.columns == ["prediction"]
    assert predictions == pytest.approx([1.5, -1.5], abs=0.2)


def supervised(args: Any, ctx: Any) -> None:
    """A between-graph program of TensorFlow 1: a counter on a parameter server."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    cluster, server = ctx.start_cluster_server(num_gpus=0)
    if ctx.job_name == "ps":
        server.join()
    setter = tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=cluster)
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        add = tf.assign_add(step, 1)
        x = tf.placeholder(tf.float32, [None], name="x")
        y = tf.identity(2 * x, name="y")
    supervisor = tf.train.Supervisor(is_chief=True, logdir=args["logs"], global_step=step)
    with supervisor.managed_session(server.target) as session:
        while session.run(add) < 5:
            pass
        signature = {"twice": {"inputs": {"x": x}, "outputs": {"y": y}}}
        ctx.export_saved_model(session, args["export"], "serve", signature)
    (pathlib.Path(args["logs"]) / "done").touch()


def test_a_supervisor_with_a_parameter_server(spark: Any, tmp_path: pathlib.Path) -> None:
    args = {"logs": str(tmp_path / "logs"), "export": str(tmp_path / "exported")}
    TFCluster.run(spark.sparkContext, supervised, args, num_executors=2, num_ps=1).shutdown()
    assert (tmp_path / "logs" / "done").exists()
    assert (tmp_path / "exported" / "saved_model.pb").exists()


def test_tensorboard(spark: Any, tmp_path: pathlib.Path) -> None:
    def look(args: Any, ctx: Any) -> None:
        """Waits for the file that the driver writes when it has seen TensorBoard."""
        import time

        while not pathlib.Path(args, "seen").exists():
            time.sleep(0.1)

    import time
    import urllib.request

    cluster = TFCluster.run(
        spark.sparkContext, look, str(tmp_path), num_executors=2, num_ps=0, tensorboard=True,
        log_dir=str(tmp_path), master_node="chief",
    )  # fmt: skip
    url, end, page = str(cluster.tensorboard_url()), time.monotonic() + 120, b""
    while not page and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{url}/data/environment", timeout=5) as answer:
                page = answer.read()
        except OSError:
            time.sleep(0.5)
    (tmp_path / "seen").touch()
    cluster.shutdown()
    assert b"version" in page
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=5)
