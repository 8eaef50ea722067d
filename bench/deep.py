"""A large click model from memory on one thread, fp32 and bf16, beside PyTorch eager and autocast."""

import json
from pathlib import Path
from typing import Any

from bench.context import CannotRun, Context
from bench.measure import Series, interleave, run
from bench.report import Report, Row
from testbed.deep_model import deep_spec

ROWS = 20_480
EPOCHS = 10  # as in src/muster/train/train_benchmark.cc
BATCHES = (512, 4096)
# our precision -> (the peer's mode, goal)
SIDES = {"fp32": ("eager", 1.0), "bf16": ("autocast", 0.8)}
LOSS_TOLERANCE = 0.02
METHOD = """
13 numbers and 26 embeddings of 32 (845 inputs) into 1024-512-256 relu (`testbed/deep_model.py`), on
20,480 rows of `muster sample clicks`, stepped through batches that lie ready in memory as floats and
ids, on one thread: forward, backward and Adagrad. bf16: weights, slots and sums are float, the
operands of large products bfloat16, on AMX; the peer's is `torch.autocast` to bfloat16. The peer has
one table for all embeddings and fused Adagrad. Both sides read the CPU time of their own process
around the last 9 of 10 epochs.
"""


def ours(context: Context, spec: Path, data: Path, batch: int) -> dict[str, Any]:
    program = context.program("muster_train_benchmark")
    done = run(
        [program, f"--benchmark_filter=TrainFromMemory/{batch}/", "--benchmark_format=json"],
        MUSTER_BENCHMARK_SPEC=str(spec), MUSTER_BENCHMARK_DATA=str(data),
    )  # fmt: skip
    found = json.loads(done.output[done.output.index("{") :])["benchmarks"]
    if len(found) != 1 or found[0].get("error_occurred"):
        raise CannotRun(f"{program.name}: {found}")
    return {"rate": found[0]["items_per_second"], "loss": found[0]["loss"]}


def peer(context: Context, data: Path, batch: int, mode: str) -> dict[str, Any]:
    return run(
        [context.peer_python("pytorch"), context.peer_script("pytorch_deep.py"), "--train", data,
         "--batch-size", str(batch), "--epochs", str(EPOCHS), "--mode", mode],
        OMP_NUM_THREADS="1", MKL_NUM_THREADS="1",
    ).events()  # fmt: skip


def measure(context: Context, name: str) -> Report:
    folder = context.fresh_folder(name)
    data = folder / "clicks.csv"
    run([context.muster, "sample", "clicks", "--rows", str(ROWS), "--out", data])
    precisions = dict(SIDES)
    if "amx_bf16" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        print("no AMX with bfloat16 here: only fp32 is measured")
        del precisions["bf16"]
    report = Report(
        name=name,
        title="Training a large model from memory, against PyTorch",
        method=METHOD,
        peer="PyTorch 2.15.0",
        unit="examples per CPU second, one thread",
    )
    for batch in BATCHES:
        losses: dict[str, float] = {}

        def rate(side: str, result: dict[str, Any], losses: dict[str, float] = losses) -> float:
            losses[side] = result["loss"]
            return result["rate"]

        sides = {}
        for precision, (mode, _) in precisions.items():
            spec = folder / f"{precision}.yaml"
            spec.write_text(deep_spec(precision=precision), encoding="utf-8")
            sides[precision] = lambda p=precision, s=spec, b=batch: rate(p, ours(context, s, data, b))
            sides[mode] = lambda m=mode, b=batch: rate(m, peer(context, data, b, m))
        series: dict[str, Series] = interleave(sides, context.rounds)
        for precision, (mode, goal) in precisions.items():
            what = f"batch {batch}, {precision} and {mode}"
            report.rows.append(Row(what, series[precision], series[mode], goal))
        text = ", ".join(f"{side} {loss:.4f}" for side, loss in losses.items())
        report.same.append(f"Batch {batch}, mean training loss of epoch {EPOCHS}: {text}.")
        if max(losses.values()) - min(losses.values()) > LOSS_TOLERANCE:
            raise CannotRun(f"the sides did not learn the same thing: {report.same[-1]}")
    return report
