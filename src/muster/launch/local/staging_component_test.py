"""Files and archives that a job brings into its tasks' own folders."""

from __future__ import annotations

import io
import os
import pathlib
import signal
import tarfile
import zipfile

import pytest

from testbed.jobs import Jobs


def tar(path: pathlib.Path, members: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))


def task_folder(jobs: Jobs, task: str) -> pathlib.Path:
    return jobs.home / "jobs" / "j" / "work" / task


def test_each_task_finds_what_was_staged_in_a_folder_of_its_own(jobs: Jobs) -> None:
    (jobs.folder / "code").mkdir()
    (jobs.folder / "code/main.py").write_text(
        "import pathlib, helper\n"
        "print(helper.WORD, open('other.txt').read(), open('words/a/b').read(),"
        " open('pack/c').read(), sorted(p.name for p in pathlib.Path('.').iterdir()))\n"
        "pathlib.Path('mine').touch(exist_ok=False)\n"
    )
    (jobs.folder / "code/helper.py").write_text("WORD = 'helper'\n")
    (jobs.folder / "data.txt").write_text("data")
    tar(jobs.folder / "words.tar.gz", {"a/b": "deep"})
    with zipfile.ZipFile(jobs.folder / "v2.zip", "w") as archive:
        archive.writestr("c", "zipped")
    output = jobs.ok(
        "run", "--name", "j", "--workers", 2, "--file", "code/main.py",
        "--file", jobs.folder / "code/helper.py", "--file", "data.txt#other.txt",
        "--archive", "words.tar.gz", "--archive", "v2.zip#pack", "--",
        "python3", "main.py",
    )  # fmt: skip
    names = ["helper.py", "main.py", "other.txt", "pack", "words"]
    for i in range(2):
        assert f"worker-{i} | helper data deep zipped {names}" in output
        assert (task_folder(jobs, f"worker-{i}") / "mine").exists()
    staged = jobs.home / "jobs/j/staged"
    assert {p.stat().st_mode & 0o077 for p in staged.iterdir()} == {0}
    assert not (jobs.folder / "mine").exists()


def test_a_restart_sees_what_was_there_when_the_job_began(jobs: Jobs) -> None:
    program = jobs.folder / "program.sh"
    program.write_text("#!/bin/sh\necho first; touch $MUSTER_INCARNATION; sleep 1000\n")
    program.chmod(0o755)
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j, annotations: {muster/files: '["program.sh#run"]'}}
spec:
  tfReplicaSpecs:
    Worker:
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, command: [./run]}]}}
""")
    job = jobs.detach("job.yaml")
    task = jobs.running(job, "worker-0")
    program.write_text("#!/bin/sh\necho second\n")
    mine = task_folder(jobs, "worker-0")
    jobs.wait((mine / "1").exists)
    os.kill(task["pid"], signal.SIGKILL)
    jobs.running(job, "worker-0", 2)
    jobs.wait((mine / "2").exists)
    assert (mine / "1").exists()  # the folder stays
    assert jobs.ok("logs", job) == "first\nfirst\n"
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["--file", "missing.py"], 2, ["'missing.py'", "there is no file"]),
        (["--file", "."], 2, ["no plain file"]),
        (["--file", "a.txt#x/y"], 2, ["'a.txt#x/y'", "plain file name"]),
        (["--file", "a.txt#.."], 2, ["plain file name"]),
        (["--file", "a.txt", "--file", "b.txt#a.txt"], 2, ["two are called a.txt", "PATH#NAME"]),
        (["--file", "hdfs://127.0.0.1:1/a.txt"], 2, ["'hdfs://127.0.0.1:1/a.txt'", "Connection refused"]),
        (["--archive", "a.txt"], 2, ["no archive that is known", ".zip"]),
        (["--archive", "bad.tar.gz"], 1, ["bad.tar.gz", "tar: exit code 2"]),
        (["--archive", "bad.zip"], 1, ["bad.zip", "unzip: exit code 9"]),
    ],
)
def test_what_cannot_be_staged_starts_nothing(
    jobs: Jobs, arguments: list[str], code: int, words: list[str]
) -> None:
    for name in ("a.txt", "b.txt", "bad.tar.gz", "bad.zip"):
        (jobs.folder / name).write_text("no archive")
    result = jobs.call("run", "--name", "j", *arguments, "--", "true")
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr, result.stderr
    assert not (jobs.home / "jobs/j").exists()
    jobs.wait_nothing_runs()


def test_a_program_must_be_among_what_is_staged(jobs: Jobs) -> None:
    for name in ("here.sh", "plain.txt"):
        (jobs.folder / name).write_text("#!/bin/sh\n")
    (jobs.folder / "here.sh").chmod(0o755)
    for program in ("./here.sh", "./plain.txt"):
        result = jobs.call("run", "--file", "plain.txt", "--", program)
        assert result.returncode == 2
        assert f"'{program}'" in result.stderr and "among what is staged" in result.stderr
    jobs.ok("run", "--file", "here.sh", "--", "./here.sh")


def test_a_folder_of_its_own_and_a_working_directory_exclude_each_other(jobs: Jobs) -> None:
    (jobs.folder / "a.txt").touch()
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j}
spec:
  tfReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: tensorflow, workingDir: /, command: ["true"]}]}}
""")
    result = jobs.call("run", "job.yaml", "--file", "a.txt")
    assert result.returncode == 1
    assert "Worker: workingDir /" in result.stderr and "leave workingDir out" in result.stderr


def test_an_archive_that_leads_elsewhere_writes_nothing_there(jobs: Jobs) -> None:
    tar(jobs.folder / "evil.tar.gz", {"../../../../escaped": "x"})
    result = jobs.call("run", "--name", "j", "--archive", "evil.tar.gz", "--", "true")
    assert result.returncode == 1 and "evil.tar.gz" in result.stderr
    assert not list(jobs.folder.rglob("escaped"))
