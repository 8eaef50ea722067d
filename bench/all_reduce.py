"""All-reduce between processes of this machine, beside gloo over TCP and OpenMPI."""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path

from bench.context import CannotRun, Context
from bench.measure import Series, count, run
from bench.report import Report, Row

SIZES = {
    64: "64 B", 1 << 10: "1 KiB", 16 << 10: "16 KiB", 256 << 10: "256 KiB",
    1 << 20: "1 MiB", 16 << 20: "16 MiB", 64 << 20: "64 MiB",
}  # fmt: skip
SMALL = 1 << 20  # goals up to here, and at the largest
Goals = tuple[float | None, float | None]
MEMORY_GOALS: Goals = (5.0, 2.0)
TCP_GOALS: Goals = (1.5, 1.2)
OPENMPI_GOAL = 1 / 1.2
CIPHER = "aes-128-gcm"  # the first of those that muster offers
# A folder with the shared libraries of another OpenSSL 3, to measure TLS with these, too.
OTHER_OPENSSL = "MUSTER_BENCH_OPENSSL"
TLS_GOALS = {64: 0.6, 1 << 10: 0.6, 16 << 10: 0.6, 1 << 20: 0.35, 64 << 20: 0.4}
NONE: Goals = (None, None)
METHOD = """
Sums of floats over 2 processes (and 4, for comparison), in place, of sizes in bytes. Muster and OpenMPI
bind a process to a core, as a worker with one thread is; gloo's may move, for its transport has a
thread of its own and is slower with both on one core. Each side chooses its algorithm by itself. A
figure is the fastest of 10 batches of calls, from barrier to barrier. 4 processes share 2 cores, where
waiting costs most: 3 rounds of them. TLS is what replicas of two machines speak, here over loopback. Of two ranks each
one encrypts and decrypts as many bytes as the floats take. The limit adds to the time over TCP that of these bytes at the
rate of `openssl speed`, for the same cipher, records of 16 KiB and two processes at once. Every side first
sums whole numbers of each size and compares all. Rows of another OpenSSL load its shared libraries in place of this
machine's (MUSTER_BENCH_OPENSSL=FOLDER).
"""

Micros = dict[int, float]


def micros(value: float) -> str:
    return f"{value:.3g} us" if value < 1000 else f"{value / 1000:.3g} ms"


def measured(*words: str | Path, **environment: str) -> Micros:
    said = json.loads(run(words, **environment).output)
    return {int(size): float(value) for size, value in said.items()}


@functools.cache
def other_openssl() -> dict[str, str]:
    """Environment variables that load the other OpenSSL; empty if none is given."""
    folder = os.environ.get(OTHER_OPENSSL)
    if not folder:
        return {}
    environment = {"LD_LIBRARY_PATH": ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))}
    if openssl_version(**environment) == openssl_version():
        raise CannotRun(f"{OTHER_OPENSSL}: {folder} has no other libcrypto.so.3 than this machine")
    return environment


def openssl_version(**environment: str) -> str:
    """Like "OpenSSL 3.0.19", of the library and not of the program that loads it."""
    said = run(["openssl", "version"], **environment).output
    return " ".join(said.partition("Library: ")[2].split()[:2])


def sides(context: Context, ranks: int) -> dict[str, Callable[[], Micros]]:
    folder = context.root / "build/release/bench/collectives"
    programs = {name: folder / f"collectives_{name}" for name in ("ours", "gloo", "openmpi")}
    for program in programs.values():
        if not program.exists():
            raise CannotRun(f"{program.name} was not built: needs libgloo-dev, libopenmpi-dev")

    mpirun = ["mpirun", "-np", str(ranks), "--bind-to", "none", "--oversubscribe"]
    if os.geteuid() == 0:
        mpirun.append("--allow-run-as-root")
    other = other_openssl()
    by_other = {"other": lambda: measured(programs["ours"], str(ranks), "tls", **other)}
    return {
        "memory": lambda: measured(programs["ours"], str(ranks), "shm"),
        "tcp": lambda: measured(programs["ours"], str(ranks), "tcp"),
        "tls": lambda: measured(programs["ours"], str(ranks), "tls"),
        **(by_other if other and ranks == 2 else {}),
        "gloo": lambda: measured(programs["gloo"], str(ranks), context.fresh_folder("gloo")),
        "openmpi": lambda: measured(*mpirun, programs["openmpi"]),
    }


def measure_ranks(context: Context, ranks: int) -> dict[str, dict[int, Series]]:
    found: dict[str, list[Micros]] = {}
    rounds = context.rounds if ranks == 2 else min(context.rounds, 3)
    for number in range(rounds):
        turns = list(sides(context, ranks).items())
        for name, side in turns if number % 2 == 0 else reversed(turns):
            found.setdefault(name, []).append(side())
            print(f"  {ranks} ranks, round {number + 1}/{rounds}  {name}: "
                  f"{found[name][-1]}", flush=True)  # fmt: skip
    return {
        name: {size: Series(tuple(one[size] for one in every)) for size in SIZES}
        for name, every in found.items()
    }


def cipher_rate(cipher: str, *direction: str, **environment: str) -> float:
    """Bytes a second of each of two processes of OpenSSL, in records of 16 KiB."""
    said = run(["openssl", "speed", "-mr", "-seconds", "2", "-multi", "2", "-bytes", "16384", *direction, "-evp",
                cipher], **environment).output  # fmt: skip
    total = [line for line in said.splitlines() if line.startswith("+F:")][-1]
    return float(total.split(":")[-1]) / 2


def add_tls(report: Report, found: dict[str, dict[int, Series]], side: str, **environment: str) -> None:
    """Rows of TLS by two ranks beside TCP, and of its limit, which the cipher of this OpenSSL sets."""
    library = openssl_version(**environment)
    encrypted = cipher_rate(CIPHER, **environment)
    decrypted = cipher_rate(CIPHER, "-decrypt", **environment)
    for size, text in SIZES.items():
        report.rows.append(Row(f"2 ranks, {text}: TLS by {library}, Muster over TCP", found[side][size],
                               found["tcp"][size], TLS_GOALS.get(size), form=micros, less_is_better=True))  # fmt: skip
    for size in (16 << 10, 1 << 20, 64 << 20):
        tcp = found["tcp"][size]
        crypto = (size / encrypted + size / decrypted) * 1e6
        both = Series(tuple(each + crypto for each in tcp.values))
        report.rows.append(Row(f"2 ranks, {SIZES[size]}: the limit of {library}, Muster over TCP", both, tcp,
                               form=micros, less_is_better=True))  # fmt: skip
    report.same.append(
        f"{library}: {CIPHER} by `openssl speed`, by each of two processes: {count(encrypted)} bytes a second "
        f"encrypted, {count(decrypted)} decrypted."
    )


def goal_of(size: int, goals: Goals) -> float | None:
    if size <= SMALL:
        return goals[0]
    return goals[1] if size == max(SIZES) else None


def measure(context: Context, name: str) -> Report:
    report = Report(
        name=name,
        title="All-reduce, against gloo and OpenMPI",
        method=METHOD,
        peer="gloo 0~git20220518, OpenMPI 4.1.4",
        unit="time of one all-reduce",
    )
    for ranks in (2, 4):
        found = measure_ranks(context, ranks)
        aims = ranks == 2
        for ours, peer, what, goals in (
            ("memory", "gloo", "shared memory, gloo over TCP", MEMORY_GOALS),
            ("tcp", "gloo", "TCP, gloo over TCP", TCP_GOALS),
            ("tls", "tcp", "TLS, Muster over TCP", NONE),
            ("memory", "openmpi", "shared memory, OpenMPI", (OPENMPI_GOAL, OPENMPI_GOAL)),
        ):
            for size, text in SIZES.items():
                if ours == "tls" and aims:
                    continue  # see add_tls()
                goal = OPENMPI_GOAL if peer == "openmpi" else goal_of(size, goals)
                report.rows.append(Row(
                    f"{ranks} ranks, {text}: {what}", found[ours][size], found[peer][size],
                    goal if aims else None, form=micros, less_is_better=True,
                ))  # fmt: skip
        if aims:
            add_tls(report, found, "tls")
            if other := other_openssl():
                add_tls(report, found, "other", **other)
    report.same.append("All sides summed whole numbers of every size to the right values.")
    return report
