"""Exported Keras models trained by muster, beside Keras `fit`, a tf.function loop and several workers."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import keras_jobs
from bench.context import CannotRun, Context, python_path
from bench.measure import Series, interleave, run
from bench.report import Report, Row, in_unit

LOSS_TOLERANCE = 0.01
HOP_STEPS = 6000
HOP_US, HOP_CPU_US = 40.0, 15.0
microseconds = in_unit("us")


@dataclass(frozen=True)
class Case:
    """One model at one batch size; steps are those to warm up, and in all."""

    kind: str
    what: str
    batch: int
    threads: int
    goal: float | None  # over fit's
    ours: tuple[int, int]
    peer: tuple[int, int]
    # Steps after which both sides are compared: a relu that rounding turns over lets a training part
    # from itself, with small batches within some hundred steps.
    compared: int


CASES = (
    Case("wide-deep", "wide & deep of 8 columns", 40, 1, 7, (500, 10_500), (300, 2300), 600),
    Case("wide-deep", "wide & deep of 8 columns", 512, 1, 3, (200, 3200), (200, 1200), 1200),
    Case("wide-deep-list", "wide & deep of a list of 8", 40, 1, None, (500, 10_500), (300, 2300), 600),
    Case("mnist", "MNIST", 64, 1, 1 / 0.9, (50, 450), (50, 350), 350),
    Case("mnist", "MNIST by two threads", 64, 2, None, (50, 450), (50, 350), 350),
)
METHOD = f"""
Keras models exported by `muster.keras.export` and trained by `muster train` from TFRecord files, beside
the same model, data and batch in Python: reading, decoding, shuffle, forward, backward and update. "Wide &
deep" has 8 ids a row, some often, with two tables of 1,000 rows each (8 columns and 1), 100-75-50-25 and
Adagrad; MNIST two convolutions, two dense layers and Adam. Peers read with tf.data (records shuffled,
batched, then parsed). Cost is CPU of all threads in the steady state. Ours is that of `muster` and its
`muster-tensorflow`, run once to the warm step and once to the end, and the difference taken. One thread
computes, as `muster train` does unless `--threads` says otherwise. Keras's `fit` is as it comes; the loop
is a tf.function of one step, with as many threads in each pool as ours has.
"The hop" is what it costs that TensorFlow runs in a process of its own: the same function in the host
and in its caller's process, in turns (`muster-tensorflow-hop`).
{keras_jobs.METHOD}
"""


@dataclass(frozen=True)
class Data:
    exported: Path
    train: str
    test: str


def peer_environment(context: Context) -> dict[str, str]:
    return {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": python_path(context.root / "python")}  # fmt: skip


def our_environment(context: Context) -> dict[str, str]:
    return {"MUSTER_TENSORFLOW": str(context.peer_python("tensorflow"))}


def prepare(context: Context, kind: str) -> Data:
    """Exports the model and writes its records."""
    folder = context.fresh_folder(f"keras-{kind}")
    python, script = context.peer_python("tensorflow"), context.peer_script("keras_models.py")
    run([python, script, "export", kind, folder / "exported"], **peer_environment(context))
    if not kind.startswith(("mnist", "digits")):
        run([python, script, "records", kind, folder], **peer_environment(context))
        return Data(folder / "exported", str(folder / "train"), str(folder / "test"))
    files = [context.data(f"mnist/t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1")]
    run([context.muster, "records", "from-idx", *files, "--out", folder, "--shards", "5"])
    return Data(folder / "exported", f"{folder}/part-0000[0-3]-*", f"{folder}/part-00004-*")


def ours(
    context: Context, case: Case, data: Data, steps: int, *flags: str
) -> tuple[float, Path]:
    """CPU seconds of a training, and where its model is."""
    model = context.fresh_folder(f"keras-ours-{case.kind}-{case.batch}-{steps}") / "model"
    done = run([
        context.muster, "train", data.exported, "--train", data.train, "--model-dir", model,
        "--batch-size", str(case.batch), "--max-steps", str(steps), "--threads", str(case.threads),
        "--epochs", "1000000", "--summary-steps", "1000000", "--save-secs", "0", "--quiet", "--json",
        *flags,
    ], **our_environment(context))  # fmt: skip
    return done.cpu_seconds, model


def our_cost(context: Context, case: Case, data: Data) -> float:
    warm, steps = case.ours
    cheap, _ = ours(context, case, data, warm)
    dear, _ = ours(context, case, data, steps)
    return (dear - cheap) * 1e6 / (steps - warm)


def peer(
    context: Context, case: Case, data: Data, how: str, steps: int = 0, test: bool = False
) -> dict[str, float]:
    warm, usual = case.peer
    command = [context.peer_python("tensorflow"), context.peer_script("keras_training.py"), how,
               case.kind, "--train", data.train, "--batch-size", str(case.batch), "--warm-steps",
               str(min(warm, steps or warm)), "--steps", str(steps or usual)]  # fmt: skip
    if how == "loop":
        command += ["--threads", str(case.threads)]
    if test:
        command += ["--ordered", "--test", data.test]
    return run(command, **peer_environment(context)).events()


def same_thing(context: Context, case: Case, data: Data) -> str:
    """Both sides after as many steps on the records in their order, on the test rows."""
    steps = case.compared
    _, model = ours(context, case, data, steps, "--no-shuffle")
    found = run([context.muster, "evaluate", "--model-dir", model, "--data", data.test, "--quiet",
                 "--json"], **our_environment(context)).events()  # fmt: skip
    mine = found["loss"]
    theirs = peer(context, case, data, "fit", steps, test=True)["loss"]
    text = (
        f"{case.what}, batch {case.batch}: test loss after {steps} steps unshuffled {mine:.4f}, "
        f"Keras's {theirs:.4f}."
    )
    if abs(mine - theirs) > LOSS_TOLERANCE:
        raise CannotRun(f"the sides did not learn the same thing: {text}")
    return text


def rows_of(context: Context, case: Case, data: Data) -> list[Row]:
    sides: dict[str, Callable[[], float]] = {
        "ours": partial(our_cost, context, case, data),
        "fit": lambda: peer(context, case, data, "fit")["cpu_us"],
        "loop": lambda: peer(context, case, data, "loop")["cpu_us"],
    }
    found = interleave(sides, context.rounds)
    name = f"{case.what}, batch {case.batch}: CPU a step"
    return [
        Row(f"{name}; `fit`", found["ours"], found["fit"], case.goal, microseconds,
            less_is_better=True),
        Row(f"{name}; tf.function", found["ours"], found["loop"], None, microseconds,
            less_is_better=True),
    ]  # fmt: skip


def hop_rows(context: Context) -> list[Row]:
    """Medians over turns of a round, then over rounds."""
    folder = context.fresh_folder("keras-hop")
    python = context.peer_python("tensorflow")
    program = context.root / "testbed/programs/export_graph.py"
    run([python, program, folder, "wide_deep"], **peer_environment(context))
    command = [context.program("muster-tensorflow-hop"), folder / "export", folder / "batches",
               str(HOP_STEPS)]  # fmt: skip
    walls, cpus = [], []
    for _ in range(context.rounds):
        lines = run(command, **our_environment(context)).output.splitlines()
        median = next(found for found in map(json.loads, lines) if found["quantile"] == 0.5)
        walls.append(median["hop_us"])
        cpus.append(median["hop_cpu_us"])
    one_digit = in_unit("us", 1)
    return [
        Row("the hop, wall", Series(tuple(walls)), goal=HOP_US, form=one_digit, less_is_better=True),
        Row("the hop, CPU", Series(tuple(cpus)), goal=HOP_CPU_US, form=one_digit,
            less_is_better=True),
    ]  # fmt: skip


def measure(context: Context, name: str) -> Report:
    if len(os.sched_getaffinity(0)) < 2:
        raise CannotRun("needs two cores")
    report = Report(
        name=name,
        title="Exported Keras models",
        method=METHOD,
        peer="the other: Keras, TensorFlow 2.21, or one worker",
        unit="as each row says",
    )
    prepared = {kind: prepare(context, kind) for kind in dict.fromkeys(c.kind for c in CASES)}
    for case in CASES:
        report.same.append(same_thing(context, case, prepared[case.kind]))
        report.rows += rows_of(context, case, prepared[case.kind])
    report.rows += hop_rows(context)
    data = prepared["wide-deep"]
    job = keras_jobs.Setting(context, data.exported, data.train, our_environment(context),
                             peer_environment(context))  # fmt: skip
    report.rows += keras_jobs.measure(job)
    return report


