"""Searches over models of tables: TPE beside Optuna's, and what ASHA finds with less data."""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path

from bench.context import Context, prepare_adult
from bench.measure import Series, run
from bench.report import Report, Row, in_unit
from bench.tune import SIGNIFICANT, TEST

SEEDS, TRIALS = 30, 30
ASHA_SEEDS, ASHA_TRIALS, ASHA_EPOCHS, LEAST, FACTOR = 20, 27, 27, 2, 3
WITHIN, PART, WANTED = 0.01, 1 / 3, 18
SPACE = """
  model.linear.optimizer.ftrl.learning_rate: {loguniform: [0.003, 1]}
  model.dnn.optimizer.adagrad.learning_rate: {loguniform: [0.003, 1]}
  model.dnn.hidden_units: {choice: [[16], [32, 16], [64, 32]]}
  model.dnn.dropout: {uniform: [0, 0.5]}
  train.batch_size: {choice: [128, 256, 512]}
"""
METHOD = f"""
TPE: the wide & deep models of examples/clicks (20,000 rows of `muster sample clicks`, 10,000 for evaluation) and
examples/adult (the census table, every fifth row for evaluation), one epoch a trial, five parameters: both learning
rates, layers, dropout, batch size. `muster tune` and Optuna's `TPESampler`, whose objective is
`muster train` with the same settings, both with their defaults, {TRIALS} trials one after the other, the best AUC of each
of {SEEDS} seeds. Wilcoxon's signed-rank test on the pairs, of the hypothesis that Muster's are worse.

ASHA: the model of clicks and the same space, {ASHA_TRIALS} random points of up to {ASHA_EPOCHS} epochs, a study of each of
{ASHA_SEEDS} seeds with `asha: {{min_resource: {LEAST}, factor: {FACTOR}}}` and one without a scheduler, which trains the same
points to their end. Two trials at a time.
"""

share = in_unit("", 3)
auc = in_unit("", 4)


@dataclass(frozen=True)
class Table:
    name: str
    model: Path
    train: Path
    evaluation: Path


def make_clicks(context: Context, folder: Path) -> Table:
    train, evaluation = folder / "clicks.csv", folder / "clicks-eval.csv"
    for path, rows, seed in ((train, "20000", "1"), (evaluation, "10000", "2")):
        run([context.muster, "sample", "clicks", "--rows", rows, "--seed", seed, "--out", path])
    return Table("clicks", context.root / "examples/clicks/clicks.yaml", train, evaluation)


def search(
    context: Context, table: Table, study: Path, settings: dict[str, object], parallel: int
) -> dict[str, dict]:
    """The trials, by their parameters as text, and "best"."""
    file = study.with_suffix(".yaml")
    lines = [f"{key}: {json.dumps(value)}" for key, value in settings.items()]
    file.write_text("\n".join(
        [f"model: {table.model}", f"train: {table.train}", f"eval: {table.evaluation}", f"space:{SPACE}",
         "metric: {maximize: auc}", *lines]))  # fmt: skip
    done = run([context.muster, "tune", file, study, "--parallel", str(parallel), "--json", "--quiet"])
    events = [json.loads(line) for line in done.output.splitlines()]
    found = {json.dumps(e["parameters"]): e for e in events if e["event"] == "trial"}
    return {**found, "best": next(e for e in events if e["event"] == "study")["best"]}


def compare_tpe(context: Context, table: Table, folder: Path) -> tuple[Series, Series, str]:
    python, script = context.peer_python("optuna"), context.peer_script("optuna_trials.py")
    ours, theirs = [], []
    for seed in range(1, SEEDS + 1):
        settings = {"sampler": "tpe", "seed": seed, "budget": {"trials": TRIALS}, "flags": ["--epochs", "1"]}
        found = search(context, table, folder / f"{table.name}-{seed}", settings, 1)
        ours.append(float(found["best"]["auc"]))
        done = run([python, script, "model", str(TRIALS), str(seed), context.muster, table.model, table.train,
                    table.evaluation, folder / "peer"])  # fmt: skip
        theirs.append(float(json.loads(done.output.splitlines()[-1])["best"]))
        print(f"  TPE, {table.name}, seed {seed}/{SEEDS}: {ours[-1]:.4f} and {theirs[-1]:.4f}", flush=True)
    values = folder / f"{table.name}.json"
    # The test is written for values of which less is better.
    pairs = {"ours": {table.name: [-x for x in ours]}, "theirs": {table.name: [-x for x in theirs]}}
    values.write_text(json.dumps(pairs), encoding="utf-8")
    chance = json.loads(run([python, "-c", TEST, values]).output)[table.name]
    verdict = "a significant loss" if chance < SIGNIFICANT else "no significant loss"
    return Series(tuple(ours)), Series(tuple(theirs)), f"TPE, {table.name}: p = {chance:.2g}: {verdict}."


def compare_asha(context: Context, table: Table, folder: Path) -> tuple[Series, Series]:
    """For each seed: the best AUC as a part of the best of full trainings, and the part of their records."""
    quality, records = [], []
    for seed in range(1, ASHA_SEEDS + 1):
        sides = []
        for name, scheduler in (("asha", {"asha": {"min_resource": LEAST, "factor": FACTOR}}), ("none", "none")):
            settings = {"sampler": "random", "seed": seed, "scheduler": scheduler,
                        "budget": {"trials": ASHA_TRIALS}, "flags": ["--epochs", str(ASHA_EPOCHS)]}  # fmt: skip
            found = search(context, table, folder / f"{name}-{seed}", settings, 2)
            best = float(found.pop("best")["auc"])
            sides.append((best, sum(trial["records"] for trial in found.values()), set(found)))
        asha, full = sides
        assert asha[2] == full[2] and len(full[2]) == ASHA_TRIALS, "both try the same points"
        quality.append(asha[0] / full[0])
        records.append(asha[1] / full[1])
        print(f"  ASHA, seed {seed}/{ASHA_SEEDS}: {quality[-1]:.4f} with {records[-1]:.3f}", flush=True)
    return Series(tuple(quality)), Series(tuple(records))


def measure(context: Context, name: str) -> Report:
    folder = context.fresh_folder("tune_models")
    clicks, census = make_clicks(context, folder), prepare_adult(context)
    adult = Table("Adult", census.spec, census.train, census.test)
    quality, records = compare_asha(context, clicks, folder)
    reached = sum(q >= 1 - WITHIN and r <= PART for q, r in zip(quality.values, records.values))
    rows, lines = [], []
    for table in (clicks, adult):
        ours, theirs, line = compare_tpe(context, table, folder)
        rows += [Row(f"TPE: best AUC on {table.name}", ours, form=auc),
                 Row("... Optuna's", theirs, form=auc)]  # fmt: skip
        lines.append(line)
    return Report(
        name=name,
        title="Search over models: TPE and ASHA",
        method=METHOD,
        peer="",
        unit="median and range of the seeds",
        rows=[
            *rows,
            Row("ASHA: best AUC / that of full trainings", quality, least=1 - WITHIN, form=share),
            Row("... records / theirs", records, goal=PART, form=share),
        ],
        same=[
            *lines,
            f"ASHA: within {WITHIN:.0%} and with at most a third of the records in {reached} of {ASHA_SEEDS} "
            f"seeds (goal: {WANTED}).",
            f"Median of what ASHA reads: {statistics.median(records.values):.2f} of the records.",
        ],
    )
