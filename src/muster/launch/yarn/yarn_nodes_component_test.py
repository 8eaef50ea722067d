"""Where a real YARN whose nodes are not alike runs the tasks of a job, and what it is asked for them."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import pytest

from testbed.daemons import run
from testbed.hadoop.cluster import Hdfs
from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.hadoop.yarn_kinds import GPUS, LABEL, UnlikeYarn

SMALL, LARGE = "localhost", "127.0.0.2"  # the hosts of the two nodes, as Hadoop calls them


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnlikeYarn]:
    for hdfs in run(Hdfs(pathlib.Path(tmp_path_factory.mktemp("unlike")), data_nodes=1)):
        yield from run(UnlikeYarn(hdfs))


def hosts(jobs: YarnJobs, name: str, *flags: object, memory: str = "128Mi") -> dict[str, str]:
    """Where the tasks of a job run, by their names."""
    job = jobs.ok("run", "--on", "yarn", "--detach", "--memory", memory, "--name", name, *flags,
                  "--", "sleep", "1000").strip()  # fmt: skip
    count = jobs.wait(lambda: len(jobs.status(job)["tasks"]), "for the coordinator")

    def look() -> dict[str, str] | None:
        tasks = jobs.status(job)["tasks"]
        if len(tasks) < count or any(t["phase"] != "running" or not t.get("place") for t in tasks):
            return None
        return {t["task"]: t["place"].split(":")[0] for t in tasks}

    found = jobs.wait(look, "for all tasks to run")
    jobs.ok("stop", job)
    jobs.wait_until_nothing_runs(job)
    return found


def test_spread(jobs: YarnJobs) -> None:
    found = list(hosts(jobs, "spread", "--workers", 4, "--placement", "spread").values())
    assert found.count(SMALL) == found.count(LARGE) == 2, found


def test_together(jobs: YarnJobs) -> None:
    found = hosts(jobs, "together", "--workers", 4, "--placement", "together")
    assert len(set(found.values())) == 1, found


def test_together_on_more_hosts_than_one(jobs: YarnJobs) -> None:
    """Eight tasks of 1 GiB fit neither on one host nor on the other."""
    found = hosts(jobs, "overflow", "--workers", 8, "--placement", "together", memory="1Gi")
    assert set(found.values()) == {SMALL, LARGE}, found


def test_spread_where_one_host_is_full(jobs: YarnJobs) -> None:
    found = list(hosts(jobs, "full", "--workers", 5, "--placement", "spread", memory="900Mi").values())
    assert found.count(SMALL) <= 2 and found.count(LARGE) >= 3, found


def test_a_label_of_all_and_of_one_role(jobs: YarnJobs) -> None:
    found = hosts(jobs, "labelled", "--workers", 2, "--ps", 1, "--node-label", LABEL)
    assert set(found.values()) == {LARGE}
    assert jobs.app("labelled")["amHostHttpAddress"].startswith(LARGE)
    found = hosts(jobs, "of-role", "--workers", 2, "--ps", 1, "--node-label", f"worker={LABEL}")
    assert found["worker-0"] == found["worker-1"] == LARGE


def test_tasks_go_where_there_is_room(jobs: YarnJobs) -> None:
    found = hosts(jobs, "large", "--workers", 2, memory="3Gi")
    assert set(found.values()) == {LARGE}


def test_a_task_that_takes_more_memory_is_told_once(jobs: YarnJobs) -> None:
    program = "import time; x = b'x' * (300 << 20); time.sleep(300)"
    result = jobs.call("run", "--on", "yarn", "--memory", "64Mi", "--restarts", 0, "--name", "greedy",
                       "--", "python3", "-c", program)  # fmt: skip
    assert result.returncode == 1, result.stderr
    told = [line for line in result.stderr.splitlines() if "more memory" in line]
    assert len(told) == 1, result.stderr
    assert told[0].startswith("muster: job greedy failed in ") and "of 64 MB physical memory used" in told[0]
    assert "give it more by --memory" in told[0] and "nothing was heard" not in told[0]
    jobs.wait_until_nothing_runs("greedy")


JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: NAME}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - name: tensorflow
            image: example/any
            command: [sleep, "1000"]
            resources: {limits: {memory: 128Mi, nvidia.com/gpu: COUNT}}
"""


def test_gpus_are_asked_for(jobs: YarnJobs, yarn: UnlikeYarn) -> None:
    (jobs.folder / "job.yaml").write_text(JOB.replace("NAME", "gpus").replace("COUNT", "1"))
    jobs.ok("submit", "job.yaml", "--on", "yarn")
    task = jobs.running("gpus", "worker-0")
    assert task["place"].startswith(LARGE)
    assert yarn.used_gpus() == 1
    jobs.ok("stop", "gpus")
    jobs.wait(lambda: yarn.used_gpus() == 0, "for the GPU to be given back")


def test_more_gpus_than_a_node_has(jobs: YarnJobs, yarn: UnlikeYarn) -> None:
    jobs.wait(lambda: yarn.free_gpus() == GPUS, "for the node with GPUs")
    (jobs.folder / "job.yaml").write_text(JOB.replace("NAME", "many").replace("COUNT", "3"))
    result = jobs.call("submit", "job.yaml", "--on", "yarn")
    assert result.returncode == 1, result.stderr
    ignored, error = result.stderr.splitlines()
    assert ignored == "muster: not used on YARN: image"
    assert f"wants 3 GPUs (yarn.io/gpu), and a container of this cluster has at most {GPUS}" in error


def test_each_role_has_its_image(jobs: YarnJobs) -> None:
    """As the launch context of its container says; no Docker runs here."""
    result = jobs.call(
        "run", "--on", "yarn", "--memory", "128Mi", "--name", "images", "--workers", 1, "--ps", 1, "--chief",
        "--image", "example/any:2", "--image", "worker=registry.example/train:1", "--", "sh", "-c",
        "echo runs $YARN_CONTAINER_RUNTIME_TYPE $YARN_CONTAINER_RUNTIME_DOCKER_IMAGE",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + jobs.logs()
    found = dict(re.findall(r"^(\S+) +\| runs (.*)$", result.stdout, re.MULTILINE))
    assert found == {
        "chief-0": "docker example/any:2", "ps-0": "docker example/any:2",
        "worker-0": "docker registry.example/train:1",
    }  # fmt: skip


def test_a_role_that_does_not_exist(jobs: YarnJobs) -> None:
    for flag in ("--image", "--node-label"):
        result = jobs.call("run", "--on", "yarn", flag, "boss=x", "--name", "bad", "--", "true")
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
        assert "'boss' is no role: chief, evaluator, master, ps or worker" in result.stderr
