"""Two threads beside one: a large click model trained from TFRecord, cores bound to the threads."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.context import CannotRun, Context, only_file
from bench.measure import Series, interleave, run
from bench.report import Report, Row
from testbed.deep_model import deep_spec

ROWS = 40_960
GOAL = 1.7
# (precision, batch size): (steps to warm up, steps in all)
PLAN = {
    ("fp32", 512): (20, 240),
    ("fp32", 4096): (4, 32),
    ("bf16", 512): (40, 640),
    ("bf16", 4096): (8, 88),
}
METHOD = """
The model of `testbed/deep_model.py` (845 inputs, 1024-512-256) trained by `muster train` from a
TFRecord file of `muster sample clicks`: reading, decoding, columns, shuffle, forward, backward and
Adagrad, by wall time. One thread is bound to one core and two threads to two (`taskset`), the reading
thread with them. Each figure is a run to the last step less a run to the warm step, which starts
alike. What the machine has to give is in the rows of two trainings: of one thread each, at the same
time, a core each, with nothing to share or to wait for.
"""


def train(
    context: Context, spec: Path, data: Path, batch: int, cores: Sequence[int], steps: int
) -> float:
    """Seconds; a thread a core."""
    folder = context.fresh_folder(f"threads-{'-'.join(map(str, cores))}-{steps}")
    return run([
        "taskset", "-c", ",".join(map(str, cores)), context.muster, "train", spec, "--train", data,
        "--model-dir", folder, "--batch-size", str(batch), "--threads", str(len(cores)),
        "--steps", str(steps), "--summary-steps", "1000000", "--save-secs", "0", "--quiet",
    ]).wall_seconds  # fmt: skip


def rate(
    context: Context, spec: Path, data: Path, batch: int,
    trainings: Sequence[Sequence[int]], steps: tuple[int, int],
) -> float:  # fmt: skip
    """Examples per second of all trainings together, which run at the same time on their cores."""

    def seconds(last: int) -> float:
        with ThreadPoolExecutor(len(trainings)) as pool:
            return max(
                pool.map(lambda cores: train(context, spec, data, batch, cores, last), trainings)
            )

    warm, last = steps
    return len(trainings) * (last - warm) * batch / (seconds(last) - seconds(warm))


def same_bytes(context: Context, spec: Path, data: Path, cores: Sequence[int]) -> None:
    weights = []
    for _ in range(2):
        train(context, spec, data, 512, cores, 10)
        folder = context.scratch / f"threads-{'-'.join(map(str, cores))}-10"
        weights.append(next(folder.glob("model.ckpt-10.data-*")).read_bytes())
    if weights[0] != weights[1]:
        raise CannotRun(f"{spec.name}: two runs on {len(cores)} threads differ")


def measure(context: Context, name: str) -> Report:
    if len(os.sched_getaffinity(0)) < 2:
        raise CannotRun("needs two cores")
    first, second = sorted(os.sched_getaffinity(0))[:2]
    sides = {"one": [[first]], "two": [[first, second]], "apart": [[first], [second]]}
    folder = context.fresh_folder(name)
    specs = {}
    for precision in ("fp32", "bf16"):
        specs[precision] = folder / f"{precision}.yaml"
        specs[precision].write_text(deep_spec(precision=precision), encoding="utf-8")
    run([context.muster, "sample", "clicks", "--rows", str(ROWS), "--out", folder / "clicks.csv"])
    run([context.muster, "records", "from-csv", folder / "clicks.csv", "--spec", specs["fp32"],
         "--out", folder / "data", "--shards", "1"])  # fmt: skip
    data = only_file(folder / "data")
    has_amx = "amx_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    report = Report(
        name=name,
        title="Two threads against one",
        method=METHOD,
        peer="Muster, 1 thread",
        unit="examples per second, 2 threads",
    )
    for (precision, batch), steps in PLAN.items():
        if precision == "bf16" and not has_amx:
            continue
        spec = specs[precision]
        series: dict[str, Series] = interleave(
            {
                side: lambda trainings=trainings: rate(
                    context, spec, data, batch, trainings, steps
                )
                for side, trainings in sides.items()
            },
            context.rounds,
        )
        what = f"{precision}, batch {batch}"
        report.rows.append(Row(what, series["two"], series["one"], GOAL))
        report.rows.append(Row(f"{what}: two trainings", series["apart"], series["one"]))
    for precision, spec in specs.items():
        if precision == "bf16" and not has_amx:
            continue
        for cores in ([first], [first, second]):
            same_bytes(context, spec, data, cores)
        report.same.append(f"{precision}: runs of equal threads end in equal bytes, for 1 and 2.")
    return report
