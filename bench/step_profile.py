"""Where the time of a step of the click models goes, by function, beside an earlier revision."""

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from bench.cached_features import write_models
from bench.context import CannotRun, Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit

# The last revision before the work on these figures began.
BEFORE = "f59b51b"
ROWS, EPOCHS, FREQUENCY = 200_000, 5, 2000
METHOD = f"""
`muster train` of {ROWS:,} rows of `muster sample clicks` as TFRecord, batches of 256, {EPOCHS} epochs, one thread: the linear
model and wide & deep of [cached features](cached-features.md). Nanoseconds of CPU a row in the thread that trains, by the functions in which
`perf record -e cpu-clock` finds it {FREQUENCY:,} times a second. The other side is revision {BEFORE}. In front of that thread, another
one reads and decodes.

What changed: the next number of a row is found without a branch, which cannot be predicted where half of the rows are new;
rows are updated in blocks of 64, and the weights and slots of the next block are fetched meanwhile; ids are checked
by sums and differences, of which the compiler makes vectors on any processor. Rows are not sorted: to update one of the 8 distinct rows that
the linear model has for each row of a batch takes 12 ns, to sort the 180 of a column takes 45 ns each (`std::sort`).
"""
# By the names of functions; the first that fits counts.
PARTS = {
    "find which rows of its tables a batch has": r"DistinctRowsFinder",
    "check its ids": r"FindBadId",
    "add up the rows of linear columns": r"GatherAdd",
    "look rows of embeddings up": r"GatherRows",
    "add up the gradients of rows": r"ScatterAdd",
    "update rows and weights": r"UpdateRows|::Ftrl|::Adagrad",
    "dense layers": r"Gemm|Panel",
}
ALL = "all of the step"
SAMPLE = re.compile(r"\s*(\d+)\s+[0-9a-f]+ (.*)")


def profile(context: Context, muster: Path, model: Path, data: Path) -> dict[str, float]:
    """Nanoseconds a row by part."""
    samples = context.scratch / "step-profile.data"
    folder = context.fresh_folder("step-profile-model")
    run(["perf", "record", "-q", "-F", str(FREQUENCY), "-e", "cpu-clock", "-o", samples, muster, "train", model,
         "--train", data / "part-*", "--model-dir", folder, "--epochs", str(EPOCHS), "--threads", "1",
         "--summary-steps", "1000000", "--save-secs", "0", "--quiet"])  # fmt: skip
    threads: dict[str, list[str]] = defaultdict(list)
    for line in run(["perf", "script", "-i", samples, "-F", "tid,ip,sym"]).output.splitlines():
        if found := SAMPLE.match(line):
            threads[found[1]].append(found[2])
    step = max(threads.values(), key=lambda names: sum("DistinctRowsFinder" in name for name in names))
    counts = dict.fromkeys((*PARTS, ALL), 0.0)
    for name in step:
        for part in [part for part, pattern in PARTS.items() if re.search(pattern, name)][:1] + [ALL]:
            counts[part] += 1e9 / FREQUENCY / ROWS / EPOCHS
    return counts


def build_before(context: Context) -> Path:
    """The program of that revision, or that of MUSTER_BENCH_BEFORE, which is one."""
    if given := os.environ.get("MUSTER_BENCH_BEFORE"):
        return Path(given)
    tree = context.scratch / "step-profile-before"
    run(["git", "-C", context.root, "worktree", "add", "--detach", tree, BEFORE])
    try:
        run(["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DMUSTER_TESTS=OFF",
             "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON"])  # fmt: skip
        run(["cmake", "--build", tree / "build", "--target", "muster"])
        return Path(shutil.copy(tree / "build/src/muster/muster", context.scratch / "muster-before"))
    finally:
        subprocess.run(["git", "-C", context.root, "worktree", "remove", "--force", tree], check=False)


def measure(context: Context, name: str) -> Report:
    if shutil.which("perf") is None:
        raise CannotRun("needs perf (linux-perf)")
    folder = context.fresh_folder("step-profile")
    linear, deep = write_models(context, folder)
    table = folder / "clicks.csv"
    run([context.muster, "sample", "clicks", "--rows", str(ROWS), "--seed", "1", "--out", table])
    run([context.muster, "records", "from-csv", table, "--spec", deep, "--out", folder / "clicks"])
    before = build_before(context)
    report = Report(name=name, title="A step of the click models, by function", method=METHOD,
                    peer=f"before ({BEFORE})", unit="ns a row")  # fmt: skip
    for title, model in (("linear", linear), ("wide & deep", deep)):
        done: dict[str, list[dict[str, float]]] = {"now": [], "before": []}
        for number in range(context.rounds):
            for side, muster in [("now", context.muster), ("before", before)][:: 1 if number % 2 else -1]:
                done[side].append(profile(context, muster, model, folder / "clicks"))
        for part in (*PARTS, ALL):
            ours, peer = (Series(tuple(each[part] for each in done[side])) for side in ("now", "before"))
            if peer.median > 0 and ours.median > 0:
                report.rows.append(Row(f"{title}: {part}", ours, peer, form=in_unit("ns"), less_is_better=True))
    return report
