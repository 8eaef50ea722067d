"""Exported Keras models on a GPU, beside Keras `fit` on the same GPU, and two workers that share it."""

import hashlib
import os
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import keras
from bench.context import CannotRun, Context
from bench.measure import CommandFailed, Series, interleave, run
from bench.report import Report, Row, in_unit
from bench.tasks import Task, Training, write_key

LOSS_TOLERANCE = 0.02
REPEAT_STEPS = 200
microseconds = in_unit("us")


@dataclass(frozen=True)
class Case:
    """One model at one batch size; steps are those to warm up, and in all."""

    kind: str
    what: str
    batch: int
    steps: tuple[int, int]
    compared: int | None  # steps after which the losses of both sides are compared


CASES = (
    Case("wide-deep", "wide & deep of 8 columns", 512, (200, 2200), 400),
    Case("mnist", "MNIST", 64, (200, 1200), 200),
    Case("mnist", "MNIST", 1024, (50, 350), None),
    Case("digits-wide", "MNIST by convolutions of 128 and 256", 256, (50, 250), None),
)
METHOD = """
The models of `bench/run keras`, and one of four convolutions and 4.1 million weights, exported by
`muster.keras.export` and trained by `muster train --threads 4` from TFRecord files; the peer is Keras's
`fit` with tf.data in Python. Both compute on the same GPU. A step is wall time in the steady state. Keras
compiles `fit` by XLA where there is a GPU; "without XLA" is `compile(jit_compile=False)`, which is what
an exported function is run by. `muster` keeps weights and optimizer on the processor: each step carries
the weights to the GPU and the gradients back.
Two workers train by all-reduce on the one GPU; their step is that of both batches.
"""


def visible_gpu() -> str:
    """Name and memory of the first GPU."""
    words = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotRun(f"needs a GPU of NVIDIA and its nvidia-smi: {error}") from error
    if done.returncode != 0 or not done.stdout.strip():
        raise CannotRun(f"needs a GPU of NVIDIA: nvidia-smi says {done.stdout}{done.stderr}")
    return done.stdout.splitlines()[0]


def ours(
    context: Context, data: keras.Data, batch: int, steps: int, *flags: str, verb: str = "train"
) -> list[str | Path]:
    """The command; its model folder is new."""
    model = context.fresh_folder("keras-gpu-ours") / "model"
    return [context.muster, verb, data.exported, "--train", data.train, "--model-dir", model,
            "--batch-size", str(batch), "--max-steps", str(steps), "--threads", "4", "--epochs",
            "1000000", "--summary-steps", "1000000", "--save-secs", "0", *flags]  # fmt: skip


def model_of(command: list[str | Path]) -> Path:
    return Path(command[command.index("--model-dir") + 1])


def our_step(context: Context, case: Case, data: keras.Data, workers: int = 1) -> float:
    """Microseconds of a step, of all workers together."""
    warm, last = case.steps
    told = ["--log-steps", str(warm)]
    command = ours(context, data, case.batch, last + warm, *told, verb="train" if workers == 1 else "worker")
    folder = context.fresh_folder("keras-gpu-tasks")
    names = ("chief-0", "worker-0")[:workers]
    environment = {**keras.our_environment(context), "MUSTER_KEY_FILE": str(write_key(folder))}
    with Training(folder, [Task(name, command) for name in names], **environment) as training:
        cost = training.cost(warm, last)
    return cost.seconds * 1e6 / cost.steps


def fit_step(context: Context, case: Case, data: keras.Data, *flags: str) -> float:
    return fit(context, case, data, case.steps[1], *flags)["wall_us"]


def fit(
    context: Context, case: Case, data: keras.Data, steps: int, *flags: str
) -> dict[str, float]:
    warm = min(case.steps[0], steps - 1)
    return run([
        context.peer_python("tensorflow"), context.peer_script("keras_training.py"), "fit", case.kind,
        "--train", data.train, "--batch-size", str(case.batch), "--warm-steps", str(warm), "--steps",
        str(steps), *flags,
    ], **peer_environment(context)).events()  # fmt: skip


def peer_environment(context: Context) -> dict[str, str]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    return {**keras.peer_environment(context), "CUDA_VISIBLE_DEVICES": visible}


def loss_of(context: Context, case: Case, data: keras.Data, steps: int, **environment: str) -> float:
    """Of the test rows, after as many steps on the training rows in their order."""
    command = ours(context, data, case.batch, steps, "--no-shuffle", "--quiet")
    environment = {**keras.our_environment(context), **environment}
    run(command, **environment)
    found = run([context.muster, "evaluate", "--model-dir", model_of(command), "--data", data.test,
                 "--quiet", "--json"], **environment).events()  # fmt: skip
    return found["loss"]


def same_thing(context: Context, case: Case, data: keras.Data) -> str:
    """Losses on the GPU and on the processor, and Keras's on the GPU."""
    steps = case.compared or 0
    gpu = loss_of(context, case, data, steps)
    cpu = loss_of(context, case, data, steps, CUDA_VISIBLE_DEVICES="")
    theirs = fit(context, case, data, steps, "--ordered", "--test", data.test)["loss"]
    text = (
        f"{case.what}, batch {case.batch}: test loss after {steps} steps unshuffled {gpu:.4f} on the "
        f"GPU, {cpu:.4f} on the processor, Keras's {theirs:.4f} on the GPU."
    )
    if max(abs(gpu - cpu), abs(gpu - theirs)) > LOSS_TOLERANCE:
        raise CannotRun(f"the sides did not learn the same thing: {text}")
    return text


def end_bytes(context: Context, case: Case, data: keras.Data, **environment: str) -> str:
    """A hash of what a training leaves."""
    command = ours(context, data, case.batch, REPEAT_STEPS, "--quiet")
    run(command, **{**keras.our_environment(context), **environment})
    digest = hashlib.sha256()
    for file in sorted(model_of(command).glob("model.ckpt-*.data-*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def repeats(context: Context, case: Case, data: keras.Data) -> str:
    """Whether two trainings leave the same bytes, with TensorFlow's own settings and with its fixed order."""
    found = []
    for name, settings in (
        ("as it comes", {}),
        ("TF_DETERMINISTIC_OPS=1", {"TF_DETERMINISTIC_OPS": "1"}),
    ):
        try:
            ends = {end_bytes(context, case, data, **settings) for _ in range(2)}
            found.append(f"{name}: {'the same bytes' if len(ends) == 1 else 'other bytes'}")
        except CommandFailed as error:
            reason = str(error).partition("UNIMPLEMENTED: ")[2].partition(".")[0]
            found.append(f"{name}: refused by TensorFlow ({reason or str(error)[-200:]})")
    return f"{case.what}, batch {case.batch}, {REPEAT_STEPS} steps twice; " + "; ".join(found) + "."


def rows_of(context: Context, case: Case, data: keras.Data, report: Report) -> list[Row]:
    sides = {
        "ours": partial(our_step, context, case, data),
        "without XLA": partial(fit_step, context, case, data, "--no-jit"),
        "fit": partial(fit_step, context, case, data),
    }
    name = f"{case.what}, batch {case.batch}: a step"
    try:
        found = interleave(sides, context.rounds)
    except CommandFailed as error:
        report.same.append(f"{name}: Keras's `fit` as it comes failed here: {str(error)[-300:]}")
        del sides["fit"]
        found = interleave(sides, context.rounds)
    return [
        Row(f"{name}; `fit` {'by XLA' if side == 'fit' else side}", found["ours"], found[side], None,
            microseconds, less_is_better=True)
        for side in ("fit", "without XLA") if side in found
    ]  # fmt: skip


def worker_rows(context: Context, case: Case, data: keras.Data) -> list[Row]:
    found = interleave(
        {"two": partial(our_step, context, case, data, 2), "one": partial(our_step, context, case, data)},
        context.rounds,
    )
    halves = Series(tuple(value / 2 for value in found["two"].values))
    what = f"{case.what}, batch {case.batch}: a batch, by two workers; by one"
    return [Row(what, halves, found["one"], None, microseconds, less_is_better=True)]


def measure(context: Context, name: str) -> Report:
    gpu = visible_gpu()
    report = Report(name=name, title="Exported Keras models on a GPU", method=METHOD,
                    peer="the other: Keras 3, TensorFlow 2.21, or one worker", unit="as each row says")  # fmt: skip
    report.same.append(f"GPU: {gpu}.")
    prepared = {kind: keras.prepare(context, kind) for kind in dict.fromkeys(c.kind for c in CASES)}
    for case in CASES:
        data = prepared[case.kind]
        if case.compared:
            report.same.append(same_thing(context, case, data))
            report.same.append(repeats(context, case, data))
        report.rows += rows_of(context, case, data, report)
    for case in (CASES[0], CASES[2]):
        report.rows += worker_rows(context, case, prepared[case.kind])
    return report
