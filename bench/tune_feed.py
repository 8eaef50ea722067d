"""Trials of a search that read their data together, beside the sum of their parts."""

import json
from pathlib import Path

from bench.context import CannotRun, Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit

ROWS = 400_000
EPOCHS = 2
TRIALS = 8
MOST = 1.1  # times the sum of the parts
METHOD = f"""
A search over the learning rate of a linear model with 39 columns, as `muster init` writes it, on {ROWS:,} rows of
`muster sample clicks` as CSV, {EPOCHS} epochs a trial, {TRIALS} trials. CPU seconds of whole processes:

- one: `muster train` of one point, with its evaluation, alone;
- shared: the same data read, shuffled and decoded, and nothing else (`bench/tune/read_rows.cc`);
- together: `muster tune --parallel {TRIALS}`, whose trials share one feed;
- apart: `muster tune --parallel 1`, where each trial reads for itself.

The sum of the parts is shared + {TRIALS} x (one - shared).
"""

SEARCH = """
model: {model}
train: {data}
eval: {evaluation}
space: {{model.linear.optimizer.ftrl.learning_rate: {{loguniform: [0.01, 1]}}}}
metric: {{maximize: auc}}
sampler: random
budget: {{trials: {trials}}}
flags: [--epochs, "{epochs}"]
"""

seconds = in_unit("s", 2)


def search(context: Context, file: Path, study: Path, parallel: int) -> tuple[float, list[float]]:
    """The CPU seconds, and the values of the trials in their order."""
    done = run([context.muster, "tune", file, study, "--parallel", str(parallel), "--json", "--quiet"])
    events = [json.loads(line) for line in done.output.splitlines()]
    trials = sorted((e["trial"], e["auc"]) for e in events if e["event"] == "trial")
    assert len(trials) == TRIALS
    return done.cpu_seconds, [value for _, value in trials]


def measure(context: Context, name: str) -> Report:
    reader = context.root / "build/release/bench/tune/read_rows"
    if not reader.exists():
        raise CannotRun(f"{reader} is not there: build with -DMUSTER_BENCHMARKS=ON")
    folder = context.fresh_folder("tune_feed")
    data, evaluation, model = folder / "clicks.csv", folder / "eval.csv", folder / "model.yaml"
    for path, rows, seed in ((data, ROWS, "1"), (evaluation, 2000, "2")):
        run([context.muster, "sample", "clicks", "--rows", str(rows), "--seed", seed, "--out", path])
    run([context.muster, "init", data, "--label", "label", "--model", "linear", "--out", model])
    file = folder / "search.yaml"
    file.write_text(SEARCH.format(model=model, data=data, evaluation=evaluation, trials=TRIALS, epochs=EPOCHS))
    one, shared, together, apart, parts = [], [], [], [], []
    same = True
    for number in range(context.rounds):
        at = folder / str(number)
        alone = run([context.muster, "train", model, at / "one", "--train", data, "--eval", evaluation,
                     "--epochs", str(EPOCHS), "--quiet"])  # fmt: skip
        one.append(alone.cpu_seconds)
        shared.append(run([reader, model, data, str(EPOCHS)]).cpu_seconds)
        parts.append(shared[-1] + TRIALS * (one[-1] - shared[-1]))
        cpu, values = search(context, file, at / "together", TRIALS)
        together.append(cpu)
        cpu, expected = search(context, file, at / "apart", 1)
        apart.append(cpu)
        same = same and values == expected
        print(f"  round {number + 1}/{context.rounds}: together {together[-1]:.2f} s, parts {parts[-1]:.2f} s, "
              f"apart {apart[-1]:.2f} s", flush=True)  # fmt: skip
    ours = Series(tuple(together))
    return Report(
        name=name,
        title="Search: trials on one feed",
        method=METHOD,
        peer="the sum of the parts",
        unit="CPU time",
        rows=[
            Row(f"{TRIALS} trials together", ours, Series(tuple(parts)), goal=round(1 / MOST, 2),
                form=seconds, less_is_better=True),
            Row(f"{TRIALS} trials together, beside {TRIALS} apart", ours, Series(tuple(apart)),
                form=seconds, less_is_better=True),
            Row("one", Series(tuple(one)), form=seconds, less_is_better=True),
            Row("shared", Series(tuple(shared)), form=seconds, less_is_better=True),
        ],
        same=[f"The values of all trials are {'equal' if same else 'NOT EQUAL'} together and apart."],
    )  # fmt: skip
