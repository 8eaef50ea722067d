"""Adult wide & deep from TFRecord files, beside tf.estimator's DNNLinearCombinedClassifier."""

from functools import partial
from pathlib import Path

from bench.context import Adult, CannotRun, Context, prepare_adult
from bench.measure import interleave, run
from bench.report import Report, Row

# batch size: (steps to warm up, steps in all, goal)
PLAN = {40: (500, 4500, 20.0), 512: (100, 1300, 5.0)}
LOSS_TOLERANCE = 0.02
METHOD = """
The model of `examples/adult/adult.yaml` (8 embeddings, 100-75-50-25 relu, 11 wide columns with two
crosses; FTRL and Adagrad) trained from one TFRecord file that `muster records from-csv` wrote:
reading, decoding, feature columns, shuffle, forward, backward and update. The peer reads with
tf.data (records shuffled, batched, then `parse_example`, the fastest order) and has one thread in
each of its pools, where it is cheapest. CPU seconds of all threads, of the steady state: the peer
reads its process's CPU time after the steps that warm it up and at the end; ours runs once to the
warm step and once to the end, and the difference is taken. Summaries and timed checkpoints are off
on both sides.
"""


def ours(context: Context, adult: Adult, batch: int, steps: int) -> tuple[float, Path]:
    model_dir = context.fresh_folder(f"model-{batch}-{steps}")
    done = run([
        context.muster, "train", adult.spec, "--train", adult.train, "--model-dir", model_dir,
        "--batch-size", str(batch), "--steps", str(steps), "--summary-steps", "1000000",
        "--save-secs", "0", "--quiet", "--json",
    ])  # fmt: skip
    return done.cpu_seconds, model_dir


def peer(
    context: Context, python: Path, adult: Adult, batch: int, evaluate: bool = False
) -> dict[str, float]:
    warm, steps, _ = PLAN[batch]
    command = [python, context.peer_script("estimator_adult.py"), "--train", adult.train,
               "--model-dir", context.fresh_folder("peer-model"), "--batch-size", str(batch),
               "--warm-steps", str(warm), "--steps", str(steps)]  # fmt: skip
    if evaluate:
        command += ["--test", adult.test]
    return run(command, TF_CPP_MIN_LOG_LEVEL="3").events()


def our_rate(context: Context, adult: Adult, batch: int) -> float:
    warm, steps, _ = PLAN[batch]
    cheap, _ = ours(context, adult, batch, warm)
    dear, _ = ours(context, adult, batch, steps)
    return (steps - warm) * batch / (dear - cheap)


def same_thing(context: Context, python: Path, adult: Adult, batch: int) -> str:
    """Trains both for as many steps and compares what they reach on the test rows."""
    steps = PLAN[batch][1]
    _, model_dir = ours(context, adult, batch, steps)
    mine = run([context.muster, "evaluate", "--model-dir", model_dir, "--data", adult.test,
                "--quiet", "--json"]).events()  # fmt: skip
    theirs = peer(context, python, adult, batch, evaluate=True)
    text = (
        f"Batch {batch}, {steps} steps, on the test rows: log loss {mine['average_loss']:.4f} and "
        f"{theirs['average_loss']:.4f}, AUC {mine['auc']:.4f} and {theirs['auc']:.4f} (ours, peer)."
    )
    if abs(mine["average_loss"] - theirs["average_loss"]) > LOSS_TOLERANCE:
        raise CannotRun(f"the two sides did not learn the same thing: {text}")
    return text


def measure(context: Context, name: str) -> Report:
    adult = prepare_adult(context)
    python = context.peer_python("component")
    report = Report(
        name=name,
        title="Training a wide & deep model from TFRecord, against TensorFlow",
        method=METHOD,
        peer="TensorFlow 2.15.1 tf.estimator",
        unit="examples per CPU second",
    )
    for batch, (_, _, goal) in PLAN.items():
        report.same.append(same_thing(context, python, adult, batch))
        series = interleave(
            {
                "ours": partial(our_rate, context, adult, batch),
                "peer": lambda batch=batch: peer(context, python, adult, batch)["rate"],
            },
            context.rounds,
        )
        report.rows.append(Row(f"batch {batch}", series["ours"], series["peer"], goal))
    return report
