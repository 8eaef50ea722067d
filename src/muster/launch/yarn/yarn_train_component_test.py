"""Native trainings on a real YARN, from and to HDFS: the bytes of one machine, whatever is killed."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import time

import pytest

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.hadoop.yarn_training import STEPS, Training
from testbed.muster import Muster


WORDS = """
inputs: {colour: string, y: int}
label: y
columns: {colour: {vocabulary: colour, file: words/colours.txt}}
model: {type: linear, linear: {columns: [colour]}}
train: {batch_size: 4}
"""


@pytest.fixture(scope="module")
def training(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> Training:
    return Training(muster, pathlib.Path(tmp_path_factory.mktemp("training")))


def test_two_workers_end_with_the_bytes_of_one_machine(jobs: YarnJobs, training: Training) -> None:
    url = training.put(jobs, "trained")
    result = jobs.call(*training.on_yarn(url, "trained"))
    assert result.returncode == 0, result.stderr + jobs.logs()
    assert f"step {STEPS}" in result.stdout + result.stderr
    training.check(jobs, url)
    jobs.wait_until_nothing_runs("trained")
    log = jobs.ok("logs", "trained", "chief-0")
    assert f"step {STEPS}" in log


def test_vocabulary_files_travel_with_the_model_file(jobs: YarnJobs) -> None:
    folder = jobs.folder / "own"
    (folder / "words").mkdir(parents=True)
    (folder / "words/colours.txt").write_text("red\nblue\n")
    (folder / "model.yaml").write_text(WORDS)
    (folder / "rows.csv").write_text("colour,y\n" + "red,1\nblue,0\n" * 20)
    url = f"{jobs.yarn.hdfs.url}/tests/words"
    jobs.ok("fs", "mkdir", url)
    jobs.ok("fs", "put", folder / "rows.csv", url)
    flags = ["--train", f"{url}/rows.csv", "--on", "yarn", "--memory", "256Mi", "--job", "words"]
    jobs.ok("train", "own/model.yaml", f"{url}/model", *flags)
    assert "red" in jobs.ok("fs", "cat", f"{url}/model/colour.vocabulary.txt")
    (folder / "model.yaml").write_text(WORDS.replace("words/", "../"))
    (jobs.folder / "colours.txt").write_text("red\nblue\n")
    refused = jobs.call("train", "own/model.yaml", f"{url}/other", *flags[:-1], "other").stderr
    assert "vocabulary file own/../colours.txt does not travel" in refused, refused


def test_any_process_is_killed_in_between(jobs: YarnJobs, training: Training) -> None:
    url, name = training.put(jobs, "killed"), "training-killed"
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    running = jobs.start(*training.on_yarn(url, name, "--memory", "256Mi", "--restarts", 50))
    jobs.wait(lambda: (jobs.home / "jobs" / name / "place.json").exists(), "for the job")
    jobs.wait(lambda: jobs.task(name, "chief-0").get("step", 0) > 100, "for its steps")
    for word in chance.sample(["ApplicationMaster", "slot-coordinator", "agent --bundle", "muster worker"], 4):
        found = jobs.find(name, word)
        print(word, found)
        if found:
            os.kill(chance.choice(found), signal.SIGKILL)
        time.sleep(chance.random() * 3)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, out + err + jobs.logs()
    training.check(jobs, url)
    jobs.wait_until_nothing_runs(name)


def test_predict_and_evaluate_in_parts(jobs: YarnJobs, training: Training) -> None:
    url = training.put(jobs, "parts")
    jobs.yarn.hdfs.put(training.folder / "model", f"{url}/model")
    flags = ["--on", "yarn", "--memory", "256Mi", "--workers", 2]
    data = f"{url}/train/*"
    jobs.ok("predict", f"{url}/model", "--data", data, "--out", f"{url}/scores", "--job", "scored", *flags)
    jobs.ok("predict", training.folder / "model", "--data", f"{training.folder}/train/*",
            "--out", training.folder / "scores", "--workers", 2)  # fmt: skip
    for part in sorted((training.folder / "scores").glob("part-*")):
        path = f"{url}/scores/{part.name}".removeprefix(jobs.yarn.hdfs.url)
        assert jobs.yarn.hdfs.call("GET", path, "OPEN", user="tester") == part.read_bytes()
    measured = jobs.ok("evaluate", f"{url}/model", "--data", data, "--json", "--job", "measured", *flags)
    assert measured == jobs.ok("evaluate", f"{url}/model", "--data", data, "--json", "--workers", 2)
