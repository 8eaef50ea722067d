"""Trainings by `muster worker` in pods, some of which die: the same bytes as on one machine."""

from __future__ import annotations

import base64
import os
import pathlib
import shutil

import numpy as np
import pytest
import yaml

from testbed import keras_checks
from testbed.jobs import Jobs
from testbed.kubernetes.native_jobs import MOUNT, NativeJobs, make_claim
from testbed.kubernetes.operators import wait_for
from testbed.kubernetes.pod_files import Image
from testbed.kubernetes.process_space import ProcessSpace
from testbed.muster import Muster
from testbed.trainings import KerasTrainings, Trainings

ON = ("--on", "kubernetes")
EVALUATOR = ("--evaluator", "--eval", f"{MOUNT}/train.csv", "--eval-throttle-secs", 0)


@pytest.fixture
def native(process_space: ProcessSpace, muster: Muster) -> NativeJobs:
    process_space.start_operator("--lease", "120")
    return NativeJobs.make(muster.binary, process_space)


def test_replicas_whose_pods_die_change_no_byte(native: NativeJobs) -> None:
    space, trainings = native.space, native.trainings
    flags = ("--epochs", 100, "--save-steps", 100)
    native.submit("j", {"Chief": 1, "Worker": 2, "Evaluator": 1}, *flags, *EVALUATOR,
                  runPolicy={"backoffLimit": 4})  # fmt: skip
    for how, task in [("kill", "worker-0"), ("kill", "chief-0"), ("delete", "worker-1"),
                      ("drain", "chief-0"), ("evict", "worker-0"), ("kill", "evaluator-0")]:  # fmt: skip
        native.wait_step("j", trainings.step("j") + 1)
        native.harm(how, f"j-{task}")
    native.wait_success("j")
    trainings.ok("unbroken", "--workers", 3, *flags)
    assert trainings.weights("j") == trainings.weights("unbroken")
    tasks = native.tasks("j")
    counts = {task: (tasks[task]["restarts"], tasks[task]["disruptions"]) for task in tasks}
    assert counts == {"chief-0": (1, 1), "worker-0": (1, 1), "worker-1": (0, 1),
                      "evaluator-0": (1, 0)}  # fmt: skip

    # What is secret is in the Secret alone.
    [secret] = space.api.items(f"{space.core}/secrets")
    assert secret["metadata"]["ownerReferences"][0]["uid"] == space.job("j")["metadata"]["uid"]
    assert "ca-key.pem" not in secret["data"] and secret["immutable"]
    objects = [space.api.items(f"{space.core}/{kind}") for kind in ("pods", "events", "services")]
    everything = f"{objects} {space.job('j')} {space.log()} {space.kubelet.logs()}"
    for text in map(base64.b64decode, secret["data"].values()):
        for line in text.decode().splitlines():
            assert line.startswith("-----") or line not in everything
    space.api.delete(f"{space.jobs}/j")
    wait_for(lambda: not space.api.items(f"{space.core}/secrets"), space.log)


def test_a_secret_that_is_deleted_is_made_anew_for_all_tasks(
    native: NativeJobs, process_user: Jobs
) -> None:
    space, trainings = native.space, native.trainings
    flags = ("--epochs", 100, "--save-steps", 100)
    native.submit("j", {"Chief": 1, "Worker": 2}, *flags, runPolicy={"backoffLimit": 4})
    native.wait_step("j", 1)
    secrets = f"{space.core}/secrets"
    [secret] = space.api.items(secrets)
    name, key = secret["metadata"]["name"], secret["data"]["data_key"]
    space.api.delete(f"{secrets}/{name}")
    space.kubelet.kill("j-worker-0")
    said = (f"the Secret {name} was deleted while the job ran: all its tasks start again with a new"
            " one")  # fmt: skip
    wait_for(lambda: f"note: {said}" in process_user.ok("status", "j", *ON), native.said)
    native.wait_success("j")
    assert ("SecretLost", said) in space.events("j")
    [new] = space.api.items(secrets)
    assert new["metadata"]["name"] == name and new["data"]["data_key"] != key
    trainings.ok("unbroken", "--workers", 3, *flags)
    assert trainings.weights("j") == trainings.weights("unbroken")
    tasks = native.tasks("j")
    assert {task: tasks[task]["restarts"] for task in tasks} == {
        "chief-0": 0, "worker-0": 1, "worker-1": 0}  # fmt: skip
    assert {task: tasks[task]["disruptions"] for task in tasks} == {
        "chief-0": 1, "worker-0": 0, "worker-1": 1}  # fmt: skip
    assert "note:" not in process_user.ok("status", "j", *ON)


def tensors(trainings: Trainings, model: str) -> dict[str, np.ndarray]:
    import tensorflow as tf

    reader = tf.train.load_checkpoint(trainings.newest(model))
    names = reader.get_variable_to_dtype_map()
    return {name: reader.get_tensor(name) for name in names if names[name] == tf.float32}


def test_a_parameter_server_whose_pod_dies_changes_no_weight(native: NativeJobs) -> None:
    trainings = native.trainings
    flags = ("--epochs", 30, "--save-steps", 100, "--strategy", "ps-sync")
    replicas = {"Chief": 1, "Worker": 2, "PS": 1, "Evaluator": 1}
    native.submit("j", replicas, *flags, *EVALUATOR)
    native.wait_step("j", 1)
    native.harm("kill", "j-ps-0")
    native.harm("drain", "j-worker-1")
    native.wait_success("j")
    trainings.ok("unbroken", "--workers", 3, "--ps", 1, *flags)
    got, wanted = tensors(trainings, "j"), tensors(trainings, "unbroken")
    assert len(wanted) > 5
    for name, value in wanted.items():
        np.testing.assert_array_equal(got[name], value, name)
    assert "Evaluated step" in native.space.kubelet.log("j-evaluator-0")


def test_workers_come_and_go_by_the_jobs_scale(native: NativeJobs) -> None:
    space, epochs = native.space, 300
    flags = ("--epochs", epochs, "--min-workers", 2, "--save-steps", 100)
    job = native.job("j", {"Chief": 1, "Worker": 1}, *flags)
    job["metadata"]["annotations"] = {"muster/workers": "1-3"}
    # A user who is not root reads the Secret by its group, and the program from the volume.
    shutil.copy(os.environ["MUSTER_BINARY"], native.trainings.jobs.folder / "muster")
    user = {"runAsUser": 12345, "runAsGroup": 12345, "fsGroup": 1234}
    for replica in job["spec"]["tfReplicaSpecs"].values():
        pod = replica["template"]["spec"]
        pod["securityContext"] = user
        pod["containers"][0]["command"][0] = f"{MOUNT}/muster"
    space.submit(job)
    native.wait_step("j", 1)
    space.api.merge(f"{space.jobs}/j/scale", {"spec": {"replicas": 9}})
    native.wait_log("j-chief-0", "with 4 replicas")
    assert sorted(space.pods()) == ["j-chief-0", "j-worker-0", "j-worker-1", "j-worker-2"]
    said = "9 workers are asked for, but muster/workers allows 3: that many run"
    wait_for(lambda: ("Note", said) in space.events("j"), space.log)
    space.api.merge(f"{space.jobs}/j/scale", {"spec": {"replicas": 1}})
    native.wait_log("j-chief-0", "with 2 replicas")
    wait_for(lambda: sorted(space.pods()) == ["j-chief-0", "j-worker-0"], native.said)
    native.wait_success("j")
    log = space.kubelet.log("j-chief-0")
    assert f"{3000 * epochs} trained, 0 dropped, 0 repeated" in log, log


def test_an_exported_keras_model_trains_in_pods(
    process_space: ProcessSpace, muster: Muster
) -> None:
    space = process_space
    space.start_operator("--lease", "120")
    jobs = Jobs(muster.binary, make_claim(space))
    made = keras_checks.make_trainings(jobs.folder / "keras", "adagrad") / "adagrad"
    jobs.environment["MUSTER_TENSORFLOW"] = os.environ["MUSTER_PYTHON_TENSORFLOW"]
    space.kubelet.images["image"].environment["MUSTER_TENSORFLOW"] = jobs.environment[
        "MUSTER_TENSORFLOW"
    ]
    native = NativeJobs(space, KerasTrainings(jobs, made))
    flags = ("--epochs", 15, "--batch-size", 20, "--save-steps", 20)
    native.submit("j", {"Chief": 1, "Worker": 1}, *flags)
    native.wait_step("j", 20)
    native.harm("kill", "j-worker-0")
    native.wait_success("j")
    native.trainings.ok("unbroken", "--workers", 2, *flags)
    assert native.trainings.weights("j") == native.trainings.weights("unbroken")


def test_an_image_of_another_version_is_refused_by_name(
    native: NativeJobs, muster: Muster, tmp_path: pathlib.Path
) -> None:
    space = native.space
    version = muster.run("--version").split()[-1].encode()
    other = version[:-1] + (b"8" if version[-1:] == b"9" else b"9")
    program = pathlib.Path(muster.binary).read_bytes()
    assert b"\0" + version + b"\0" in program
    (folder := tmp_path / "old").mkdir()
    (folder / "muster").write_bytes(program.replace(b"\0%b\0" % version, b"\0%b\0" % other))
    (folder / "muster").chmod(0o755)
    space.kubelet.images["old"] = Image(environment={"PATH": f"{folder}:{os.environ['PATH']}"})
    job = native.job("j", {"Chief": 1, "Worker": 1})
    worker = job["spec"]["tfReplicaSpecs"]["Worker"] = {
        **job["spec"]["tfReplicaSpecs"]["Worker"],
        "template": {"spec": {**job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]}},
    }
    [container] = worker["template"]["spec"]["containers"]
    worker["template"]["spec"]["containers"] = [{**container, "image": "old"}]
    space.submit(job)
    failed = space.wait_condition("j", "Failed")
    had = f"worker-0 has [version {other.decode()}], chief-0 has [version {version.decode()}]"
    cause = space.job("j")["status"]["muster"]["rootCause"]
    assert had in cause["lastLine"], f"{cause} {failed} {native.said()}"


def test_a_lack_of_memory_is_named_with_its_limit(native: NativeJobs) -> None:
    job = native.job("j", {"Chief": 1, "Worker": 1}, "--epochs", 100000,
                     runPolicy={"backoffLimit": 1})  # fmt: skip
    for replica in job["spec"]["tfReplicaSpecs"].values():
        [container] = replica["template"]["spec"]["containers"]
        container["resources"] = {"limits": {"memory": "1Mi"}}
    native.space.submit(job)
    native.space.wait_condition("j", "Failed")
    how = native.space.job("j")["status"]["muster"]["rootCause"]["how"]
    assert how == "it needed more than its limit of 1Mi of memory; exit code 137 (out of memory)"


def test_the_example_trains_as_printed(
    process_space: ProcessSpace, muster: Muster, repository: pathlib.Path
) -> None:
    space = process_space
    space.start_operator("--lease", "120")
    text = (repository / "examples/kubernetes/native.yaml").read_text()
    printed = (repository / "docs/kubernetes.md").read_text()
    assert text.split("---\n")[1] in printed
    space.kubelet.images["example/muster:1"] = space.kubelet.images["image"]
    folder = space.kubelet.claims / "training"
    (folder / "data").mkdir(parents=True)
    shutil.copy(repository / "examples/clicks/clicks.yaml", folder)
    muster.run("sample", "clicks", "--rows", 3000, "--seed", 1, "--out", folder / "clicks.csv")
    muster.run("records", "from-csv", folder / "clicks.csv", "--spec", folder / "clicks.yaml",
               "--out", folder / "data")  # fmt: skip
    for document in yaml.safe_load_all(text):
        document["metadata"]["namespace"] = space.name
        space.cluster.create(document)
    NativeJobs(space, None).wait_success("clicks")  # type: ignore[arg-type]
    assert "15000 trained, 0 dropped, 0 repeated" in space.kubelet.log("clicks-chief-0")
