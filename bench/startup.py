"""From exec to the first step on Titanic, and the memory of training from a 2 GB set."""

import shutil
from pathlib import Path

from bench.context import Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit

ROUNDS_OF_START = 21
FIRST_STEP_MS = 50.0
MEMORY_MIB = 150.0
SET_BYTES = 2_000_000_000
METHOD = """
Start: wall time of the whole process `muster train examples/titanic/titanic.yaml --steps 1` on the
891 rows of the training table as TFRecord, from exec to exit, so more than the time to the first
step: model file, data, initial weights, one step, checkpoint. Memory: the highest resident size
(ru_maxrss) while training `examples/clicks/clicks.yaml` for one pass, batch 512, over a TFRecord set
of 2 GB in 8 files, less the model itself (weights and optimizer slots, as large as the checkpoint).
"""


milliseconds = in_unit("ms", 1)
mebibytes = in_unit("MiB")


def start_times(context: Context) -> Series:
    folder = context.fresh_folder("titanic")
    spec = context.root / "examples/titanic/titanic.yaml"
    run([context.muster, "records", "from-csv", context.data("titanic/train.csv"), "--spec", spec,
         "--out", folder / "train", "--shards", "1"])  # fmt: skip
    times = []
    for _ in range(ROUNDS_OF_START):
        model_dir = context.fresh_folder("titanic-model")
        done = run([context.muster, "train", spec, "--train", f"{folder}/train/part-*",
                    "--model-dir", model_dir, "--steps", "1", "--quiet"])  # fmt: skip
        times.append(done.wall_seconds * 1000)
    return Series(tuple(times))


def write_large_set(context: Context) -> tuple[Path, int]:
    """A set of SET_BYTES, and its size in bytes."""
    folder = context.fresh_folder("large")
    spec = context.root / "examples/clicks/clicks.yaml"

    def write(rows: int, name: str, shards: int) -> int:
        csv = folder / "clicks.csv"
        run([context.muster, "sample", "clicks", "--rows", str(rows), "--out", csv])
        run([context.muster, "records", "from-csv", csv, "--spec", spec, "--out", folder / name,
             "--shards", str(shards)])  # fmt: skip
        csv.unlink()
        return sum(file.stat().st_size for file in (folder / name).glob("part-*"))

    rows = 100_000
    size = write(rows, "probe", 1)
    return folder / "records", write(int(rows * SET_BYTES / size * 1.02), "records", 8)


def measure(context: Context, name: str) -> Report:
    starts = start_times(context)
    folder, size = write_large_set(context)
    peaks, rates, model_mib = [], [], 0.0
    for number in range(context.rounds):
        model_dir = context.fresh_folder("large-model")
        done = run([context.muster, "train", context.root / "examples/clicks/clicks.yaml", "--train",
                    f"{folder}/part-*", "--model-dir", model_dir, "--epochs", "1", "--batch-size",
                    "512", "--save-secs", "0", "--quiet", "--json"])  # fmt: skip
        model_mib = max(f.stat().st_size for f in model_dir.glob("*.data-*")) / 2**20
        peaks.append(done.max_rss_mib - model_mib)
        rates.append(done.events()["examples"] / done.cpu_seconds)
        print(f"  round {number + 1}/{context.rounds}: {done.max_rss_mib:.0f} MiB", flush=True)
    shutil.rmtree(folder.parent)
    return Report(
        name=name,
        title="Starting up, and memory",
        method=METHOD,
        peer="",
        unit="absolute figures",
        rows=[
            Row("exec to exit after one step, Titanic", starts, goal=FIRST_STEP_MS, form=milliseconds),
            Row("peak memory less the model, 2 GB set", Series(tuple(peaks)), goal=MEMORY_MIB,
                form=mebibytes),
            Row("examples per CPU second, 2 GB set", Series(tuple(rates))),
        ],
        same=[f"The set: {size / 1e9:.2f} GB; the model: {model_mib:.0f} MiB.",
              f"The start was measured {ROUNDS_OF_START} times."],
    )  # fmt: skip
