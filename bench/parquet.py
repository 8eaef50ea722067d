"""The rows of Parquet files to columns, beside pyarrow alone."""

from pathlib import Path
from typing import Any

from bench.context import CannotRun, Context
from bench.measure import interleave, run
from bench.report import Report, Row

ROWS = 2_000_000
GOAL = 0.8
METHOD = f"""
A table of {ROWS:,} rows in files of 500,000 and row groups of 100,000 rows, snappy, with dictionaries: 6 integers of 32 bits (a
tenth are null), 4 doubles, 4 texts of 10 to 10,000 different words of 8 letters, a list of 0 to 5 integers. The
files are in the page cache.

- Ours: `bench/parquet/ours.cc`: the batches of 512 rows that a training gets, by `muster-parquet`; the CPU time of both
  processes.
- pyarrow: `iter_batches` of the same columns, one thread.

Both add up all values. The start of Python and the import of pyarrow are in both.
"""


def measure(context: Context, name: str) -> Report:
    ours = context.program("parquet_ours")
    python = context.peer_python("component")
    script = context.peer_script("parquet_pyarrow.py")
    folder = context.fresh_folder("parquet")
    run([python, script, "--make", str(ROWS), folder])
    sums: set[tuple[int, ...]] = set()
    floats: list[float] = []

    def rate(command: list[str | Path]) -> float:
        done = run(command)
        said: dict[str, Any] = done.events()
        sums.add((said["rows"], said["ints"], said["bytes"]))
        floats.append(said["floats"])
        return said["rows"] / done.cpu_seconds

    series = interleave(
        {"ours": lambda: rate([ours, folder, python]), "peer": lambda: rate([python, script, folder])},
        context.rounds,
    )
    if len(sums) != 1 or max(floats) > 1.0001 * min(floats):
        raise CannotRun(f"the two sides read different values: {sums}, {floats}")
    return Report(
        name=name,
        title="Reading Parquet, against pyarrow",
        method=METHOD,
        peer="pyarrow 18.1",
        unit="rows per CPU second",
        rows=[Row("15 columns", series["ours"], series["peer"], GOAL)],
        same=["Both read the same sums of numbers and bytes of text."],
    )
