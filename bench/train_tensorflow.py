"""Adult wide & deep from TFRecord files, beside tf.estimator's DNNLinearCombinedClassifier."""

from pathlib import Path

from bench.context import Adult, CannotRun, Context, prepare_adult
from bench.measure import interleave, run
from bench.report import Report, Row

# batch size: (steps of the short run, steps of the long run, goal)
PLAN = {40: (500, 6500, 20.0), 512: (100, 1300, 5.0)}
LOSS_TOLERANCE = 0.02
METHOD = """
The model of `examples/adult/adult.yaml` (8 embeddings, 100-75-50-25 relu, 11 wide columns with two
crosses; FTRL and Adagrad) trained from one TFRecord file that `muster records from-csv` wrote:
reading, decoding, feature columns, shuffle, forward, backward and update. The peer reads with
tf.data (records shuffled, batched, then `parse_example`, the fastest order) and has one thread in
each of its pools, where it is cheapest. Examples per CPU second of the steady state: each side runs
twice, short and long, and the difference of the examples is divided by the difference of the CPU
seconds of the whole process, so that starting up counts for neither. Summaries and timed
checkpoints are off on both sides.
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
    context: Context, python: Path, adult: Adult, batch: int, steps: int, evaluate: bool = False
) -> tuple[float, dict[str, float]]:
    model_dir = context.fresh_folder(f"peer-{batch}-{steps}")
    command = [python, context.peer_script("estimator_adult.py"), "--train", adult.train,
               "--model-dir", model_dir, "--batch-size", str(batch), "--steps", str(steps)]  # fmt: skip
    if evaluate:
        command += ["--test", adult.test]
    done = run(command, TF_CPP_MIN_LOG_LEVEL="3")
    return done.cpu_seconds, done.events()


def same_thing(context: Context, python: Path, adult: Adult, batch: int, steps: int) -> str:
    """Trains both for as many steps and compares what they reach on the test rows."""
    _, model_dir = ours(context, adult, batch, steps)
    mine = run([context.muster, "evaluate", "--model-dir", model_dir, "--data", adult.test,
                "--quiet", "--json"]).events()  # fmt: skip
    _, theirs = peer(context, python, adult, batch, steps, evaluate=True)
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
    for batch, (short, long, goal) in PLAN.items():
        report.same.append(same_thing(context, python, adult, batch, long))
        examples = (long - short) * batch

        def our_rate(batch: int = batch, short: int = short, long: int = long) -> float:
            cheap, _ = ours(context, adult, batch, short)
            dear, _ = ours(context, adult, batch, long)
            return examples / (dear - cheap)

        def peer_rate(batch: int = batch, short: int = short, long: int = long) -> float:
            cheap, _ = peer(context, python, adult, batch, short)
            dear, _ = peer(context, python, adult, batch, long)
            return examples / (dear - cheap)

        series = interleave({"ours": our_rate, "peer": peer_rate}, context.rounds)
        report.rows.append(Row(f"batch {batch}", series["ours"], series["peer"], goal))
    return report
