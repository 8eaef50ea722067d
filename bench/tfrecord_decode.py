"""TFRecord of 40 features to a batch of columns, beside libprotobuf."""

from pathlib import Path
from typing import Any

from bench.context import CannotRun, Context
from bench.measure import interleave, run
from bench.report import Report, Row

RECORDS = 20_000  # 16 MB: read into memory before the clock starts
GOAL = 8.0
METHOD = """
TFRecord framing with its checksums and tf.Examples of 40 features (13 floats, 26 words of 8 letters,
a label) to typed columns in batches of 512, from memory. Two C++ programs of one interface
(`bench/tfrecord/`) that differ in the decoder: the peer parses with libprotobuf on an arena and
looks each feature up by name. Each runs for a second of its own CPU time.
"""


def measure(context: Context, name: str) -> Report:
    folder = context.root / "build/release/bench/tfrecord"
    ours, peer = folder / "tfrecord_ours", folder / "tfrecord_peer"
    for program in (ours, peer):
        if not program.exists():
            raise CannotRun(f"{program.name} was not built: it needs libprotobuf-dev, protobuf-compiler")
    file = context.fresh_folder("tfrecord") / "forty.tfrecord"
    run([ours, "--make", str(RECORDS), file])
    checksums: dict[str, set[str]] = {"ours": set(), "peer": set()}

    def rate(side: str, program: Path) -> float:
        said: dict[str, Any] = run([program, file]).events()
        checksums[side].add(said["checksum"])
        return said["examples"] / said["cpu_seconds"]

    series = interleave(
        {"ours": lambda: rate("ours", ours), "peer": lambda: rate("peer", peer)}, context.rounds
    )
    if len(checksums["ours"] | checksums["peer"]) != 1:
        raise CannotRun(f"the two sides read different values: {checksums}")
    size = file.stat().st_size / RECORDS - 16
    return Report(
        name=name,
        title="Reading TFRecord, against libprotobuf",
        method=METHOD,
        peer="libprotobuf 3.21",
        unit="records per CPU second",
        rows=[Row(f"40 features, {size:.0f} B", series["ours"], series["peer"], GOAL)],
        same=["Both read every value to the same checksum."],
    )
