"""Adult wide & deep scored and evaluated from TFRecord, beside tf.estimator's predict and evaluate."""

import csv
from pathlib import Path

from bench.context import Adult, CannotRun, Context, only_file, prepare_adult
from bench.measure import Run, Series, count, run
from bench.report import Report, Row

COPIES = 16  # of the training rows, in one file
GOAL = 10.0  # over the peer's predict
PEER_RATES = ("predict", "batches", "evaluate")
TRAIN_STEPS, BATCH = 600, 512
LOSS_TOLERANCE = 0.02
METHOD = """
The model of `examples/adult/adult.yaml` (8 embeddings, 100-75-50-25 relu, 11 wide columns), trained
alike on both sides, scores one TFRecord file of 417,000 rows. Ours is the command: reading, decoding,
columns, forward, and for `predict` a CSV of logits, probabilities and classes, for `evaluate` the ten
metrics with the exact AUC; the CPU seconds of a run over the training rows are taken off, which start
alike. The peer is tf.estimator from the first scored batch on, in batches of 1024, and nobody writes
its predictions down: `predict` as it is by default, a dictionary a row; then where it is cheapest,
with whole batches as arrays (`yield_single_examples=False`) and one thread in each pool; and
`evaluate`, with one thread in each pool.
"""


def many_rows(context: Context, adult: Adult) -> tuple[Path, int]:
    """The training rows again and again, and how many more rows than those that is."""
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
    return only_file(folder / "many"), (COPIES - 1) * len(rows)


def ours(context: Context, verb: str, data: Path) -> Run:
    out = context.scratch / "predictions.csv"
    flags = ["--out", out] if verb == "predict" else []
    return run([context.muster, verb, "--model-dir", context.scratch / "predict-ours", "--data", data,
                "--quiet", "--json", *flags])  # fmt: skip


def our_rate(context: Context, verb: str, few: Path, many: Path, more_rows: int) -> float:
    cheap, dear = ours(context, verb, few), ours(context, verb, many)
    return more_rows / (dear.cpu_seconds - cheap.cpu_seconds)


def peer(context: Context, adult: Adult, data: Path) -> dict[str, float]:
    """Trains anew where there is no model yet; scores, evaluates, and judges the test rows."""
    command = [context.peer_python("component"), context.peer_script("estimator_adult.py"),
               "--train", adult.train, "--model-dir", context.scratch / "predict-peer",
               "--batch-size", str(BATCH), "--warm-steps", "1", "--steps", str(TRAIN_STEPS),
               "--test", adult.test, "--score", data]  # fmt: skip
    return run(command, TF_CPP_MIN_LOG_LEVEL="3").events()


def measure(context: Context, name: str) -> Report:
    adult = prepare_adult(context)
    many, more_rows = many_rows(context, adult)
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

    def peer_rate(what: str) -> float:
        if what == "predict":  # one run measures all three
            theirs.update(peer(context, adult, many))
        return theirs[f"{what}_rate"]

    def rate(verb: str) -> float:
        return our_rate(context, verb, adult.train, many, more_rows)

    values: dict[str, list[float]] = {}
    for number in range(context.rounds):
        for side in ("ours", "peer") if number % 2 == 0 else ("peer", "ours"):
            for what in ("predict", "evaluate") if side == "ours" else PEER_RATES:
                value = rate(what) if side == "ours" else peer_rate(what)
                values.setdefault(f"{side} {what}", []).append(value)
                print(f"  round {number + 1}/{context.rounds}  {side} {what}: {count(value)}", flush=True)
    series = {name: Series(tuple(found)) for name, found in values.items()}
    scored, evaluated = series["ours predict"], series["ours evaluate"]
    report.rows += [
        Row("predict, as it is by default", scored, series["peer predict"], GOAL),
        Row("predict, whole batches, one thread", scored, series["peer batches"]),
        Row("evaluate, and the peer's default predict", evaluated, series["peer predict"], GOAL),
        Row("evaluate", evaluated, series["peer evaluate"]),
    ]
    text = (
        f"{TRAIN_STEPS} steps of {BATCH}, on the test rows: log loss {mine['average_loss']:.4f} and "
        f"{theirs['average_loss']:.4f}, AUC {mine['auc']:.4f} and {theirs['auc']:.4f} (ours, peer)."
    )
    report.same.append(text)
    if abs(mine["average_loss"] - theirs["average_loss"]) > LOSS_TOLERANCE:
        raise CannotRun(f"the two sides did not learn the same thing: {text}")
    return report
