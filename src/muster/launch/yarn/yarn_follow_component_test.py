"""`muster train --follow --on yarn`: containers take the segments of a real Kafka's topic together."""

from __future__ import annotations

import json

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.kafka.cluster import Kafka
from testbed.studies import write_model


def test_two_containers_follow_a_topic(jobs: YarnJobs, kafka: Kafka, topic: str) -> None:
    url = f"{jobs.yarn.hdfs.url}/tests/{topic}"
    write_model(jobs.folder)
    names, *rows = (jobs.folder / "rows.csv").read_text().splitlines()
    cells = (dict(zip(names.split(","), row.split(","), strict=True)) for row in rows)
    kafka.create(topic)
    kafka.send(topic, (json.dumps(row) for row in cells))
    follow = ("train", "model.yaml", f"{url}/model", "--train", kafka.url(topic), "--follow",
              "--on", "yarn", "--memory", "512Mi")  # fmt: skip
    # 600 rows, of which whole steps of 2 batches of 16 rows are the first segment.
    result = jobs.call(*follow, "--follow-secs", 1, "--max-steps", 18, "--workers", 2)
    assert result.returncode == 0, result.stderr + jobs.logs()
    (segment,) = json.loads(jobs.ok("fs", "cat", f"{url}/model/stream/segments-000000.json"))
    assert "ranges=0:0-576&" in segment[0]
    assert "model.ckpt-18.index" in jobs.ok("fs", "ls", f"{url}/model")
    refused = jobs.call(*follow, "--fresh-data")
    assert refused.returncode == 2 and "begin in another --model-dir" in refused.stderr
