"""Muster's own sides of the other benchmarks, from this tree and from another one, interleaved.

A benchmark's ratio to a peer moves with the peer and with the machine; whether a change made Muster
itself slower is seen by running both programs in turns. The other tree must be built as
bench/run builds this one, and must know the same flags.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import all_reduce, keras, replica_rates, servers, train_pytorch, train_tensorflow
from bench.context import Context, prepare_adult
from bench.measure import Series
from bench.report import Report, Row

COLLECTIVE_SIZES = (64, 16 << 10, 1 << 20, 64 << 20)
METHOD = """
Each row is a figure of Muster alone, as the benchmark of that name measures it, without its peer:
the programs of both trees run in turns on the same data. Training rates are per CPU second of all
tasks together.
"""

Measurement = Callable[[], dict[str, float]]  # figures by row


@dataclass(frozen=True)
class Section:
    """A benchmark: what makes its measurement of one tree."""

    prepare: Callable[[Context], Measurement]
    less_is_better: bool = False


def _train_tensorflow(context: Context) -> Measurement:
    adult = prepare_adult(context)
    return lambda: {
        f"batch {batch}": train_tensorflow.our_rate(context, adult, batch)
        for batch in train_tensorflow.PLAN
    }


def _train_pytorch(context: Context) -> Measurement:
    adult = prepare_adult(context)
    return lambda: {
        f"batch {batch}": train_pytorch.ours(context, adult, batch)["rate"]
        for batch in train_pytorch.GOALS
    }


def _distributed(context: Context) -> Measurement:
    adult = prepare_adult(context)
    adult_set = replica_rates.Set("Adult", adult.spec, str(adult.train))
    sets = [adult_set, replica_rates.prepare_clicks(context)]
    sides = {
        "one process": (1, replica_rates.one),
        "2 replicas by all-reduce": (2, replica_rates.all_reduce),
        "2 replicas, ps-async": (1, replica_rates.served),
    }

    def measure() -> dict[str, float]:
        figures = {}
        for data in sets:
            for name, (replicas, side) in sides.items():
                cost = side(context, data)
                rows = cost.steps * replica_rates.BATCH * replicas
                figures[f"{data.name}: {name}"] = rows / cost.cpu_seconds
        return figures

    return measure


def _collectives(context: Context) -> Measurement:
    ways = {"shm": "shared memory", "tcp": "TCP", "tls": "TLS"}
    program = context.root / "build/release/bench/collectives/collectives_ours"

    def measure() -> dict[str, float]:
        return {
            f"2 ranks, {all_reduce.SIZES[size]}: {name}, us": micros
            for way, name in ways.items()
            for size, micros in all_reduce.measured(program, "2", way).items()
            if size in COLLECTIVE_SIZES
        }

    return measure


def _servers(context: Context) -> Measurement:
    def measure() -> dict[str, float]:
        echo = servers.benchmarks(context, "muster_net_transport_benchmark", "^ThereAndBack/Unix/")
        rows = servers.benchmarks(context, "muster_ps_benchmark", ".")
        figures = {
            f"echo of {text}, bytes/s": echo[f"ThereAndBack/Unix/{size}"]["bytes_per_second"]
            for size, text in servers.ECHO.items()
        }
        for side in ("Pull", "PushAdagrad"):
            for batch in servers.BATCHES:
                nanos = rows[f"{side}/{batch}"]["cpu_time"]
                figures[f"{side} of {batch} rows, rows a CPU second"] = batch * 1e9 / nanos
        return figures

    return measure


def _keras(context: Context) -> Measurement:
    data = {kind: keras.prepare(context, kind) for kind in dict.fromkeys(c.kind for c in keras.CASES)}

    def measure() -> dict[str, float]:
        return {
            f"{case.what}, batch {case.batch}: CPU us a step": keras.our_cost(
                context, case, data[case.kind]
            )
            for case in keras.CASES
        }

    return measure


SECTIONS = {
    "train-tensorflow": Section(_train_tensorflow),
    "train-pytorch": Section(_train_pytorch),
    "distributed": Section(_distributed),
    "collectives": Section(_collectives, less_is_better=True),
    "servers": Section(_servers),
    "keras": Section(_keras, less_is_better=True),
}


def _rounds(sides: dict[str, Measurement], rounds: int) -> Iterator[tuple[str, dict[str, float]]]:
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else list(reversed(sides)):
            yield name, sides[name]()
            print(f"  round {number + 1}/{rounds}  {name}", flush=True)


def measure(context: Context, other: Path, name: str) -> Report:
    section = SECTIONS[name]
    contexts = {"this": context, "other": Context(root=other.resolve(), rounds=context.rounds)}
    sides = {side: section.prepare(each) for side, each in contexts.items()}
    found: dict[str, dict[str, list[float]]] = {side: {} for side in sides}
    for side, figures in _rounds(sides, context.rounds):
        for row, value in figures.items():
            found[side].setdefault(row, []).append(value)
    report = Report(
        name=f"{name} --against TREE", title=name, method=METHOD, peer="the other tree", unit="this tree"
    )
    for row, values in found["this"].items():
        report.rows.append(Row(
            row, Series(tuple(values)), Series(tuple(found["other"][row])),
            less_is_better=section.less_is_better,
        ))  # fmt: skip
    return report
