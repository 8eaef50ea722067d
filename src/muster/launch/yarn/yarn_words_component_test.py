"""Jobs on a real YARN in the words of those who come from TensorFlowOnYARN and TonY."""

from __future__ import annotations

import re
import sys

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.tensorflow_jobs import ENVIRONMENT, PROGRAMS

LARGE = ("--memory", "1Gi")  # TensorFlow


def test_the_roles_of_tensorflow_on_yarn(jobs: YarnJobs) -> None:
    jobs.environment |= ENVIRONMENT
    result = jobs.call(
        "run", "--on", "yarn", *LARGE, "--num_ps", 1, "--num_worker", 2, "--name", "ydl",
        "--", sys.executable, PROGRAMS / "between_graph.py", "--ps_hosts={ps_hosts}",
        "--worker_hosts={worker_hosts}", "--job_name={type}", "--task_index={index}",
        f"--model_dir={jobs.folder}/model",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + jobs.logs()
    for worker in (0, 1):
        assert f"worker {worker} is done" in result.stdout
    jobs.wait_until_nothing_runs("ydl")


def test_a_program_of_tony(jobs: YarnJobs) -> None:
    jobs.environment |= ENVIRONMENT
    result = jobs.call(
        "run", "--on", "yarn", *LARGE, "--ps", 1, "--workers", 2, "--name", "tony",
        "--", sys.executable, PROGRAMS / "tony_between_graph.py", f"--model_dir={jobs.folder}/model",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + jobs.logs()
    id = jobs.application("tony")
    for task, is_chief in (("ps 0", False), ("worker 0", True), ("worker 1", False)):
        assert f"{task} {is_chief} {id} 0 2 GANG\n" in result.stdout, result.stdout
    for worker in (0, 1):
        assert f"worker {worker} is done" in result.stdout
    jobs.wait_until_nothing_runs("tony")


def test_sessions_of_tony_are_counted(jobs: YarnJobs) -> None:
    result = jobs.call(
        "run", "--on", "yarn", "--memory", "128Mi", "--workers", 2, "--name", "sessions",
        "--restarts", 1, "--env", "JOB_NAME=mine", "--",
        "sh", "-c", "echo session $SESSION_ID of $JOB_NAME; sleep 1; [ $SESSION_ID = 1 ] && exit; "
        "[ $TASK_INDEX = 0 ] && sleep 1000; exit 1",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + jobs.logs()
    assert sorted(re.findall("session [0-9] of mine", result.stdout))[-2:] == 2 * ["session 1 of mine"]
    jobs.wait_until_nothing_runs("sessions")
