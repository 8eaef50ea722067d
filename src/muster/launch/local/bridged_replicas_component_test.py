"""Compares what 32 replicas on several hosts send to other hosts with the formulas of docs/scale.md."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterable, Iterator

import pytest

from testbed import network
from testbed.bridged_network import BridgedNetwork, Traffic
from testbed.jobs import Jobs
from testbed.trainings import Trainings
from testbed.two_hosts import WAIT, TwoHosts

REPLICAS = 32
TASKS = ("chief-0", *(f"worker-{index}" for index in range(REPLICAS - 1)))
# Every batch has ROWS rows of the table, each once.
BUCKETS, DIMENSION, UNITS, ROWS = 50_000, 16, 8, 64
SPEC = f"""
inputs: {{id: int, y: int}}
label: y
columns:
  id: {{identity: id, buckets: {BUCKETS}}}
  e: {{embedding: id, dimension: {DIMENSION}}}
model:
  type: dnn
  dnn: {{columns: [e], hidden_units: [{UNITS}], optimizer: {{adagrad: {{learning_rate: 0.05}}}}}}
train: {{batch_size: {ROWS}, epochs: 100, seed: 5}}
"""
# These are bytes.
STATE = 2 * BUCKETS * DIMENSION * 4  # the table with its slot; the layers are small
DENSE = ((DIMENSION + 1) * UNITS + UNITS + 1 + 2) * 4  # gradients of two layers, and two losses
TOUCHED = ROWS * (1 + DIMENSION) * 4  # rows of a batch with their numbers
PROPOSAL = 7 * 4
POSITION = 110  # in the data; some have up to 6 less
DISTANCES = (1, 2, 4, 8, 16)

Messages = Iterable[tuple[int, int, int]]  # from rank, to rank, bytes


def gather(size: int) -> Messages:
    for have in DISTANCES:
        for rank in range(REPLICAS):
            yield rank, (rank - have) % REPLICAS, have * size


def sum_rows() -> Messages:
    for distance in DISTANCES:
        for rank in range(REPLICAS):
            yield rank, rank ^ distance, 4 + TOUCHED // (2 * distance)


def one_step() -> Messages:
    yield from gather(DENSE)
    yield from sum_rows()
    # The size of this piece, the number of its rows, these, the proposal, the position and their size.
    yield from gather(8 + 4 + TOUCHED // REPLICAS + PROPOSAL + POSITION + 4)


class BridgedTrainings(Trainings):
    """Each host has as many replicas as the others, numbered one after the other."""

    def __init__(self, jobs: Jobs, bridge: BridgedNetwork) -> None:
        super().__init__(jobs)
        jobs.deadline = WAIT
        self.bridge = bridge
        self.places = {task: bridge.hosts[self.host(rank)] for rank, task in enumerate(TASKS)}

    def make(self) -> None:
        rows = (f"{number % ROWS},{number % 7 // 4}" for number in range(4 * ROWS * REPLICAS))
        (self.jobs.folder / self.data).write_text("\n".join(["id,y", *rows]) + "\n")
        (self.jobs.folder / self.spec).write_text(SPEC)

    def host(self, rank: int) -> int:
        return rank * len(self.bridge.hosts) // REPLICAS

    def train(self, steps: int, killed: str = "") -> tuple[Traffic, str]:
        """Returns what went from host to host, and what the chief said. Kills that worker at some step,
        and starts it again."""
        shutil.rmtree(self.jobs.folder / "broken", ignore_errors=True)
        flags = ("--max-steps", steps, "--threads", 1, "--save-secs", 0, "--no-shuffle")
        environment = {"MUSTER_PLAIN_TEXT": "1", "MUSTER_INCARNATION": "1"}
        before = self.bridge.traffic()
        hosts = TwoHosts(self, self.bridge, self.places).start(*flags, environment=environment)
        if killed:
            self.jobs.wait((self.jobs.folder / "broken/checkpoint").exists, "for the beginning")
            hosts.processes[killed].kill()
            hosts.end(killed)
            hosts.start_one(killed, *flags, environment={**environment, "MUSTER_INCARNATION": "2"})
        said = hosts.finish()
        return self.bridge.traffic() - before, said["chief-0"]


@pytest.fixture
def bridged(request: pytest.FixtureRequest, jobs: Jobs) -> Iterator[BridgedTrainings]:
    hosts = [f"h{number}" for number in range(request.param)]
    if why := network.available(lambda: BridgedNetwork(hosts[:2])):
        pytest.skip(why)
    with BridgedNetwork(hosts) as bridge:
        yield BridgedTrainings(jobs, bridge)


@pytest.mark.parametrize("bridged", [4, REPLICAS], indirect=True)
def test_a_step_sends_what_is_predicted(bridged: BridgedTrainings) -> None:
    few, more = 5, 105
    start, _ = bridged.train(few)
    step = (bridged.train(more)[0] - start) / (more - few)
    sent = [size for a, b, size in one_step() if bridged.host(a) != bridged.host(b)]
    # A busy network may send a segment again, or two frames in one.
    assert step.frames == pytest.approx(len(sent), rel=0.02)
    assert step.bytes == pytest.approx(sum(56 + -(-size // 8) * 8 for size in sent), rel=0.02)
    # Four exchanges of each replica with each other one would be four times as many messages or more.
    pairs = itertools.product(range(REPLICAS), repeat=2)
    direct = 4 * sum(bridged.host(a) != bridged.host(b) for a, b in pairs)
    assert 4 * step.frames <= direct
    # Before the first step the chief's state goes along a chain of all replicas.
    crossings = len(bridged.bridge.hosts) - 1
    assert crossings <= (start - step * few).bytes / STATE < 1.1 * crossings


@pytest.mark.parametrize("bridged", [4], indirect=True)
def test_the_state_moves_once_to_a_worker_that_was_killed(bridged: BridgedTrainings) -> None:
    steps, killed = 150, "worker-20"
    unbroken, _ = bridged.train(steps)
    weights = bridged.weights("broken")
    broken, said = bridged.train(steps, killed)
    assert bridged.weights("broken") == weights
    # Replicas that had not ended the last step, as others had, took the state too.
    taken = re.findall(r"^(.*) took over the state of (\S+) at step", said, re.MULTILINE)
    assert any(killed in names.split(", ") for names, _ in taken), said
    crossings = 0
    for names, source in taken:
        chain = [bridged.places[task] for task in (source, *names.split(", "))]
        crossings += sum(a != b for a, b in zip(chain, chain[1:]))
    assert crossings <= (broken - unbroken).bytes / STATE < crossings + 0.5, said
