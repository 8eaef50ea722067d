"""Reading and training from a real Kafka, beside librdkafka's batch consumer and the local disk."""

from __future__ import annotations

from bench.context import CannotRun, Context
from bench.hdfs import HIDDEN
from bench.measure import Series, interleave, run
from bench.report import Report, Row, in_unit

ROWS = 1_000_000
GOAL, TRAINING_GOAL = 0.8, 0.9
METHOD = f"""
One broker of Kafka 3.9.1 on this machine, in the test bed's configuration; a topic of one partition with {ROWS:,}
rows of `muster sample clicks` as tf.Example, written by `muster records to-kafka`.

- Reading: our input reads and decodes the topic for `examples/clicks/clicks.yaml` (`read_rows`); librdkafka's batch
  consumer, with its own settings, takes the same messages and drops them (`kafka_consume`); our input reads and decodes the
  same rows from one TFRecord file. CPU time a row of the reading process. The peer is the sum of the last two: who
  consumes in batches and decodes as we do cannot cost less.
- Training: `examples/clicks/clicks.yaml`, shuffled, one epoch, one thread; from the topic and from the file. Rows
  a second of wall time: the broker uses the same cores. Then with hidden layers of {HIDDEN} units, a model that trains at
  about 200,000 rows a second: the goal is for this speed.
"""
nanoseconds = in_unit("ns")


def measure(context: Context, name: str) -> Report:
    try:
        from testbed.kafka.cluster import Kafka
    except ImportError as error:
        raise CannotRun(f"{error}: run it by a Python with tools/requirements-component.txt") from error
    folder = context.fresh_folder("kafka")
    spec = context.root / "examples/clicks/clicks.yaml"
    run([context.muster, "sample", "clicks", "--rows", str(ROWS), "--out", folder / "clicks.csv"])
    run([context.muster, "records", "from-csv", folder / "clicks.csv", "--spec", spec,
         "--out", folder / "clicks", "--shards", "1"])  # fmt: skip
    local = f"{folder}/clicks/part-*"
    kafka = Kafka(context.fresh_folder("kafka-cluster"))
    losses: set[float] = set()
    try:
        kafka.start()
        kafka.create("clicks")
        run([context.muster, "records", "to-kafka", next((folder / "clicks").glob("part-*-of-*")),
             "--to", kafka.url("clicks")])  # fmt: skip
        topic = kafka.url("clicks")

        def rows(data: str) -> float:
            program = context.root / "build/release/bench/tune/read_rows"
            done = run([program, spec, data, "1", "ordered"])
            if done.events()["rows"] != ROWS:
                raise CannotRun(f"{data} gave {done.events()['rows']} rows, not {ROWS}")
            return done.cpu_seconds * 1e9 / ROWS

        def consume() -> float:
            done = run([context.root / "build/release/bench/kafka/kafka_consume", kafka.brokers,
                        "clicks", str(ROWS)])  # fmt: skip
            return done.cpu_seconds * 1e9 / ROWS

        def train(data: str, hidden: str) -> float:
            events = run([context.muster, "train", spec, "--train", data, "--model-dir",
                          context.fresh_folder("kafka-model") / "model", "--epochs", "1",
                          "--set", f"model.dnn.hidden_units=[{hidden}]",
                          "--save-steps", "1000000", "--quiet", "--json"]).events()  # fmt: skip
            losses.add(events["loss"])
            return float(events["examples"] / events["seconds"])

        reading = interleave(
            {"topic": lambda: rows(topic), "consume": consume, "file": lambda: rows(local)},
            context.rounds,
        )
        small, wide = (
            interleave(
                {"topic": lambda: train(topic, hidden), "file": lambda: train(local, hidden)}, context.rounds
            )
            for hidden in ("64", HIDDEN)
        )
    finally:
        kafka.stop()
    sums = zip(reading["consume"].values, reading["file"].values, strict=True)
    least = Series(tuple(a + b for a, b in sums))
    share = in_unit("", 2)
    return Report(
        name=name,
        title="Reading and training from Kafka",
        method=METHOD,
        peer="librdkafka's batch consumer, and our decoder",
        unit="from Kafka",
        rows=[
            Row("reading and decoding, CPU a row", reading["topic"], least, GOAL, nanoseconds,
                less_is_better=True),
            Row("... the batch consumer alone", reading["consume"], form=nanoseconds),
            Row("... reading and decoding the file", reading["file"], form=nanoseconds),
            Row("training, rows a second", small["topic"]),
            Row("... over that from the file", small["topic"].over(small["file"]), form=share),
            Row(f"training with {HIDDEN} units, rows a second", wide["topic"]),
            Row("... over that from the file", wide["topic"].over(wide["file"]), least=TRAINING_GOAL, form=share),
        ],
        same=[f"All trainings end with the losses {sorted(losses)}."],
    )  # fmt: skip
