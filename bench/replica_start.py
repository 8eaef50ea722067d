"""From the command of a native job of four tasks to its first step."""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from functools import partial

from bench.context import Context
from bench.measure import CommandFailed, interleave, run
from bench.report import Row, in_unit

ROUNDS = 21
FIRST_STEP_MS = 150.0
STEPS = "2000"  # the first ones of ps-async may all be another's than the chief's
DEADLINE = 60.0
FIRST_STEP = re.compile(rb"step (\d+): loss")
JOBS = {
    "4 replicas by all-reduce": ("--workers", "4"),
    "3 replicas and a server by ps-async": ("--workers", "3", "--ps", "1"),
}
NOTES = [
    f"The start was measured {ROUNDS} times: wall time from exec of `muster train --workers` on "
    "Titanic until its terminal says that a step is done. Each job then ended with exit code 0."
]


def first_step_ms(words: Sequence[str], home: str) -> float:
    begin = time.monotonic()
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "MUSTER_HOME": home},
    )  # fmt: skip
    assert process.stdout is not None
    said, took = b"", None
    while more := os.read(process.stdout.fileno(), 65536):
        said += more
        if took is None and FIRST_STEP.search(said):
            took = time.monotonic() - begin
    process.stdout.close()
    if process.wait(DEADLINE) != 0 or took is None:
        raise CommandFailed(f"{' '.join(words)}\n{said.decode(errors='replace')[-3000:]}")
    return took * 1000


def measure(context: Context) -> list[Row]:
    folder = context.fresh_folder("replica-start")
    spec = context.root / "examples/titanic/titanic.yaml"
    run([context.muster, "records", "from-csv", context.data("titanic/train.csv"), "--spec", spec,
         "--out", folder / "train", "--shards", "4"])  # fmt: skip

    def start(flags: Sequence[str]) -> float:
        model = context.fresh_folder("replica-start/model")
        words = [context.muster, "train", spec, "--train", f"{folder}/train/part-*",
                 "--model-dir", model, "--max-steps", STEPS, "--log-steps", "1", *flags]  # fmt: skip
        return first_step_ms(list(map(str, words)), str(folder / "home"))

    sides = {name: partial(start, flags) for name, flags in JOBS.items()}
    for side in sides.values():
        side()  # what is read from disk for the first time
    found = interleave(sides, ROUNDS)
    return [
        Row(f"{name}: from the command to the first step", series, goal=FIRST_STEP_MS,
            form=in_unit("ms"))
        for name, series in found.items()
    ]  # fmt: skip
