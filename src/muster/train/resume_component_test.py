"""Exact resume: a `muster train` that is stopped again and again ends with the same bytes.

Fifty cuts, at seeded places: SIGTERM, which saves where it stands, and SIGKILL, after which the
newest checkpoint counts. Every chain of cuts is compared with a run that nobody stopped.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

CUTS_A_CHAIN = 5
STEPS = 120
INPUTS = """
inputs: {age: {type: int, default: -1}, pay: float, job: string, y: int}
label: y
columns:
  age: {bucketized: age, boundaries: [30, 50]}
  pay: {numeric: pay}
  job: {hash: job, buckets: BUCKETS}
  e: {embedding: job, dimension: 4}
"""
DNN = "hidden_units: [16, 8], dropout: 0.3, batch_norm: true"
TRAIN = "train: {batch_size: 16, epochs: 10, shuffle: true, seed: 11}\n"


@dataclasses.dataclass(frozen=True)
class Chain:
    threads: int
    optimizer: str  # of the dense layers and the embedding
    linear: str = "{ftrl: {learning_rate: 0.1}}"
    buckets: int = 10  # of the embedding's table

    def spec(self) -> str:
        inputs = INPUTS.replace("BUCKETS", str(self.buckets))
        return (
            f"{inputs}model:\n  type: wide_deep\n"
            f"  linear: {{columns: [age, job], optimizer: {self.linear}}}\n"
            f"  dnn: {{columns: [pay, e], {DNN}, optimizer: {self.optimizer}}}\n{TRAIN}"
        )

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.optimizer}"


# All optimizers, and 1 to 4 threads.
CHAINS = [
    Chain(1, "{ftrl: {learning_rate: 0.05, l1: 0.001, l2: 0.001}}"),
    Chain(2, "{ftrl: {learning_rate: 0.05}}", linear="{adagrad: {learning_rate: 0.1}}"),
    Chain(1, "{adagrad: {learning_rate: 0.05}}"),
    Chain(3, "{adagrad: {learning_rate: 0.05}}"),
    Chain(4, "{adagrad: {learning_rate: 0.05}}"),
    Chain(1, "{adam: {learning_rate: 0.01}}"),
    Chain(2, "{adam: {learning_rate: 0.01}}"),
    Chain(4, "{adam: {learning_rate: 0.01}}"),
    Chain(1, "{adam: {learning_rate: 0.01, lazy: true}}"),
    Chain(3, "{adam: {learning_rate: 0.01, lazy: true}}"),
    # A table that threads walk in parts.
    Chain(3, "{adam: {learning_rate: 0.01, weight_decay: 0.1}}", buckets=20000),
    Chain(2, "{rmsprop: {learning_rate: 0.01, momentum: 0.9}}"),
    Chain(2, "{sgd: {learning_rate: {exponential: {initial: 0.05, decay_steps: 20, decay_rate: 0.9}}, momentum: 0.9, nesterov: true}}"),
]


def test_there_are_fifty_cuts_over_all_threads():
    assert len(CHAINS) * CUTS_A_CHAIN >= 50
    assert {chain.threads for chain in CHAINS} == {1, 2, 3, 4}


def write_rows(path: pathlib.Path) -> None:
    rows = random.Random(3)
    lines = ["age,pay,job,y"]
    for _ in range(190):  # 12 batches an epoch, the last one short
        age, pay = rows.randrange(18, 70), rows.gauss(0, 1)
        lines.append(f"{age},{pay:.4f},job{rows.randrange(9)},{int(pay + rows.gauss(0, 1) > 0)}")
    path.write_text("\n".join(lines) + "\n")


def newest_step(model: pathlib.Path) -> int:
    """As the names of the index files tell; -1 when there is none."""
    names = [re.fullmatch(r"model\.ckpt-(\d+)\.index", p.name) for p in model.glob("*.index")]
    return max((int(name[1]) for name in names if name), default=-1)


def final_bytes(model: pathlib.Path) -> bytes:
    """All that the last checkpoint holds: weights, slots, step and position, in file order."""
    return b"".join(p.read_bytes() for p in sorted(model.glob(f"model.ckpt-{STEPS}.data-*")))


ENDED: list[int] = []  # exit codes of all that were cut


class Training:
    """The same `muster train` again and again, in a folder of its own."""

    def __init__(self, binary: str, folder: pathlib.Path, chain: Chain):
        self.folder = folder
        self.model = folder / "model"
        (folder / "spec.yaml").write_text(chain.spec())
        write_rows(folder / "rows.csv")
        self.command = [binary, "train", "spec.yaml", "--train", "rows.csv", "--model-dir", "model",
                        "--threads", str(chain.threads), "--quiet"]  # fmt: skip

    def start(self, save_steps: int) -> subprocess.Popen[bytes]:
        command = [*self.command, "--save-steps", str(save_steps)]
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)  # fmt: skip

    def finish(self, process: subprocess.Popen[bytes]) -> int:
        _, error = process.communicate(timeout=120)
        if process.returncode not in (0, 143, -signal.SIGKILL, -signal.SIGTERM):
            raise AssertionError(f"exit {process.returncode}: {error.decode()}")
        if process.returncode == 143:
            assert b"stopped by a signal" in error, error.decode()
        return process.returncode

    def run_until(self, step: int, how: signal.Signals, save_steps: int, delay: float) -> int:
        """Sends the signal some time after a checkpoint of that step is there."""
        process = self.start(save_steps)
        while newest_step(self.model) < step and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(delay)
        process.send_signal(how)
        return self.finish(process)

    def run_whole(self) -> None:
        assert self.finish(self.start(save_steps=1000)) == 0
        assert newest_step(self.model) == STEPS


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_ends_with_the_bytes_of_the_unbroken_run(muster, tmp_path, chain):
    seed = int(os.environ.get("MUSTER_SEED") or random.randrange(2**32))
    print(f"seed {seed} (MUSTER_SEED gives it back)")
    places = random.Random(seed)
    (tmp_path / "whole").mkdir()
    whole = Training(muster.binary, tmp_path / "whole", chain)
    whole.run_whole()

    (tmp_path / "cut").mkdir()
    training = Training(muster.binary, tmp_path / "cut", chain)
    for step in sorted(places.sample(range(STEPS - 15), CUTS_A_CHAIN)):
        how = places.choice([signal.SIGTERM, signal.SIGKILL])
        ended = training.run_until(step, how, places.choice([1, 2, 3]), places.uniform(0, 0.01))
        ENDED.append(ended)
        found = newest_step(training.model)
        print(f"cut after step {step} by {how.name}: exit {ended}, newest checkpoint {found}")
        assert found >= step
    training.run_whole()
    assert final_bytes(training.model) == final_bytes(whole.model)


def test_the_cuts_were_real():
    """Of all tests above: hardly any training was done before its signal came."""
    if len(ENDED) < CUTS_A_CHAIN * len(CHAINS):
        pytest.skip("not all chains were run")
    print({code: ENDED.count(code) for code in set(ENDED)})
    assert ENDED.count(0) <= len(ENDED) // 10
    assert ENDED.count(143) > 5 and ENDED.count(-signal.SIGKILL) > 5
