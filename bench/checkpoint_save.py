"""What a save of a model of 1 GB costs the training and the disk."""

import json
import shutil
from typing import Any

from bench.context import CannotRun, Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit

BUCKETS = 150_000  # 26 tables of 32 floats, weights and Adagrad's accumulators: 1 GB
BLOCKED_MS = 100.0
TIMES_THE_DISK = 1.2
METHOD = """
A model of 13 numbers and 26 embeddings of 150000 rows of 32 (1024-512-256 above them, Adagrad),
trained in memory in batches of 512, on one thread; ids are uniform, so that every step changes other
rows of the tables, the dearest case for a save that shares their memory. A round: the
same bytes by plain `write` of 4 MiB and `fsync`, through the page cache and past it (`O_DIRECT`),
and by `AsyncSaver` while nothing else runs, each in turn first; then one save in the course of the
training. Saving includes checksums, index, renames, syncs of the folder, the state file and the
removal of the checkpoint before the last; a plain file is removed after the clock has stopped. A
second of rest lies between two writes. `AsyncSaver` writes past the page cache.
"""


milliseconds = in_unit("ms", 1)
seconds = in_unit("s", 2)


def ratio(value: float) -> str:
    return f"{value:.2f}"


def model_file() -> str:
    numbers = [f"I{i}" for i in range(1, 14)]
    words = [f"C{i}" for i in range(1, 27)]
    lines = ["inputs:", "  label: int"]
    lines += [f"  {name}: {{type: float, default: 0}}" for name in numbers]
    lines += [f"  {name}: {{type: string, default: none}}" for name in words]
    lines += ["label: label", "columns:"]
    lines += [f"  n{name}: {{numeric: {name}, log1p: true}}" for name in numbers]
    for name in words:
        lines.append(f"  h{name}: {{hash: {name}, buckets: {BUCKETS}}}")
        lines.append(f"  e{name}: {{embedding: h{name}, dimension: 32}}")
    used = [f"n{name}" for name in numbers] + [f"e{name}" for name in words]
    lines += ["model:", "  type: dnn",
              f"  dnn: {{columns: [{', '.join(used)}], hidden_units: [1024, 512, 256]}}",
              "train: {batch_size: 512}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def measure(context: Context, name: str) -> Report:
    program = context.root / "build/release/bench/checkpoint/checkpoint_cost"
    if not program.exists():
        raise CannotRun(f"{program} is not there: build with -DMUSTER_BENCHMARKS=ON")
    folder = context.fresh_folder("checkpoint")
    (folder / "model.yaml").write_text(model_file(), encoding="utf-8")
    run([context.muster, "sample", "clicks", "--rows", "10000", "--out", folder / "clicks.csv"])
    done = run([program, folder / "model.yaml", folder / "clicks.csv", folder / "model",
                str(context.rounds)])  # fmt: skip
    rounds: list[dict[str, Any]] = [json.loads(line) for line in done.output.splitlines()]
    verified = run([context.muster, "inspect", rounds[-1]["prefix"], "--verify"]).output
    shutil.rmtree(folder)

    def series(key: str, scale: float = 1.0) -> Series:
        return Series(tuple(one[key] * scale for one in rounds))

    alone, plain, direct = series("alone"), series("plain"), series("direct")
    disk = Series(tuple(map(min, plain.values, direct.values)))
    return Report(
        name=name,
        title="Saving a model of 1 GB",
        method=METHOD,
        peer="",
        unit="absolute figures",
        rows=[
            Row("the call that saves, in the course of a training", series("blocked", 1000),
                goal=BLOCKED_MS, form=milliseconds),
            Row("the longest step while it is written", series("longest_step", 1000),
                form=milliseconds),
            Row("a usual step", series("usual_step", 1000), form=milliseconds),
            Row("plain write and fsync", plain, form=seconds),
            Row("plain write past the page cache, and fsync", direct, form=seconds),
            Row("saved while nothing else runs", alone, form=seconds),
            Row("... / plain write and fsync, round by round", alone.over(plain),
                goal=TIMES_THE_DISK, form=ratio),
            Row("... / the quicker plain way, round by round", alone.over(disk), form=ratio),
            Row("saved in the course of a training", series("while_training"), form=seconds),
        ],
        same=[f"{rounds[0]['bytes'] / 1e9:.2f} GB of weights and slots.",
              f"Of the last checkpoint: {verified.splitlines()[-1]}.",
              f"The highest resident size, all in all: {done.max_rss_mib:.0f} MiB."],
    )  # fmt: skip
