"""CSV of 40 columns to TFRecord, beside pandas rows and tf.train.Example."""

from pathlib import Path

from bench.context import Context
from bench.measure import interleave, run
from bench.report import Report, Row

OURS_ROWS = (50_000, 450_000)
PEER_ROWS = (2_000, 32_000)
GOAL = 40.0
METHOD = """
The click log of `muster sample clicks`: a label, 13 numbers and 26 words a row, some missing (a
default instead), turned into TFRecord files of tf.Example. The peer reads the CSV with pandas, goes
through `itertuples`, fills a tf.train.Example of each row and writes it with tf.io.TFRecordWriter.
Rows per CPU second of the steady state: each side runs twice, on few and on many rows, and the
difference of the rows is divided by the difference of the CPU seconds of the whole process.
"""


def write_heads(context: Context) -> dict[int, Path]:
    folder = context.fresh_folder("csv")
    whole = folder / "clicks.csv"
    run([context.muster, "sample", "clicks", "--rows", str(max(OURS_ROWS)), "--seed", "7",
         "--out", whole])  # fmt: skip
    heads = {max(OURS_ROWS): whole}
    for rows in (*PEER_ROWS, min(OURS_ROWS)):
        heads[rows] = folder / f"clicks-{rows}.csv"
        with open(whole, encoding="utf-8") as source, open(heads[rows], "w", encoding="utf-8") as out:
            for _ in range(rows + 1):
                out.write(source.readline())
    return heads


def convert(context: Context, file: Path) -> float:
    return run([context.muster, "records", "from-csv", file,
                "--spec", context.root / "examples/clicks/clicks.yaml",
                "--out", context.fresh_folder("csv-ours"), "--shards", "1"]).cpu_seconds  # fmt: skip


def measure(context: Context, name: str) -> Report:
    heads = write_heads(context)
    python = context.peer_python("component")
    script = context.peer_script("pandas_csv.py")
    peer_out = context.scratch / "csv-peer.tfrecord"

    def peer(rows: int) -> float:
        return run([python, script, "convert", heads[rows], peer_out],
                   TF_CPP_MIN_LOG_LEVEL="3").cpu_seconds  # fmt: skip

    convert(context, heads[PEER_ROWS[0]])
    peer(PEER_ROWS[0])
    ours_out = context.scratch / "csv-ours"
    compared = run([python, script, "compare", ours_out, peer_out], TF_CPP_MIN_LOG_LEVEL="3").events()

    def rate(cost: dict[int, float]) -> float:
        (few, cheap), (many, dear) = sorted(cost.items())
        return (many - few) / (dear - cheap)

    series = interleave(
        {
            "ours": lambda: rate({rows: convert(context, heads[rows]) for rows in OURS_ROWS}),
            "peer": lambda: rate({rows: peer(rows) for rows in PEER_ROWS}),
        },
        context.rounds,
    )
    bytes_a_row = heads[max(OURS_ROWS)].stat().st_size / max(OURS_ROWS)
    return Report(
        name=name,
        title="CSV to TFRecord, against pandas and tf.train.Example",
        method=METHOD,
        peer="pandas 2.2.3, TensorFlow 2.15.1",
        unit="rows per CPU second",
        rows=[Row(f"40 columns, {bytes_a_row:.0f} B a row", series["ours"], series["peer"], GOAL)],
        same=[
            f"Every feature of the first {compared['records']} records is equal "
            f"({compared['features']} features)."
        ],
    )
