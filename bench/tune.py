"""Trials that do nothing beside Optuna's storages, and TPE beside Optuna's on test functions."""

import json
import statistics
from pathlib import Path

from bench.context import CannotRun, Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit

TRIALS = 10_000
PEER_TRIALS = 400  # Optuna's cost of a trial grows with their number: this flatters it
THREADS = 8
MS_A_TRIAL = 1.0
SEEDS = 30
TPE_TRIALS = 100
FUNCTIONS = ("sphere", "rosenbrock", "branin", "rastrigin", "ackley", "mixed")
SIGNIFICANT = 0.01
METHOD = f"""
Trials that do nothing, by the random sampler, two parameters. Each is durable before the next one of its thread
begins: Muster syncs its journal once for all threads that wait; Optuna {{optuna}} on SQLite and on its journal file, both
with their defaults, by `study.optimize(n_jobs={THREADS})`. Muster runs {TRIALS} trials and Optuna {PEER_TRIALS}, whose cost
of a trial grows with their number.

TPE: both with their defaults, {TPE_TRIALS} trials one after the other, the best value of each of {SEEDS} seeds on six
functions (`bench/tune/tune_trials.cc`); Wilcoxon's signed-rank test on the pairs, of the hypothesis that Muster's best
values are greater (worse).
"""

milliseconds = in_unit("ms", 3)


def noop(program: Path, folder: Path, threads: int) -> float:
    done = run([program, "noop", folder, str(TRIALS), str(threads)])
    result = json.loads(done.output)
    assert result["trials"] == TRIALS
    return 1000 * float(result["seconds"]) / TRIALS


def peer_noop(python: Path, script: Path, kind: str, path: Path) -> float:
    done = run([python, script, "noop", kind, path, str(PEER_TRIALS), str(THREADS)])
    result = json.loads(done.output.splitlines()[-1])
    assert result["trials"] == PEER_TRIALS
    return 1000 * float(result["seconds"]) / PEER_TRIALS


def compare_tpe(context: Context, program: Path, python: Path, script: Path) -> list[str]:
    """A line for each function; CannotRun never: a loss stands in the report."""
    ours: dict[str, list[float]] = {name: [] for name in FUNCTIONS}
    theirs: dict[str, list[float]] = {name: [] for name in FUNCTIONS}
    for seed in range(1, SEEDS + 1):
        for name in FUNCTIONS:
            done = run([program, "tpe", name, str(seed), str(TPE_TRIALS)])
            ours[name].append(float(json.loads(done.output)["best"]))
        done = run([python, script, "tpe", str(TPE_TRIALS), str(seed), *FUNCTIONS])
        for name, best in json.loads(done.output.splitlines()[-1]).items():
            theirs[name].append(float(best))
        print(f"  TPE, seed {seed}/{SEEDS}", flush=True)
    values = context.scratch / "tune" / "tpe.json"
    values.write_text(json.dumps({"ours": ours, "theirs": theirs}), encoding="utf-8")
    tested = run([python, "-c", TEST, values])
    chances = json.loads(tested.output)
    lines = []
    for name in FUNCTIONS:
        verdict = "a significant loss" if chances[name] < SIGNIFICANT else "no significant loss"
        lines.append(
            f"{name}: median best {statistics.median(ours[name]):.4g}, Optuna's "
            f"{statistics.median(theirs[name]):.4g}, p = {chances[name]:.2g}: {verdict}."
        )
    return lines


TEST = """
import json, sys
from scipy.stats import wilcoxon
values = json.load(open(sys.argv[1]))
chances = {}
for name, ours in values["ours"].items():
    theirs = values["theirs"][name]
    chances[name] = float(wilcoxon(ours, theirs, alternative="greater").pvalue)
print(json.dumps(chances))
"""


def measure(context: Context, name: str) -> Report:
    program = context.root / "build/release/bench/tune/tune_trials"
    if not program.exists():
        raise CannotRun(f"{program} is not there: build with -DMUSTER_BENCHMARKS=ON")
    python = context.peer_python("optuna")
    script = context.peer_script("optuna_trials.py")
    folder = context.fresh_folder("tune")
    version = run([python, "-c", "import optuna; print(optuna.__version__)"]).output.strip()
    ours, alone, sqlite, journal = [], [], [], []
    for number in range(context.rounds):
        at = folder / str(number)
        at.mkdir()
        ours.append(noop(program, at / "eight", THREADS))
        sqlite.append(peer_noop(python, script, "sqlite", at / "optuna.db"))
        journal.append(peer_noop(python, script, "journal", at / "optuna.log"))
        alone.append(noop(program, at / "one", 1))
        print(f"  round {number + 1}/{context.rounds}: {ours[-1]:.3f} ms a trial, {sqlite[-1]:.1f} "
              f"and {journal[-1]:.1f} ms", flush=True)  # fmt: skip
    lines = compare_tpe(context, program, python, script)
    eight = Series(tuple(ours))
    return Report(
        name=name,
        title="Search: the cost of a trial, and TPE",
        method=METHOD.format(optuna=version),
        peer=f"Optuna {version}",
        unit="time of a trial",
        rows=[
            Row(f"{THREADS} trials in parallel, beside SQLite", eight, Series(tuple(sqlite)),
                form=milliseconds, less_is_better=True),
            Row(f"{THREADS} trials in parallel, beside its journal file", eight,
                Series(tuple(journal)), form=milliseconds, less_is_better=True),
            Row(f"{THREADS} trials in parallel", eight, goal=MS_A_TRIAL, form=milliseconds,
                less_is_better=True),
            Row("one at a time", Series(tuple(alone)), form=milliseconds, less_is_better=True),
        ],
        same=lines,
    )  # fmt: skip
