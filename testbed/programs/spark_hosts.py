"""A driver whose executors are on two hosts: spark_hosts.py MASTER HOST SECRET encrypted|clear FOLDER

Prints JSON lines: what tasks have seen, and how jobs have ended.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

from muster import spark as muster_spark
from muster.binary import MusterError, find
from muster.tfos import TFCluster
from testbed.spark import executors, sessions
from testbed.waiting import wait

TASK = """
import os, pathlib, sys
kind = os.readlink("/proc/self/ns/net").replace(":", "-")
name = os.environ["MUSTER_TASK"]
pathlib.Path(sys.argv[1], name).write_text(os.environ["TF_CONFIG"] + chr(10) + kind)
"""
# It writes down each of its starts, and ends when there is a file "go".
WAITING = """
import os, pathlib, sys, time
folder, name = pathlib.Path(sys.argv[1]), os.environ["MUSTER_TASK"]
kind = os.readlink("/proc/self/ns/net").replace(":", "-")
number = len(list(folder.glob(f"start-{name}-*")))
made = folder / f".{name}"
made.write_text(f"{os.getpid()} {kind}")
made.rename(folder / f"start-{name}-{number}")
while not (folder / "go").exists():
    time.sleep(0.05)
"""
SEARCH = {
    "flags": ["--epochs", "2"],
    "space": {"model.dnn.optimizer.adagrad.learning_rate": {"loguniform": [0.001, 1]}},
    "metric": {"maximize": "auc"},
    "budget": {"trials": 4},
}
ROWS = 1000


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def count_rows(args: Any, ctx: Any) -> None:
    feed = ctx.get_data_feed(train_mode=True)
    rows = []
    while not feed.should_stop():
        rows += feed.next_batch(50)
    pathlib.Path(args, f"rows-{ctx.task_index}").write_text(json.dumps(sorted(rows)))


def lose_an_executor(spark: Any, folder: pathlib.Path) -> str:
    """Kills the executor of the other host while each host runs a task; returns how the job has ended."""
    folder.mkdir()
    here = os.readlink("/proc/self/ns/net").replace(":", "-")

    def starts(count: int) -> list[list[str]]:
        found = [path.read_text().split() for path in sorted(folder.glob("start-*"))]
        return found if len(found) == count else []

    job = muster_spark.start(spark, [sys.executable, "-c", WAITING, str(folder)], workers=2, all_workers=True)
    wait(lambda: starts(2), "both tasks")
    (elsewhere,) = [int(pid) for pid, kind in starts(2) if kind != here]
    executors.kill(elsewhere)
    wait(lambda: starts(4), "both tasks again")
    (folder / "go").touch()
    return job.wait().phase


def main() -> None:
    master, host, secret, mode, folder = sys.argv[1:6]
    spark = sessions.session(
        master, spark__driver__host=host, spark__driver__bindAddress=host, spark__authenticate="true",
        spark__authenticate__secret=secret, spark__network__crypto__enabled=str(mode == "encrypted").lower(),
        spark__cores__max=2, spark__executorEnv__MUSTER_BINARY=find(),
    )  # fmt: skip
    if mode == "clear":
        try:
            muster_spark.run(spark, ["sleep", "600"], workers=2)
        except MusterError as error:
            tell(error=str(error))
        return
    command = [sys.executable, "-c", TASK, folder]
    tell(cluster=muster_spark.run(spark, command, workers=2, all_workers=True).phase)
    rows = spark.read.csv(f"{folder}/train.csv", header=True, inferSchema=True)
    estimator = muster_spark.MusterEstimator(
        model=f"{folder}/spec.yaml", workers=2, onExecutors=True, staging=f"{folder}/staging", modelDir=f"{folder}/model"
    )
    muster_spark.write_tfrecords(rows, f"{folder}/rows", model=f"{folder}/spec.yaml")  # as fit does
    model = estimator.fit(rows)
    tell(scored=model.transform(rows).count())
    cluster = TFCluster.run(
        spark.sparkContext, count_rows, folder, num_executors=2, num_ps=0, input_mode=TFCluster.InputMode.SPARK
    )
    cluster.train(spark.sparkContext.parallelize(range(ROWS), 4), 1)
    hosts = [node["host"] for node in cluster.cluster_info]
    cluster.shutdown()
    tell(hosts=hosts)
    tell(survived=lose_an_executor(spark, pathlib.Path(folder, "lost")))
    search = {**SEARCH, "model": f"{folder}/spec.yaml", "train": rows, "eval": rows}
    found = muster_spark.tune(spark, search, f"{folder}/study", parallel=2)
    tell(trials=found.trials, command=found.command, model_dir=found.model_dir)
    spark.stop()


if __name__ == "__main__":
    main()
