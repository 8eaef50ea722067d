"""A native training that tests run on a YARN, and what it must end with."""

from __future__ import annotations

import pathlib

from testbed.click_training import MODEL
from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.muster import Muster

STEPS, FILES = 2000, ("data-00000-of-00001", "index")


class Training:
    """Two workers on 20,000 clicks. `folder` has the model file, the data, and what two workers of
    this machine end with."""

    def __init__(self, muster: Muster, folder: pathlib.Path):
        self.folder = folder
        (folder / "model.yaml").write_text(MODEL)
        muster.run("sample", "clicks", "--rows", 20_000, "--out", folder / "train.csv")
        muster.run("records", "from-csv", folder / "train.csv", "--spec", folder / "model.yaml",
                   "--out", folder / "train", "--shards", 4)  # fmt: skip
        muster.run("train", *self.flags(f"{folder}/train/*", str(folder / "model")))

    def flags(self, data: str, model: str) -> list[object]:
        return [self.folder / "model.yaml", model, "--train", data, "--epochs", 10,
                "--max-steps", STEPS, "--save-steps", 100, "--workers", 2]  # fmt: skip

    def put(self, jobs: YarnJobs, name: str) -> str:
        """Makes a folder of that name on the HDFS with the data, and returns its URL."""
        url = f"{jobs.yarn.hdfs.url}/tests/{name}"
        jobs.ok("records", "from-csv", self.folder / "train.csv", "--spec", self.folder / "model.yaml",
                "--out", f"{url}/train", "--shards", 4)  # fmt: skip
        return url

    def on_yarn(self, url: str, name: str, *more: object) -> list[object]:
        """The command line of the training in such a folder."""
        return ["train", *self.flags(f"{url}/train/*", f"{url}/model"), "--on", "yarn", "--job", name,
                *(more or ("--memory", "256Mi"))]  # fmt: skip

    def check(self, jobs: YarnJobs, url: str) -> None:
        """The model folder has the bytes of the training on this machine."""
        path = url.removeprefix(jobs.yarn.hdfs.url)
        for suffix in FILES:
            name = f"model/model.ckpt-{STEPS}.{suffix}"
            ours = jobs.yarn.hdfs.call("GET", f"{path}/{name}", "OPEN", user="tester")
            assert ours == (self.folder / name).read_bytes(), suffix
