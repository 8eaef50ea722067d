"""Reading and training from a real HDFS, beside curl and beside the local disk."""

from __future__ import annotations

import filecmp
import os
import time
from pathlib import Path

from bench.context import CannotRun, Context
from bench.measure import Run, Series, interleave, run
from bench.report import Report, Row, in_unit
from testbed.hadoop.cluster import Hdfs

MIB = 1 << 20
SIZE = 512 * MIB
ROWS = 1_000_000
METRICS_SECONDS = 11.0
HIDDEN = "512, 128"
NAME_NODE_CALLS = ("GetBlockLocations", "FileInfoOps")
METHOD = f"""
A NameNode and a DataNode of Hadoop 3.4.2 run on this machine, in the test bed's configuration; blocks have
128 MiB and one copy. All data are in memory.

- Reading: `muster fs cat` of a file of {SIZE // MIB} MiB into `/dev/null`, and one `curl` that fetches the same ranges by
  WebHDFS (1, 4, then 16 MiB; redirected by the NameNode) into `/dev/null`. Bytes per CPU second of that process.
- Calls of the NameNode: its own counters `GetBlockLocations` and `FileInfoOps` over one such reading, with the calls of
  the DataNode.
- Training: `examples/clicks/clicks.yaml` on {ROWS:,} rows of `muster sample clicks` in four TFRecord files,
  shuffled, one epoch, one thread; from HDFS and from the local disk, the model folder on the local disk. Rows a second of wall
  time: HDFS's own servers use the same cores. Then with hidden layers of {HIDDEN} units, a model that trains at about
  200,000 rows a second: the goal is for this speed.
"""


def ranges() -> list[tuple[int, int]]:
    found, at, size = [], 0, MIB
    while at < SIZE:
        found.append((at, min(size, SIZE - at)))
        at += found[-1][1]
        size = min(4 * size, 16 * MIB)
    return found


def curl_config(hdfs: Hdfs, path: str, folder: Path) -> Path:
    """One run of curl for all ranges, which keeps its connections."""
    lines = ["location", "silent", "fail"]
    for offset, length in ranges():
        query = f"op=OPEN&user.name=tester&offset={offset}&length={length}"
        lines += [f'url = "{hdfs.web_url}/webhdfs/v1{path}?{query}"', 'output = "/dev/null"']
    config = folder / "curl.conf"
    config.write_text("\n".join(lines) + "\n")
    return config


def to_null(command: list[str | Path]) -> Run:
    return run(["sh", "-c", 'exec "$@" > /dev/null', "sh", *command])


def calls(hdfs: Hdfs) -> int:
    time.sleep(METRICS_SECONDS)  # the NameNode answers with counters of that age at most
    return sum(hdfs.metric("NameNodeActivity", name) for name in NAME_NODE_CALLS)


def prepare(context: Context, folder: Path, hdfs: Hdfs) -> tuple[str, str]:
    """The large file's URL, and that of the folder with training records."""
    with open(folder / "large", "wb") as file:
        for number in range(SIZE // MIB):
            file.write(bytes([number % 251]) * MIB)
    spec = context.root / "examples/clicks/clicks.yaml"
    run([context.muster, "sample", "clicks", "--rows", str(ROWS), "--out", folder / "clicks.csv"])
    run([context.muster, "records", "from-csv", folder / "clicks.csv", "--spec", spec,
         "--out", folder / "clicks", "--shards", "4"])  # fmt: skip
    run([context.muster, "fs", "mkdir", f"{hdfs.url}/bench"])
    run([context.muster, "fs", "put", folder / "large", folder / "clicks", f"{hdfs.url}/bench"])
    run([context.muster, "fs", "get", f"{hdfs.url}/bench/large", folder / "back"])
    if not filecmp.cmp(folder / "large", folder / "back", shallow=False):
        raise CannotRun("what comes from HDFS is not what was put there")
    (folder / "back").unlink()
    return f"{hdfs.url}/bench/large", f"{hdfs.url}/bench/clicks"


def measure(context: Context, name: str) -> Report:
    folder = context.fresh_folder("hdfs")
    hdfs = Hdfs(folder / "cluster", data_nodes=1)
    spec = context.root / "examples/clicks/clicks.yaml"
    loads = [os.getloadavg()[0]]
    try:
        hdfs.start()
        os.environ.update(hdfs.environment)
        large, clicks = prepare(context, folder, hdfs)
        before = calls(hdfs)
        to_null([context.muster, "fs", "cat", large])
        taken = calls(hdfs) - before
        config = curl_config(hdfs, "/bench/large", folder)
        reading = interleave(
            {
                "ours": lambda: SIZE / to_null([context.muster, "fs", "cat", large]).cpu_seconds / MIB,
                "curl": lambda: SIZE / to_null(["curl", "--config", config]).cpu_seconds / MIB,
            },
            context.rounds,
        )
        losses: dict[str, set[float]] = {}

        def train(data: str, hidden: str) -> float:
            model = context.fresh_folder("hdfs-model")
            events = run([context.muster, "train", spec, "--train", f"{data}/part-*", "--model-dir", model,
                          "--set", f"model.dnn.hidden_units=[{hidden}]",
                          "--epochs", "1", "--save-steps", "1000000", "--quiet", "--json"]).events()  # fmt: skip
            losses.setdefault(hidden, set()).add(events["loss"])
            return float(events["examples"] / events["seconds"])

        def both(hidden: str) -> dict[str, Series]:
            local = str(folder / "clicks")
            return interleave(
                {"hdfs": lambda: train(clicks, hidden), "local": lambda: train(local, hidden)}, context.rounds
            )

        small, large_model = both("64"), both(HIDDEN)
    finally:
        hdfs.stop()
    loads.append(os.getloadavg()[0])
    for each in losses.values():
        if len(each) != 1:
            raise CannotRun(f"the trainings did not learn the same thing: {sorted(each)}")
    return Report(
        name=name,
        title="Reading and training from HDFS",
        method=METHOD,
        peer="curl 7.88; the local disk",
        unit="from HDFS",
        rows=[
            Row("reading in order, MiB per CPU second", reading["ours"], reading["curl"], 0.9,
                form=in_unit("MiB/s")),
            Row("training, rows a second", small["hdfs"], small["local"]),
            Row(f"training with {HIDDEN} units", large_model["hdfs"], large_model["local"], 0.9),
        ],
        same=[
            "The file came back as it was put; all trainings of a model end with the same loss.",
            f"The NameNode got {taken} calls for {SIZE // MIB} MiB: one for each {SIZE / MIB / taken:.1f} MiB "
            "(goal: at least 8).",
            f"Load of the machine: {loads[0]:.1f} at the start and {loads[1]:.1f} at the end, on {os.cpu_count()} "
            "cores.",
        ],
    )  # fmt: skip
