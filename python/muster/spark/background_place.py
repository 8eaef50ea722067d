"""A place in a process of its own, which a task of Spark starts and leaves: its slot is free again.

The process ends when the driver says so or was silent for a lease, and when the executor has ended.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys

from muster.spark.place import Driver, Place, Surroundings, exit_on_signal

_END_SECONDS = 30.0


def start(driver: Driver, name: str, around: Surroundings) -> subprocess.Popen[bytes]:
    """Returns at once. Where nobody waits for the process, its executor's JVM or init reaps it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "muster.spark.background_place"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(around.path)},
    )  # fmt: skip
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(pickle.dumps((tuple(driver), name, tuple(around))))
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """Waits for the end of a process of start(), whose place was told to leave."""
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()


def main() -> None:
    driver, name, around = pickle.load(sys.stdin.buffer)
    signal.signal(signal.SIGTERM, exit_on_signal)
    Place(Driver(*driver), name, Surroundings(*around)).run()


if __name__ == "__main__":
    main()
