"""Training that follows a topic of a real Kafka as it grows: each record once, whatever is killed."""

from __future__ import annotations

import json
import signal

from testbed.kafka.clicks import fail, files, fill, train, values, weights
from testbed.kafka.followed import FOLLOW, offsets, segments, wait_for_segments, wait_for_step
from testbed.held_back import is_held_back
from testbed.trainings import last_checkpoint
from testbed.waiting import wait

ONCE = ("--no-shuffle", "--epochs", 1)


def test_what_comes_is_trained_once_with_the_bytes_of_a_bounded_training(
    muster, kafka, topic, local, tmp_path, follow
) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    run = follow("f", kafka.url(topic), "--no-shuffle", "--save-secs", 1)
    wait(lambda: "Waiting for the first records" in run.text(), "the note")
    for count, begin, end in ((1, 0, 1000), (2, 1000, 1050), (3, 1050, 3050)):
        kafka.send(topic, rows[begin:end])
        wait_for_segments(run, tmp_path / "f", count)
        wait_for_step(run, tmp_path / "f", end // 50)  # saved while it waits for more
    code, said = run.stop()
    assert code == 143
    assert said["records"] == {"trained": 3050, "dropped": 0, "repeated": 0}
    assert said["interrupted"] and said["step"] == 61
    muster.run(*train(local, tmp_path / "k", f"{kafka.url(topic)}?ranges=0:0-3050", *ONCE))
    assert weights(tmp_path / "f") == weights(tmp_path / "k")


def test_it_stops_before_the_first_record(kafka, topic, tmp_path, follow) -> None:
    kafka.create(topic)
    run = follow("m", kafka.url(topic))
    wait(lambda: "Waiting for the first records" in run.text(), "the note")
    assert run.stop()[0] == 143
    assert not (tmp_path / "m" / "stream").exists()


def test_a_killed_training_continues_at_the_record(muster, kafka, topic, local, tmp_path, follow) -> None:
    fill(kafka, topic, local, "jsonl")
    flags = ("--save-steps", 7)
    run = follow("k", kafka.url(topic), *flags)
    wait_for_step(run, tmp_path / "k", 14)
    run.kill()
    kafka.send(topic, values(local, "jsonl", 0)[:1020], 1)
    run = follow("k", kafka.url(topic), *flags)
    wait_for_segments(run, tmp_path / "k", 2)
    run.kill()
    kafka.send(topic, values(local, "jsonl", 0)[:10], 2)
    run = follow("k", kafka.url(topic), *flags)
    wait_for_segments(run, tmp_path / "k", 3)
    wait(lambda: '"lag":0' in run.text(), f"the end of the topic: {run.text()}")
    code, said = run.stop(signal.SIGINT)
    assert code == 1
    assert said["records"] == {"trained": 13_030, "dropped": 0, "repeated": 0}
    # Another training with the same segments, which nothing interrupts.
    record = (tmp_path / "k" / "stream" / "segments-000000.json").read_text()
    (tmp_path / "whole" / "stream").mkdir(parents=True)
    (tmp_path / "whole" / "stream" / "segments-000000.json").write_text(record)
    run = follow("whole", kafka.url(topic), *flags)
    wait(lambda: '"lag":0' in run.text(), f"the end of the topic: {run.text()}")
    assert run.stop()[1]["records"] == said["records"]
    assert last_checkpoint(tmp_path / "k") == last_checkpoint(tmp_path / "whole")


def test_new_partitions_are_in_the_next_segment(kafka, topic, local, tmp_path, follow) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    kafka.send(topic, rows[:500])
    run = follow("m", kafka.url(topic))
    wait_for_segments(run, tmp_path / "m", 1)
    kafka.add_partitions(topic, 2)
    kafka.send(topic, rows[500:600], 1)
    kafka.send(topic, rows[600:650], 0)
    wait(lambda: '"examples":650,' in run.text(), f"650 records: {run.text()}")
    assert ",1:0-" not in segments(tmp_path / "m")[0][0]
    assert ",1:0-" in segments(tmp_path / "m")[1][0]
    assert sum(map(offsets, segments(tmp_path / "m"))) == 650
    assert run.stop()[1]["records"]["trained"] == 650


def test_several_topics_and_numbers_from_their_first_records(kafka, topic, local, tmp_path, follow) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    kafka.create(topic + "-2")
    kafka.send(topic, rows[:500])
    # The first pass finds the mean and deviation of I1.
    auto = ("--set", "columns.I1={numeric: I1, normalize: auto}")
    run = follow("m", [kafka.url(topic), kafka.url(topic + "-2")], *auto)
    wait_for_segments(run, tmp_path / "m", 1)
    kafka.send(topic + "-2", rows[500:550])
    wait(lambda: '"examples":550,' in run.text(), f"550 records: {run.text()}")
    assert "First pass over 500 rows" in run.text()
    assert run.stop()[1]["records"]["trained"] == 550


def test_aborted_transactions_are_segments_without_records(kafka, topic, local, tmp_path, follow) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    kafka.send(topic, rows[:100])
    run = follow("m", kafka.url(topic))
    wait_for_segments(run, tmp_path / "m", 1)
    producer = kafka.producer(transactional_id=topic)
    producer.init_transactions(60)
    producer.begin_transaction()
    for _ in range(60):
        producer.produce(topic, b"{no json")
    assert producer.flush(60) == 0
    producer.abort_transaction(60)
    wait_for_segments(run, tmp_path / "m", 2)
    kafka.send(topic, rows[100:200])
    wait_for_segments(run, tmp_path / "m", 3)
    wait(lambda: '"examples":200,' in run.text(), f"200 records: {run.text()}")
    assert run.stop()[1]["records"]["trained"] == 200


def test_it_exports_while_it_waits(kafka, topic, local, tmp_path, follow) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    kafka.send(topic, rows[:500])
    exports = tmp_path / "m" / "export" / "latest"
    run = follow("m", kafka.url(topic), "--save-secs", 1, "--eval", *files(local, "jsonl"), "--eval-throttle-secs", 0,
                 "--eval-start-delay-secs", 0, "--exporter", "latest")  # fmt: skip
    wait(lambda: list(exports.glob("*/saved_model.pb")), f"an export: {run.text()}")
    kafka.send(topic, rows[500:600])
    wait(lambda: len(list(exports.glob("*/saved_model.pb"))) == 2, f"another one: {run.text()}")
    code, said = run.stop()
    assert (code, said["step"]) == (143, 12)


def test_it_evaluates_on_a_share_that_it_holds_back(muster, kafka, topic, local, tmp_path, follow) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    kafka.send(topic, rows[:1500])
    model = tmp_path / "m"
    run = follow("m", kafka.url(topic), "--save-secs", 1, "--eval", "20%", "--eval-throttle-secs", 0,
                 "--eval-start-delay-secs", 0)  # fmt: skip
    wait_for_segments(run, model, 1)
    kafka.send(topic, rows[1500:2500])
    wait_for_segments(run, model, 2)
    count = sum(offsets(segment) for segment in segments(model))
    kept = [row for offset, row in enumerate(rows[:count]) if is_held_back(f"{topic}/0", offset, 0.2)]
    wait(lambda: f'"examples":{count - len(kept)},' in run.text(), f"the training rows: {run.text()}")
    code, said = run.stop()
    assert code == 143 and said["records"] == {"trained": count - len(kept), "dropped": 0, "repeated": 0}
    (tmp_path / "kept.jsonl").write_bytes(b"\n".join(kept) + b"\n")
    wanted = muster.event("evaluated", "evaluate", model, "--data", tmp_path / "kept.jsonl")
    event = muster.event("evaluated", *train(local, model, kafka.url(topic), *FOLLOW, "--eval", "20%", "--max-steps", 1))
    assert (event["auc"], event["average_loss"]) == (wanted["auc"], wanted["average_loss"])


def test_max_steps_ends_it_and_fresh_data_begins_anew(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:500])
    command = train(local, tmp_path / "m", kafka.url(topic), *FOLLOW)
    assert muster.event("trained", *command, "--max-steps", 4)["step"] == 4
    assert muster.event("trained", *command, "--steps", 2)["records"]["trained"] == 300
    kafka.truncate(topic, 0, 400)
    errors = muster.fail(*command, "--steps", 2)
    assert f"{topic}/0: offset 0 is wanted, but the first one that is kept is 400" in errors
    kafka.send(topic, values(local, "jsonl", 0)[500:600])
    assert muster.event("trained", *command, "--steps", 4, "--fresh-data")["step"] == 10
    assert segments(tmp_path / "m")[0][0].partition("ranges=")[2].startswith("0:400-600&")


def test_a_model_of_other_data_is_not_continued(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:500])
    muster.run(*train(local, tmp_path / "m", files(local, "jsonl")[:1], "--epochs", 2))
    errors = muster.fail(*train(local, tmp_path / "m", kafka.url(topic), *FOLLOW, "--steps", 2))
    assert "--fresh-data" in errors
    muster.run(*train(local, tmp_path / "m", kafka.url(topic), *FOLLOW, "--steps", 2, "--fresh-data"))
    kafka.create(topic + "-2")
    kafka.send(topic + "-2", values(local, "jsonl", 0)[:500])
    errors = muster.fail(*train(local, tmp_path / "m", kafka.url(topic + "-2"), *FOLLOW, "--steps", 2))
    assert "has segments of other topics than" in errors


def test_what_cannot_be_followed_is_refused(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:100])
    name = kafka.url(topic)

    def refused(data: object, *flags: object) -> str:
        return muster.refuse(*train(local, tmp_path / "m", data, "--follow", *flags))

    assert "part-0.jsonl' does not grow" in refused(files(local, "jsonl")[:1])
    assert "leave out --ps, --evaluator" in refused(name, "--workers", 2, "--ps", 1)
    assert "leave out --epochs" in refused(name, "--epochs", 2)
    assert "leave out --drop-remainder" in refused(name, "--drop-remainder")
    errors = fail(muster, local, tmp_path, name + "?ranges=0:0-50", "--follow")
    assert "has ranges, which end" in errors
    errors = fail(muster, local, tmp_path, kafka.url(topic[:-1] + "x"), "--follow")
    assert f"there is no topic '{topic[:-1]}x' (did you mean '{topic}'?)" in errors
    kafka.create(topic + "-c", cleanup_policy="compact")
    errors = fail(muster, local, tmp_path, kafka.url(topic + "-c"), "--follow")
    assert "compaction removes records of this topic" in errors
    muster.run(*train(local, tmp_path / "one", name, *FOLLOW, "--workers", 1, "--max-steps", 2))
