"""A standing cluster of TensorFlow servers on a real YARN, and a client outside of it."""

from __future__ import annotations

import json
import os
import signal
import sys

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.tensorflow_jobs import ENVIRONMENT, use_servers


def test_servers_wait_for_clients(jobs: YarnJobs) -> None:
    jobs.environment |= ENVIRONMENT
    cluster = jobs.ok("launch", "--on", "yarn", "--num_ps", 1, "--num_worker", 2, "--name", "standing",
                      "--memory", "1Gi", "--python", sys.executable)  # fmt: skip
    assert {name: len(hosts) for name, hosts in json.loads(cluster).items()} == {"ps": 1, "worker": 2}
    use_servers(jobs, cluster)
    assert jobs.ok("cluster", "standing") == cluster
    assert jobs.ok("cluster", jobs.application("standing"), "--on", "yarn") == cluster

    # A lost server is replaced together with the others, which must know its new address.
    first = jobs.running("standing", "worker-1")
    os.kill(first["pid"], signal.SIGKILL)
    jobs.running("standing", "worker-1", first["incarnation"] + 1)

    def again() -> str:
        result = jobs.call("cluster", "standing")
        if result.returncode == 1:
            assert "has no cluster now" in result.stderr
        steps = [task.get("step") for task in jobs.status("standing")["tasks"]]
        return result.stdout if steps == [1, 1, 1] else ""

    use_servers(jobs, jobs.wait(again, "for the servers"))
    jobs.ok("stop", "standing")
    jobs.wait_until_nothing_runs("standing")
    said = jobs.call("cluster", "standing")
    assert said.returncode == 1 and "the job standing has no cluster now" in said.stderr


def test_servers_that_cannot_start(jobs: YarnJobs) -> None:
    result = jobs.call("launch", "--on", "yarn", "--name", "broken", "--memory", "256Mi",
                       "--python", "no-such-python")  # fmt: skip
    assert result.returncode == 1 and result.stdout == ""
    assert "no-such-python" in result.stderr
    jobs.wait_until_nothing_runs("broken")
