"""A job whose processes a provider of slots gives.

No incarnation runs twice, whichever process is killed.
"""

from __future__ import annotations

import os
import random
import signal

from testbed.jobs import DEADLINE
from testbed.slots import Slots

# Each start of a program leaves its incarnation's name.
JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: j
  annotations:
    muster/restartBudget: '{"perTask": 50, "perJob": 100, "window": "1h", "backoff": "0.1s"}'
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: tensorflow
            command:
            - sh
            - -c
            - >-
              echo $MUSTER_TASK.$MUSTER_INCARNATION >> starts;
              while [ ! -e go ]; do sleep 0.05; done
"""


def once(slots: Slots) -> None:
    started = slots.started()
    assert len(started) == len(set(started)), started


def test_a_job_runs_in_slots_and_ends_with_its_provider(slots: Slots) -> None:
    slots.begin(JOB)
    running = slots.running()
    expected = sorted(f"{t}.{i}" for t, (i, _) in running.items())
    # A task counts as running before its shell has written its line.
    slots.jobs.wait(lambda: sorted(slots.started()) == expected, "for their lines")
    slots.end()
    once(slots)


def test_a_provider_that_is_killed_leaves_its_tasks_running_for_the_next(slots: Slots) -> None:
    slots.begin(JOB)
    before = slots.running()
    slots.kill_provider()
    slots.start_provider()
    os.kill(before["worker-0"][1], signal.SIGKILL)  # to see that the next one starts agents
    slots.jobs.wait(lambda: slots.running()["worker-0"][0] > before["worker-0"][0])
    assert slots.running()["worker-1"] == before["worker-1"]
    slots.end()
    once(slots)


def test_a_coordinator_that_is_killed_adopts_what_runs(slots: Slots) -> None:
    slots.begin(JOB)
    before = slots.running()
    slots.kill_coordinator()
    slots.start_coordinator()
    assert slots.running() == before
    slots.end()
    once(slots)
    assert len(slots.started()) == 2


def test_both_are_killed_at_once(slots: Slots) -> None:
    slots.begin(JOB)
    before = slots.running()
    slots.kill_provider()
    slots.kill_coordinator()
    slots.start_coordinator()
    slots.start_provider()
    assert slots.running() == before
    slots.end()
    once(slots)


def test_an_older_provider_that_wakes_up_starts_nothing_and_ends(slots: Slots) -> None:
    slots.begin(JOB)
    before = slots.running()
    old = slots.providers[-1]
    os.kill(old.pid, signal.SIGSTOP)
    slots.start_provider()
    os.kill(before["worker-0"][1], signal.SIGKILL)
    slots.jobs.wait(lambda: slots.running()["worker-0"][0] > before["worker-0"][0])
    os.kill(old.pid, signal.SIGCONT)
    assert old.wait(timeout=DEADLINE) == 0
    after = slots.running()
    assert after["worker-1"] == before["worker-1"]
    slots.end()
    once(slots)


def test_no_incarnation_runs_twice_whichever_process_is_killed(slots: Slots) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    slots.begin(JOB)
    slots.running()
    for _ in range(8):
        what = chance.choice(["provider", "coordinator", "agent", "task"])
        if what == "provider":
            slots.kill_provider()
            slots.start_provider()
        elif what == "coordinator":
            slots.kill_coordinator()
            slots.start_coordinator()
        else:
            slots.kill_one(what, chance)
        if chance.random() < 0.5:
            slots.running()
    slots.running()
    slots.end()
    once(slots)
