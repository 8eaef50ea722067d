"""`muster run --metrics-port`: what Prometheus and a platform read of a job, without a secret."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from testbed.jobs import Jobs
from testbed.ports import free_port

PROGRAM = (
    'echo "120 trained=1200 dropped=3" > $MUSTER_STEP_FILE; '
    "while [ ! -e go ]; do sleep 0.05; done"
)


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


def test_a_job_in_the_background_serves_its_numbers_also_after_a_restart(jobs: Jobs) -> None:
    port = free_port()
    job = jobs.detach("--workers", 1, "--metrics-port", port, "--", "sh", "-c", PROGRAM)
    jobs.running(job, "worker-0")
    wanted = f'muster_task_records_total{{job="{job}",task="worker-0",kind="trained"}} 1200\n'
    jobs.wait(lambda: wanted in get(port, "/metrics"), f"for {wanted}")
    text = get(port, "/metrics")
    assert f'muster_tasks{{job="{job}",type="worker",phase="running"}} 1\n' in text
    assert f'muster_task_restarts_total{{job="{job}",task="worker-0"}} 0\n' in text
    assert f'muster_task_step{{job="{job}",task="worker-0"}} 120\n' in text
    assert get(port, "/healthz") == "ok\n"
    for path in ("/v1/status", "/", "/v1/stop"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(port, path)
        assert refused.value.code == 404, path
    killed = jobs.kill_coordinator(job)
    jobs.wait(lambda: jobs.coordinator(job) != killed)

    def served_again() -> bool:
        try:
            return wanted in get(port, "/metrics")
        except OSError:
            return False

    jobs.wait(served_again, "for the next coordinator's metrics")
    (jobs.folder / "go").touch()
    jobs.wait_phase(job, "succeeded")
    jobs.wait_nothing_runs()


def test_a_taken_port_is_said_before_anything_starts(jobs: Jobs) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        result = jobs.call("run", "--metrics-port", port, "--", "echo", "ran")
    assert result.returncode == 1
    assert "the port of /healthz and /metrics" in result.stderr and str(port) in result.stderr
    assert "ran" not in result.stdout


def test_a_network_of_its_own_has_no_metrics(jobs: Jobs) -> None:
    result = jobs.call("run", "--isolate", "--metrics-port", 7008, "--", "true")
    assert result.returncode == 2
    assert "--metrics-port" in result.stderr
