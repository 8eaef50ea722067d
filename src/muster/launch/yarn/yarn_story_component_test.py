"""The whole way of a team with a Hadoop cluster: tables from CSV to TFRecord on HDFS, five tasks on YARN
that train, the model with its events and a SavedModel on HDFS, and five that score it with keys."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import signal
from typing import Callable

import pytest

from testbed.hadoop.yarn_jobs import YarnJobs

STEPS, WORKERS = 600, 5
TABLES = {"titanic": "titanic/train.csv", "adult": "adult/adult.csv"}
FILES = [f"model.ckpt-{STEPS}.{suffix}" for suffix in ("index", "data-00000-of-00001")]


class Story:
    """One example, with its table as records on the HDFS."""

    def __init__(self, jobs: YarnJobs, name: str, table: pathlib.Path, repository: pathlib.Path):
        self.jobs, self.name = jobs, name
        self.spec = repository / f"examples/{name}/{name}.yaml"
        self.url = f"{jobs.yarn.hdfs.url}/tests/story-{name}-{jobs.folder.name}"
        jobs.ok("records", "from-csv", table, "--spec", self.spec, "--out", f"{self.url}/data", "--shards", WORKERS)

    def train(self, model: str, *more: object) -> list[object]:
        return ["train", self.spec, model, "--train", f"{self.url}/data/*", "--workers", WORKERS,
                "--max-steps", STEPS, "--save-steps", 50, *more]  # fmt: skip

    def on_yarn(self, job: str, *more: object) -> list[object]:
        return ["--on", "yarn", "--memory", "256Mi", "--job", job, *more]

    def get(self, path: str) -> bytes:
        """A file below the example's folder."""
        full = f"{self.url.removeprefix(self.jobs.yarn.hdfs.url)}/{path}"
        return self.jobs.yarn.hdfs.call("GET", full, "OPEN", user="tester")

    def list(self, path: str) -> list[str]:
        listed = self.jobs.ok("fs", "ls", "--json", f"{self.url}/{path}").splitlines()
        return [json.loads(line)["path"].rstrip("/").rpartition("/")[2] for line in listed]


@pytest.fixture(params=TABLES)
def story(
    jobs: YarnJobs, repository: pathlib.Path, real_data: Callable[[str], pathlib.Path],
    request: pytest.FixtureRequest,
) -> Story:  # fmt: skip
    return Story(jobs, request.param, real_data(TABLES[request.param]), repository)


def test_from_the_table_to_scores(story: Story) -> None:
    jobs, name = story.jobs, story.name
    assert len([part for part in story.list("data") if part.startswith("part-")]) == WORKERS
    jobs.ok(*story.train(str(jobs.folder / "model")))  # what it must end with, on this machine
    result = jobs.call(*story.train(f"{story.url}/model", *story.on_yarn(name)))
    assert result.returncode == 0, result.stderr + jobs.logs()
    for file in FILES:
        assert story.get(f"model/{file}") == (jobs.folder / "model" / file).read_bytes(), file
    check_events(story)
    check_saved_model(story)

    running = jobs.start(*story.train(f"{story.url}/again", *story.on_yarn("again", "--restarts", 20)))
    jobs.wait(lambda: (jobs.home / "jobs/again/place.json").exists(), "for the job")
    jobs.wait(lambda: jobs.task("again", "chief-0").get("step", 0) > 50, "for its steps")
    os.kill(jobs.running("again", "worker-1")["pid"], signal.SIGKILL)
    out, err = running.communicate(timeout=jobs.call_seconds)
    assert running.returncode == 0, out + err + jobs.logs()
    assert jobs.task("again", "worker-1")["restarts"] > 0, jobs.status("again")
    for file in FILES:
        assert story.get(f"again/{file}") == story.get(f"model/{file}"), file

    jobs.ok("predict", f"{story.url}/model", "--data", f"{story.url}/data/*", "--out", f"{story.url}/scores",
            "--workers", WORKERS, *story.on_yarn("scored"))  # fmt: skip
    jobs.ok("predict", jobs.folder / "model", "--data", f"{story.url}/data/*", "--out", "scores.csv")
    expected = list(csv.reader(io.StringIO((jobs.folder / "scores.csv").read_text())))
    parts = sorted(part for part in story.list("scores") if part.startswith("part-"))
    scored = [row for part in parts for row in csv.reader(io.StringIO(story.get(f"scores/{part}").decode()))]
    head = expected[0]
    assert scored[0] == head and (name != "titanic" or head[0] == "PassengerId")
    assert [row for row in scored if row != head] == expected[1:]
    for job in (name, "again", "scored"):
        jobs.wait_until_nothing_runs(job)


def check_events(story: Story) -> None:
    import tensorflow as tf

    (file,) = [name for name in story.list("model") if name.startswith("events.out.tfevents")]
    path = story.jobs.folder / file
    path.write_bytes(story.get(f"model/{file}"))
    events = tf.compat.v1.train.summary_iterator(str(path))
    tags = {(value.tag, event.step) for event in events for value in event.summary.value}
    assert any("loss" in tag for tag, step in tags), tags


def check_saved_model(story: Story) -> None:
    import tensorflow as tf

    folder = story.jobs.folder / "served"
    folder.mkdir()
    story.jobs.ok("export", f"{story.url}/model", "--out", f"{story.url}/served/1")
    story.jobs.ok("fs", "get", f"{story.url}/served/1", folder)
    model = tf.saved_model.load(str(folder / "1"))
    assert "serving_default" in model.signatures
