"""`muster tune --on yarn`: each trial is a job on a real YARN, with its model folder on HDFS."""

from __future__ import annotations

import json
import pathlib

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.studies import read_trials, write_model

SEARCH = """
model: model.yaml
train: URL/rows.csv
eval: URL/rows.csv
flags: [--epochs, "2"]
space:
  model.dnn.optimizer.adagrad.learning_rate: {loguniform: [0.001, 1]}
metric: {maximize: auc}
sampler: random
budget: {trials: 2}
"""


def test_the_best_model_of_a_study_on_yarn_is_exported(jobs: YarnJobs) -> None:
    url = f"{jobs.yarn.hdfs.url}/tests/tune-{jobs.folder.name}"
    write_model(jobs.folder)
    jobs.ok("fs", "mkdir", url)
    jobs.ok("fs", "put", "rows.csv", url)
    (jobs.folder / "search.yaml").write_text(SEARCH.replace("URL", url))
    said = jobs.ok("tune", "search.yaml", "--parallel", 2, "--on", "yarn", "--memory", "512Mi",
                   "--model-dir", f"{url}/models", "--json")  # fmt: skip
    *_, study = [json.loads(line) for line in said.splitlines()]
    there = read_trials(jobs.folder / "search-study")
    assert [trial["ends"][0]["state"] for trial in there] == ["complete"] * 2
    assert study["model_dir"].startswith(f"{url}/models/search-study-")
    assert (pathlib.Path(jobs.folder) / study["saved_model"] / "saved_model.pb").exists()
    assert jobs.ok("list") == ""
    evaluated = jobs.ok("evaluate", study["model_dir"], "--data", f"{url}/rows.csv", "--json")
    assert json.loads(evaluated)["auc"] == study["best"]["auc"]
    (jobs.folder / "local.yaml").write_text(SEARCH.replace("URL/", ""))
    jobs.ok("tune", "local.yaml")
    here = read_trials(jobs.folder / "local-study")
    assert [trial["point"] for trial in here] == [trial["point"] for trial in there]
    for one, other in zip(here, there, strict=True):
        assert abs(one["ends"][0]["value"] - other["ends"][0]["value"]) < 1e-6
