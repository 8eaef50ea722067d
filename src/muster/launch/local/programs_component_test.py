"""Real TensorFlow programs, unchanged, under `muster run`, each to its good end."""

from __future__ import annotations

import re
import subprocess

from testbed.tensorflow_jobs import DEADLINE, PROGRAMS, TensorFlowJobs, ended_by_itself


def test_estimator_wide_deep_with_every_role(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--chief", "--workers", 2, "--ps", 1, "--evaluator", "--expect", "estimator",
        *run.command(run.old, "wide_deep.py", "--model-dir", run.model, "--max-steps", 40),
    )  # fmt: skip
    tasks = run.wait_success(job)
    for name in ("chief-0", "worker-0", "worker-1", "evaluator-0"):
        assert ended_by_itself(tasks[name]), tasks[name]
        assert f"{name.replace('-', ' ')} is done" in run.log(job, name)
    assert tasks["ps-0"]["stop_reason"] == "the job has succeeded"
    assert "Exiting evaluation" in run.log(job, "evaluator-0")
    assert "model.ckpt-4" in (run.model / "checkpoint").read_text()
    assert list(run.model.glob("eval/events.out.*"))


def test_an_evaluator_is_stopped_when_it_has_evaluated_the_last_checkpoint(
    tensorflow_jobs: TensorFlowJobs,
) -> None:
    run = tensorflow_jobs
    job = run.start(  # The data end long before the last step that the evaluator waits for.
        "--chief", "--evaluator", "--finish-timeout", "3s",
        *run.command(
            run.old, "wide_deep.py", "--model-dir", run.model,
            "--max-steps", 1_000_000, "--endless", 0, "--eval-gate", run.gate,
        ),
    )  # fmt: skip
    waits = "evaluator-0 to finish its evaluations"
    run.wait(lambda: run.jobs.status(job).get("waiting_for") == waits, "for the training's end")
    assert not list(run.model.glob("eval/events.out.*"))
    run.open_gate()
    tasks = run.wait_success(job)
    assert ended_by_itself(tasks["chief-0"])
    assert "chief 0 is done" in run.log(job, "chief-0")  # its TF_CONFIG said so
    assert list(run.model.glob("eval/events.out.*"))
    assert "still ran 3s after the job had succeeded" in tasks["evaluator-0"]["stop_reason"]
    assert "still ran 3s after the job had succeeded" in run.jobs.ok("status", job)


def test_estimator_that_makes_tf_config_from_flags(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--workers", 2, "--ps", 1,
        *run.command(
            run.old, "estimator_flags.py", "--ps-hosts", "{ps_hosts}",
            "--worker-hosts", "{worker_hosts}", "--worker-type", "{type}",
            "--worker-index", "{index}", "--model-dir", run.model,
        ),
    )  # fmt: skip
    tasks = run.wait_success(job)
    assert ended_by_itself(tasks["worker-0"]) and ended_by_itself(tasks["worker-1"])
    assert "chief 0 is done" in run.log(job, "worker-0")
    assert "worker 0 is done" in run.log(job, "worker-1")


def test_between_graph_program(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--workers", 2, "--ps", 1,
        *run.command(
            run.old, "between_graph.py", "--ps_hosts", "{ps_hosts}",
            "--worker_hosts={worker_hosts}", "--job_name={type}", "--task_index={index}",
            "--model_dir", run.model,
        ),
    )  # fmt: skip
    tasks = run.wait_success(job)
    for index in range(2):
        assert ended_by_itself(tasks[f"worker-{index}"])
        assert f"worker {index} is done" in run.log(job, f"worker-{index}")
    assert tasks["ps-0"]["stop_reason"] == "the job has succeeded"


def test_multi_worker_mirrored_loop(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--workers", 2, "--expect", "mwms",
        *run.command(run.current, "mirrored_loop.py", "--model-dir", run.model),
    )  # fmt: skip
    tasks = run.wait_success(job)
    losses = set()
    for index in range(2):
        assert ended_by_itself(tasks[f"worker-{index}"])
        log = run.log(job, f"worker-{index}")
        assert "begins at step 0 of 30" in log
        losses.add(log.partition(f"worker {index} is done at step 30, ")[2].strip())
    assert len(losses) == 1  # reduced over both


def test_cluster_coordinator(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--chief", "--workers", 2, "--ps", 1, "--expect", "psv2",
        *run.command(run.current, "coordinator.py"),
    )  # fmt: skip
    tasks = run.wait_success(job)
    assert ended_by_itself(tasks["chief-0"])
    assert "the chief is done" in run.log(job, "chief-0")
    assert all(task["restarts"] == 0 for task in tasks.values())


def test_a_client_of_a_standing_cluster(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start("--workers", 2, "--ps", 1, *run.command(run.current, "coordinator.py"))
    for task in ("worker-0", "worker-1", "ps-0"):
        run.wait_line(job, task, "serves")
    spec = run.jobs.folder / "cluster.json"
    spec.write_text(run.jobs.ok("spec", job))
    client = subprocess.run(
        [run.current, PROGRAMS / "cluster_client.py", spec], env=run.jobs.environment,
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert client.returncode == 0, client.stderr
    assert "the client is done" in client.stdout
    assert all(task["phase"] == "running" for task in run.jobs.status(job)["tasks"])
    run.jobs.ok("stop", job)
    run.jobs.wait_nothing_runs()


def test_mnist_of_a_v1alpha1_manifest(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    template = f"""
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - name: tensorflow
            image: example/mnist:1
            command: ["{run.current}", "{PROGRAMS}/mnist.py", "--log_dir={run.model}"]"""
    (run.jobs.folder / "mnist.yaml").write_text(f"""
apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {{name: mnist}}
spec:
  replicaSpecs:
    - replicas: 1
      tfReplicaType: MASTER{template}
    - replicas: 2
      tfReplicaType: WORKER{template}
    - replicas: 1
      tfReplicaType: PS{template}
""")
    job = run.start("mnist.yaml")
    assert job == "mnist"
    tasks = run.wait_success(job)
    for name in ("master-0", "worker-0", "worker-1"):
        assert ended_by_itself(tasks[name])
        assert f"{name.replace('-', ' ')} is done" in run.log(job, name)
    accuracy = re.search(r"^accuracy (\S+)$", run.log(job, "master-0"), re.MULTILINE)
    assert accuracy and float(accuracy[1]) > 0.9
