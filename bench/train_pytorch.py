"""Adult wide & deep from memory on one thread, beside PyTorch, eager and compiled."""

import json
from typing import Any

from bench.context import Adult, CannotRun, Context, prepare_adult
from bench.measure import Series, interleave, run
from bench.report import Report, Row

EPOCHS = 10  # as in src/muster/train/train_benchmark.cc
GOALS = {40: 15.0, 512: 3.0}
LOSS_TOLERANCE = 0.01
METHOD = """
The model of `examples/adult/adult.yaml` (8 embeddings, 100-75-50-25 relu, 11 wide columns) stepped
through batches that lie ready in memory as floats and ids, on one thread: forward, backward and
update. The peer is written as an engineer would for speed: one table for all embeddings and one for
all wide columns, fused Adagrad. PyTorch has no FTRL, so its wide part is trained with Adagrad, which
is cheaper. Compiled: `torch.compile` of forward and loss; the time to compile is left out.
Both sides read the CPU time of their own process around the last 9 of 10 epochs. At batch 40 our step
is bound by the processor: most of it are matrix products, which run at the rate of large ones but for
the lanes that widths of 100, 75, 50 and 25 leave idle, and Adagrad's steps come next. The ratio moves
with the machine's other guests.
"""


def ours(context: Context, adult: Adult, batch: int) -> dict[str, Any]:
    program = context.program("muster_train_benchmark")
    done = run(
        [program, f"--benchmark_filter=TrainFromMemory/{batch}/", "--benchmark_format=json"],
        MUSTER_BENCHMARK_SPEC=str(adult.spec), MUSTER_BENCHMARK_DATA=str(adult.train),
    )  # fmt: skip
    found = json.loads(done.output[done.output.index("{") :])["benchmarks"]
    if len(found) != 1 or found[0].get("error_occurred"):
        raise CannotRun(f"{program.name}: {found}")
    return {"rate": found[0]["items_per_second"], "loss": found[0]["loss"]}


def peer(context: Context, adult: Adult, batch: int, mode: str) -> dict[str, Any]:
    python = context.peer_python("pytorch")
    return run(
        [python, context.peer_script("pytorch_adult.py"), "--train", adult.train_csv, "--batch-size",
         str(batch), "--epochs", str(EPOCHS), "--mode", mode],
        OMP_NUM_THREADS="1", MKL_NUM_THREADS="1",
    ).events()  # fmt: skip


def measure(context: Context, name: str) -> Report:
    adult = prepare_adult(context)
    report = Report(
        name=name,
        title="Training a wide & deep model from memory, against PyTorch",
        method=METHOD,
        peer="PyTorch 2.15.0",
        unit="examples per CPU second, one thread",
    )
    for batch, goal in GOALS.items():
        losses: dict[str, float] = {}

        def ours_rate(batch: int = batch, losses: dict[str, float] = losses) -> float:
            result = ours(context, adult, batch)
            losses["ours"] = result["loss"]
            return result["rate"]

        def peer_rate(mode: str, batch: int = batch, losses: dict[str, float] = losses) -> float:
            result = peer(context, adult, batch, mode)
            losses[mode] = result["loss"]
            return result["rate"]

        series: dict[str, Series] = interleave(
            {
                "ours": ours_rate,
                "eager": lambda: peer_rate("eager"),
                "compiled": lambda: peer_rate("compiled"),
            },
            context.rounds,
        )
        report.rows.append(Row(f"batch {batch}, eager", series["ours"], series["eager"], goal))
        report.rows.append(Row(f"batch {batch}, compiled", series["ours"], series["compiled"]))
        text = ", ".join(f"{side} {loss:.4f}" for side, loss in losses.items())
        report.same.append(f"Batch {batch}, mean training loss of epoch {EPOCHS}: {text}.")
        if max(losses.values()) - min(losses.values()) > LOSS_TOLERANCE:
            raise CannotRun(f"the sides did not learn the same thing: {report.same[-1]}")
    return report
