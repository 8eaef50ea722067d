"""Trainings of one model folder on two machines, where neither can look at the other's processes."""

from __future__ import annotations

import subprocess

from testbed.network import Network
from testbed.trainings import Trainings

WAIT = 150.0
ENDLESS = ("--epochs", 1_000_000, "--save-steps", 100)


class Machine:
    """Starts tasks on one of the hosts, among processes of its own."""

    def __init__(self, trainings: Trainings, cable: Network, host: str) -> None:
        self.trainings = trainings
        self.command = cable.command(host, own_processes=True)

    def start(self, job: str, incarnation: int, *flags: object) -> subprocess.Popen[str]:
        jobs = self.trainings.jobs
        return subprocess.Popen(
            [*self.command, jobs.binary, *map(str, self.trainings.flags("model", *flags))],
            env={**jobs.environment, "MUSTER_JOB": job, "MUSTER_INCARNATION": str(incarnation)},
            cwd=jobs.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


def test_the_lease_of_a_job_that_died_elsewhere_is_free_after_a_while(
    trainings: Trainings, cable: Network
) -> None:
    a, b = Machine(trainings, cable, "a"), Machine(trainings, cable, "b")
    model = trainings.jobs.folder / "model"

    first = a.start("first", 1, *ENDLESS)
    trainings.jobs.wait((model / "checkpoint").exists, "for the first")
    other = b.start("second", 1, *ENDLESS)
    _, said = other.communicate(timeout=WAIT)
    assert other.returncode == 1, said
    assert "is being trained by worker-0 of job 'first' (incarnation 1)" in said
    assert "which renews its lease" in said
    assert first.poll() is None
    first.kill()
    first.communicate(timeout=WAIT)

    # Its replacement waits for nobody. It is killed, too.
    second = b.start("first", 2, *ENDLESS)
    lease = model / "muster.lease"
    trainings.jobs.wait(lambda: '"incarnation":2' in lease.read_text(), "for the replacement")
    second.kill()
    _, said = second.communicate(timeout=WAIT)
    assert "sign of life" not in said

    last = a.start("second", 2, "--max-steps", trainings.step("model") + 100)
    _, said = last.communicate(timeout=WAIT)
    assert last.returncode == 0, said
    assert "by worker-0 of job 'first' (incarnation 2)" in said
    assert "waiting up to 60 s for a sign of life" in said
    assert not lease.exists()
