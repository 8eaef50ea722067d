"""TFRecord of 40 features to columns, beside libprotobuf on an arena."""

from pathlib import Path

from bench.context import CannotRun, Context
from bench.measure import interleave, run
from bench.report import Report, Row

RECORDS = 20_000
GOAL = 8.0
METHOD = """
A TFRecord file of tf.Examples of 40 features (13 floats, 26 strings of 8 characters, an int64; 784
bytes with the frame), read into memory beforehand. Timed: framing, both CRCs, parsing, and the values
in columns of 512 rows. The peer parses each record into a tf.Example on an arena that is emptied with
the batch, and looks the features up by name; framing and CRCs are Muster's on both sides. One thread,
CPU seconds, as many passes as fill a second.
"""


def program(context: Context, name: str) -> Path:
    path = context.root / "build/release/bench/tfrecord" / name
    if not path.exists():
        raise CannotRun(f"{path} is not there: it needs libprotobuf-dev and protobuf-compiler")
    return path


def measure(context: Context, name: str) -> Report:
    file = context.fresh_folder("tfrecord") / "forty-features.tfrecord"
    programs = {"ours": program(context, "tfrecord_ours"), "peer": program(context, "tfrecord_peer")}
    run([programs["ours"], "--make", str(RECORDS), file])
    checksums = {side: run([path, file]).events()["checksum"] for side, path in programs.items()}
    if checksums["ours"] != checksums["peer"]:
        raise CannotRun(f"the two sides read different values: checksums {checksums}")

    def rate(side: str) -> float:
        event = run([programs[side], file]).events()
        return event["examples"] / event["cpu_seconds"]

    series = interleave({side: lambda side=side: rate(side) for side in programs}, context.rounds)
    return Report(
        name=name,
        title="TFRecord to columns, against libprotobuf",
        method=METHOD,
        peer="libprotobuf 3.21 (Debian 12), arena",
        unit="examples per CPU second",
        rows=[Row("40 features, 784 B", series["ours"], series["peer"], GOAL)],
        same=[f"The checksum over all values of the {RECORDS:,} records is equal."],
    )
