"""`muster train --on kubernetes`: the job that it makes, and one that trains."""

from __future__ import annotations

import pathlib
import signal

from testbed.jobs import Jobs
from testbed.kubernetes.api import Object
from testbed.kubernetes.logs import PodLogs
from testbed.kubernetes.native_jobs import make_claim
from testbed.kubernetes.operators import Space, wait_for
from testbed.kubernetes.process_space import ProcessSpace

EXAMPLES = pathlib.Path(__file__).resolve().parents[5] / "examples"
SPEC = EXAMPLES / "clicks" / "clicks.yaml"
ON = ("--on", "kubernetes", "--image", "image", "--volume", "data:/muster-test/data")
MODEL = "/muster-test/data/model"
TRAIN = ("--train", "/muster-test/data/clicks-*.csv")


def container(space: Space, pod: str) -> Object:
    return space.pod(pod)["spec"]["containers"][0]


def test_the_job_has_the_command_the_model_and_the_volumes(
    space: Space, user: Jobs, pod_logs: PodLogs, tmp_path: pathlib.Path
) -> None:
    space.make_claim("data")
    space.start_operator()
    model = tmp_path / "m.yaml"
    model.write_text(SPEC.read_text() + "# $(HOME) and $$ stay\n")
    template = tmp_path / "pod.yaml"
    template.write_text(
        "metadata: {labels: {team: ads}}\n"
        "spec:\n"
        "  serviceAccountName: trainer\n"
        "  imagePullSecrets: [{name: pull}]\n"
        "  containers:\n"
        "  - {name: tensorflow, resources: {limits: {cpu: '2'}}, args: [none]}\n"
    )
    name = user.ok("train", model, MODEL, *TRAIN, *ON, "--workers", 2, "--ps", 1, "--seed", 3,
                   "--name", "t", "--pod-template", template, "--detach")  # fmt: skip
    assert name == "t\n"
    space.wait_pods(t_chief_0="Running", t_ps_0="Running", t_worker_0="Running")
    spec = space.pod("t-worker-0")["spec"]
    assert space.pod("t-worker-0")["metadata"]["labels"]["team"] == "ads"
    assert spec["serviceAccountName"] == "trainer" and spec["restartPolicy"] == "Never"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    worker = container(space, "t-worker-0")
    assert worker["image"] == "image" and worker["resources"]["limits"] == {"cpu": "2"}
    assert worker["command"] == ["muster", "worker", "env:MUSTER_MODEL_FILE", MODEL, *TRAIN,
                                 "--seed", "3", "--rendezvous-timeout=0"]  # fmt: skip
    assert "args" not in worker
    env = {entry["name"]: entry.get("value") for entry in worker["env"]}
    assert env["MUSTER_MODEL_FILE"] == model.read_text().replace("$", "$$")
    claims = [v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"]
              if "persistentVolumeClaim" in v]  # fmt: skip
    assert claims == ["data"]
    assert "/muster-test/data" in [mount["mountPath"] for mount in worker["volumeMounts"]]
    assert user.status("t")["model_dir"] == MODEL
    user.ok("stop", "t")


def test_a_training_is_followed_to_its_end(
    process_space: ProcessSpace, process_user: Jobs
) -> None:
    """One task: its pod runs `muster train`."""
    data = make_claim(process_space, "data")
    process_user.ok("sample", "clicks", "--rows", 2000, "--out", data / "clicks-1.csv")
    process_space.start_operator()
    result = process_user.call("train", SPEC, MODEL, *TRAIN, *ON, "--job", "t")
    assert result.returncode == 0, result.stderr + process_space.kubelet.logs()
    assert "job t succeeded" in result.stderr
    assert "step " in result.stdout
    assert (data / "model" / "checkpoint").exists()
    assert process_user.ok("logs", "t") == result.stdout
    assert process_space.pods() == {"t-chief-0": "Succeeded"}
    process_user.ok("rm", "t")
    failed = process_user.call("train", SPEC, MODEL, "--train", "/muster-test/data/none",
                               *ON, "--job", "f")  # fmt: skip
    assert failed.returncode == 1
    assert "/muster-test/data/none" in failed.stderr.splitlines()[-1]


def test_ctrl_c_leaves_a_training_that_continues(
    space: Space, user: Jobs, pod_logs: PodLogs
) -> None:
    space.make_claim("data")
    space.start_operator()
    pod_logs.write(space.name, "t-chief-0", "step 1\n")
    follower = user.start("train", SPEC, MODEL, *TRAIN, *ON, "--job", "t")
    assert follower.stdout and follower.stdout.readline() == "step 1\n"
    follower.send_signal(signal.SIGINT)
    _, errors = follower.communicate(timeout=60)
    assert follower.returncode == 1
    assert errors.splitlines()[-1] == (
        "muster: the job t continues: muster logs -f t shows it again, muster stop t ends it"
    )
    assert user.status("t")["phase"] == "active"


def test_what_pods_cannot_have_is_wrong_use(space: Space, user: Jobs) -> None:
    space.make_claim("data")

    def refuse(*arguments: object) -> str:
        result = user.call("train", *arguments)
        assert result.returncode == 2, (result.returncode, result.stderr)
        return result.stderr.splitlines()[0]

    assert "lies on no volume" in refuse(SPEC, "/other/m", *TRAIN, *ON)
    assert "which begins with /" in refuse(SPEC, MODEL, "--train", "part-*", *ON)
    assert "there is none of this name" in refuse("absent.yaml", MODEL, *TRAIN, *ON)
    assert "--image" in refuse(SPEC, MODEL, *TRAIN, "--on", "kubernetes", *ON[4:])
    assert "CLAIM:/PATH" in refuse(SPEC, MODEL, *TRAIN, *ON[:4], "--volume", "data")
    assert "--on" in refuse(SPEC, MODEL, *TRAIN, "--image", "i")
    for flag, value in (("--memory", "1Gi"), ("--cores", 2), ("--queue", "q"), ("--keytab", "k")):
        said = refuse(SPEC, MODEL, *TRAIN, *ON, flag, value)
        assert flag in said and "is for --on yarn alone" in said
        submitted = user.call("submit", "job.yaml", "--on", "kubernetes", flag, value)
        assert submitted.returncode == 2 and "is for --on yarn alone" in submitted.stderr
    absent = user.call("train", SPEC, "/x/m", *TRAIN, *ON[:4], "--volume", "lost:/x")
    assert absent.returncode == 1 and len(absent.stderr.splitlines()) == 1
    assert f"there is no claim lost in the namespace {space.name}" in absent.stderr
    assert space.api.items(space.jobs) == []


def test_a_mistake_in_a_pod_template_is_named_with_its_line(
    space: Space, user: Jobs, tmp_path: pathlib.Path
) -> None:
    space.make_claim("data")
    template = tmp_path / "pod.yaml"
    template.write_text(
        "spec:\n"
        "  containers:\n"
        "  - name: tensorflow\n"
        "    imagePulPolicy: Always\n"
    )
    refused = user.call("train", SPEC, MODEL, *TRAIN, *ON, "--pod-template", template, "--detach")
    assert refused.returncode == 1
    assert f"{template}:4: " in refused.stderr and "did you mean 'imagePullPolicy'?" in refused.stderr
    assert space.api.items(space.jobs) == []


def test_a_model_file_that_may_be_misspelt_is_told(space: Space, user: Jobs) -> None:
    space.make_claim("data")
    flags = (*TRAIN, *ON, "--detach", "--job")
    told = user.call("train", "/no/such/model.yaml", MODEL, *flags, "a")
    assert told.returncode == 0
    assert "this machine has no file /no/such/model.yaml and no volume of the pods holds it" in told.stderr
    on_volume = user.call("train", "/muster-test/data/model.yaml", MODEL, *flags, "b")
    assert on_volume.returncode == 0 and "no volume" not in on_volume.stderr


def test_the_models_text_is_read_from_a_variable(user: Jobs) -> None:
    user.ok("sample", "clicks", "--rows", 200, "--out", "clicks.csv")
    user.environment["MUSTER_MODEL_FILE"] = SPEC.read_text()
    user.ok("train", "env:MUSTER_MODEL_FILE", "m", "--train", "clicks.csv", "--quiet")
    user.environment["MUSTER_MODEL_FILE"] = "columns: 7"
    broken = user.call("train", "env:MUSTER_MODEL_FILE", "m2", "--train", "clicks.csv")
    assert broken.returncode == 1 and "env:MUSTER_MODEL_FILE:1" in broken.stderr
    unset = user.call("train", "env:NONE", "m2", "--train", "clicks.csv")
    assert unset.returncode == 1 and "env:NONE: this environment variable is not" in unset.stderr
