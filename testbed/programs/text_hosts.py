"""TextEstimator with executors on two hosts: text_hosts.py MASTER HOST SECRET BROKERS FOLDER

Prints what each mode has given, as JSON lines.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from typing import Any

from muster.binary import find
from muster.text_estimator import TextEstimator
from testbed.spark import sessions

ROWS = 1001


def read(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
    """A map_fun: the host on which it runs, and the rows that it reads."""
    params = args["params"]["fitParam"]
    params = params[0] if isinstance(params, list) else params
    ids = [row["id"] for batch in _read_data(max_records=50) for row in batch]
    name = f"worker-{ctx.task_index}" if ctx else f"trial-{params['number']}"
    said = json.dumps({"host": os.readlink("/proc/self/ns/net"), "ids": ids})
    path = pathlib.Path(params["folder"])
    (path / f".{name}").write_text(said)
    (path / f".{name}").rename(path / name)
    if ctx is None:
        time.sleep(3)  # so that the other trial is on the other host
    return len(ids)


def main() -> None:
    master, host, secret, brokers, folder = sys.argv[1:6]
    spark = sessions.session(
        master, spark__driver__host=host, spark__driver__bindAddress=host, spark__authenticate="true",
        spark__authenticate__secret=secret, spark__network__crypto__enabled="true", spark__cores__max=2,
        spark__executorEnv__MUSTER_BINARY=find(),
    )  # fmt: skip
    rows = spark.range(0, ROWS, 1, 4)
    where = {"bootstrap_servers": brokers, "topic": "text", "group_id": "g"}
    for mode, sets in (
        ("Normal", [{"number": number, "folder": folder} for number in (0, 1)]),
        ("TFoS", [{"folder": folder, "cluster_size": 2, "num_ps": 0}]),
    ):
        made = TextEstimator(kafkaParam=where, fitParam=sets, runningMode=mode, mapFnParam=read)
        print(json.dumps({mode: [row[1] for row in made.fit(rows).collect()]}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
