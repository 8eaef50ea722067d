"""Adult wide & deep scored and evaluated from TFRecord, beside tf.estimator's predict and evaluate."""

import csv
from pathlib import Path

from bench.context import Adult, CannotRun, Context, only_file, prepare_adult
from bench.measure import Run, Series, interleave, run
from bench.report import Report, Row

COPIES = 16  # of the training rows, in one file
GOAL = 10.0
TRAIN_STEPS, BATCH = 600, 512
LOSS_TOLERANCE = 0.02
METHOD = """
The model of `examples/adult/adult.yaml` (8 embeddings, 100-75-50-25 relu, 11 wide columns), trained
alike on both sides, scores one TFRecord file of 625,000 rows. Ours is the command: reading, decoding,
columns, forward, and for `predict` a CSV of logits, probabilities and classes, for `evaluate` the ten
metrics with the exact AUC; the CPU seconds of a run over the training rows are taken off, which start
alike. The peer is tf.estimator from the first scored batch on, batches of 1024, one thread in each
pool; its `predict` gives whole batches (`yield_single_examples=False`, the faster way) that nobody
writes down.
"""


def many_rows(context: Context, adult: Adult) -> Path:
    """The training rows again and again."""
    folder = context.fresh_folder("predict")
    with open(adult.train_csv, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    with open(folder / "many.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for _ in range(COPIES):
            writer.writerows(rows)
    run([context.muster, "records", "from-csv", folder / "many.csv", "--spec", adult.spec, "--out",
         folder / "many", "--shards", "1"])  # fmt: skip
    return only_file(folder / "many")


def ours(context: Context, verb: str, data: Path) -> Run:
    out = context.scratch / "predictions.csv"
    flags = ["--out", out] if verb == "predict" else []
    return run([context.muster, verb, "--model-dir", context.scratch / "predict-ours", "--data", data,
                "--quiet", "--json", *flags])  # fmt: skip


def our_rate(context: Context, verb: str, few: Path, many: Path) -> float:
    cheap, dear = ours(context, verb, few), ours(context, verb, many)
    rows = dear.events()["examples"] - cheap.events()["examples"]
    return rows / (dear.cpu_seconds - cheap.cpu_seconds)


def peer(context: Context, adult: Adult, data: Path) -> dict[str, float]:
    """Trains anew where there is no model yet; scores, evaluates, and judges the test rows."""
    command = [context.peer_python("component"), context.peer_script("estimator_adult.py"),
               "--train", adult.train, "--model-dir", context.scratch / "predict-peer",
               "--batch-size", str(BATCH), "--warm-steps", "1", "--steps", str(TRAIN_STEPS),
               "--test", adult.test, "--score", data]  # fmt: skip
    return run(command, TF_CPP_MIN_LOG_LEVEL="3").events()


def measure(context: Context, name: str) -> Report:
    adult = prepare_adult(context)
    many = many_rows(context, adult)
    model_dir = context.fresh_folder("predict-ours")
    context.fresh_folder("predict-peer")
    run([context.muster, "train", adult.spec, "--train", adult.train, "--model-dir", model_dir,
         "--batch-size", str(BATCH), "--steps", str(TRAIN_STEPS), "--quiet"])  # fmt: skip
    report = Report(
        name=name,
        title="Scoring and evaluating from TFRecord, against TensorFlow",
        method=METHOD,
        peer="TensorFlow 2.15.1 tf.estimator",
        unit="rows per CPU second",
    )
    mine = run([context.muster, "evaluate", "--model-dir", model_dir, "--data", adult.test, "--quiet",
                "--json"]).events()  # fmt: skip
    theirs: dict[str, float] = {}

    def peer_rate(verb: str) -> float:
        theirs.update(peer(context, adult, many))
        return theirs[f"{verb}_rate"]

    for verb in ("predict", "evaluate"):
        series: dict[str, Series] = interleave(
            {
                "ours": lambda verb=verb: our_rate(context, verb, adult.train, many),
                "peer": lambda verb=verb: peer_rate(verb),
            },
            context.rounds,
        )
        report.rows.append(Row(verb, series["ours"], series["peer"], GOAL))
    text = (
        f"{TRAIN_STEPS} steps of {BATCH}, on the test rows: log loss {mine['average_loss']:.4f} and "
        f"{theirs['average_loss']:.4f}, AUC {mine['auc']:.4f} and {theirs['auc']:.4f} (ours, peer)."
    )
    report.same.append(text)
    if abs(mine["average_loss"] - theirs["average_loss"]) > LOSS_TOLERANCE:
        raise CannotRun(f"the two sides did not learn the same thing: {text}")
    return report
