"""The same TFJobs through Kubeflow's controller and Muster's operator, on one API server."""

from __future__ import annotations

import os
import pathlib
import re
import time

import pytest

from testbed.kubernetes.api import ApiError
from testbed.kubernetes.cluster import Cluster
from testbed.kubernetes.conformance.differences import Difference, compare, judge
from testbed.kubernetes.conformance.jobs import HERE as CONFORMANCE
from testbed.kubernetes.conformance.jobs import Case, make_job, read, read_cases
from testbed.kubernetes.conformance.sides import Side
from testbed.kubernetes.operators import Space, start_muster, stop_process, wait_for
from testbed.kubernetes.peer import UNLIMITED, start_peer, validate


def run_steps(sides: list[Side], cases: list[Case]) -> list[Difference]:
    differences: list[Difference] = []
    for step in range(1 + max(len(case.steps) for case in cases)):
        if step > 0:
            for side in sides:
                side.take_step(step - 1)
            waits = [case.steps[step - 1].get("wait", 0) for case in cases if step <= len(case.steps)]
            time.sleep(max(waits))
        for side in sides:
            side.rest()
        muster, kubeflow = (side.record() for side in sides)
        if step == 0 and sides[0].groups:
            assert all("podgroup/spec/minMember" in muster[case.name] for case in cases)
        for case in cases:
            if step <= len(case.steps):
                differences += compare(case.name, str(step), muster[case.name], kubeflow[case.name])
    muster, kubeflow = (side.events() for side in sides)
    for case in cases:
        differences += compare(case.name, "end", muster[case.name], kubeflow[case.name])
    return differences


def conform(
    cluster: Cluster, folder: pathlib.Path, name: str, flags: tuple[str, ...] = (), groups: str = ""
) -> list[Difference]:
    """In the cases of NAME.yaml."""
    cases = read_cases(f"{name}.yaml")
    space = re.sub("[^a-z].*", "", groups.removeprefix("scheduling.")) + name
    ours, theirs = (
        Side(cluster, f"{side}-{space}", cases, groups) for side in ("muster", "kubeflow")
    )
    for side in (ours, theirs):
        side.submit()
    processes = [
        start_muster(cluster, ours.namespace, folder / "muster.log", *flags),
        start_peer(cluster, theirs.namespace, folder / "kubeflow.log", *UNLIMITED, *flags),
    ]
    try:
        differences = run_steps([ours, theirs], cases)
    finally:
        for process in processes:
            stop_process(process)
        ours.kubelet.stop()
        theirs.kubelet.stop()
    if kept := os.environ.get("MUSTER_DIFFERENCES"):  # a folder, to write the lists from
        text = "".join(f"{each}\n" for each in differences)
        (pathlib.Path(kept) / f"{space}.txt").write_text(text)
    return differences


def check(differences: list[Difference], *lists: str) -> None:
    wrong = judge(differences, *(f"{name}-differences.yaml" for name in lists))
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:100])


def test_jobs_run_as_in_kubeflow(installed: Cluster, tmp_path: pathlib.Path) -> None:
    assert len(read_cases("cases.yaml")) >= 60
    check(conform(installed, tmp_path, "cases"), "common", "cases")


@pytest.mark.parametrize(
    "scheduler, groups",
    [("volcano", "scheduling.volcano.sh/v1beta1"), ("plugins", "scheduling.x-k8s.io/v1alpha1")],
    ids=["volcano", "scheduler-plugins"],
)
def test_gangs_run_as_in_kubeflow(
    pod_groups: Cluster, tmp_path: pathlib.Path, scheduler: str, groups: str
) -> None:
    flags = ("--gang-scheduler-name", scheduler)
    differences = conform(pod_groups, tmp_path, "gangs", flags, groups)
    check(differences, "common", "gangs", *(["volcano"] if scheduler == "volcano" else []))


@pytest.fixture(scope="module")
def pod_groups(installed: Cluster) -> Cluster:
    """The API server with both kinds of PodGroup."""
    installed.apply(CONFORMANCE / "podgroups.yaml")
    for group in ("scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"):
        wait_for(lambda: is_served(installed, f"/apis/{group}/podgroups"), f"no {group}")
    return installed


def is_served(cluster: Cluster, path: str) -> bool:
    try:
        return cluster.api.find(path) is not None
    except ApiError:  # not yet
        return False


def test_what_kubeflow_refuses_is_refused(space: Space) -> None:
    cases = read("invalid.yaml")
    jobs = [make_job(name, case) for name, case in cases.items()]
    refusals = validate(jobs)
    space.start_operator()
    for job, (name, case), refusal in zip(jobs, cases.items(), refusals):
        assert refusal, f"Kubeflow takes {name}"
        if case.get("at") == "status":
            space.submit(job)
            said = space.wait_condition(job["metadata"]["name"], "Failed")["message"]
        else:
            with pytest.raises(ApiError) as error:
                space.submit(job)
            assert error.value.code in (400, 422)
            said = str(error.value)
        assert case["muster"] in said, f"{name}: {said}; Kubeflow says {refusal}"
