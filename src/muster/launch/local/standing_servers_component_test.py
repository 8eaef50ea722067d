"""A standing cluster of TensorFlow servers on this machine, and a client outside of the job."""

from __future__ import annotations

import json
import sys

from testbed.jobs import Jobs
from testbed.tensorflow_jobs import ENVIRONMENT, use_servers


def test_servers_wait_for_a_client(jobs: Jobs) -> None:
    jobs.environment |= ENVIRONMENT
    cluster = jobs.ok("launch", "--num_ps", 1, "--num_worker", 2, "--name", "standing", "--python", sys.executable)
    assert {name: len(hosts) for name, hosts in json.loads(cluster).items()} == {"ps": 1, "worker": 2}
    use_servers(jobs, cluster)
    assert jobs.ok("cluster", "standing") == cluster
    jobs.ok("stop", "standing")
    jobs.wait_nothing_runs()
    said = jobs.call("cluster", "standing")
    assert said.returncode == 1 and "the job standing has no cluster now" in said.stderr


def test_servers_that_end_at_once(jobs: Jobs) -> None:
    result = jobs.call("launch", "--name", "broken", "--python", "false", "--restarts", 0)
    assert result.returncode == 1 and result.stdout == ""
    assert "worker-0" in result.stderr and "exit code 1" in result.stderr, result.stderr
    jobs.wait_nothing_runs()
