"""muster predict and evaluate: numbers of rows, what is left out, and which checkpoint it was."""

from __future__ import annotations

import json
import pathlib
import shutil
import signal
import subprocess

import pytest

from testbed.hangups import hangups_are_heard
from testbed.waiting import wait

__all__ = ["hangups_are_heard"]
SPEC = """
inputs: {x: float, y: int}
label: y
columns:
  x: {numeric: x}
model:
  type: linear
  linear: {columns: [x]}
"""
BAD = 1  # the row that does not fit


@pytest.fixture
def place(muster, tmp_path, monkeypatch) -> pathlib.Path:
    """A folder with a trained model and rows whose second one is bad."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("spec.yaml").write_text(SPEC)
    rows = [f"{i / 10},{i % 2}" for i in range(100)]
    pathlib.Path("good.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    rows[BAD] = "much,1"
    pathlib.Path("bad.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    for i, part in enumerate((rows[:40], [], rows[40:])):
        pathlib.Path(f"part-{i}.csv").write_text("\n".join(["x,y", *part]) + "\n")
    pathlib.Path("empty.csv").write_text("x,y\n")
    muster.run("train", "spec.yaml", "--train", "good.csv", "--model-dir", "m", "--steps", 3)
    return tmp_path


LENIENT = ("--max-bad-records", 5)


def predict(data: str, out: str, *flags: object) -> tuple[object, ...]:
    return ("predict", "--model-dir", "m", "--data", data, "--out", out, *flags)


def scores(path: str) -> dict[int, str]:
    """By row."""
    _, *lines = pathlib.Path(path).read_text().splitlines()
    return {int(line.split(",")[0]): line.split(",", 1)[1] for line in lines}


def test_predictions_that_are_no_numbers_are_told(muster, place) -> None:
    """A weight above 2 and a number near the largest float."""
    pathlib.Path("steep.yaml").write_text(SPEC.replace("y: int", "y: float") + "head: regression\n")
    pathlib.Path("steep.csv").write_text("x,y\n" + "".join(f"{i / 10},{5 * i}\n" for i in range(100)))
    muster.run("train", "steep.yaml", "--train", "steep.csv", "--model-dir", "steep", "--epochs", 20)
    pathlib.Path("large.csv").write_text("x,y\n1,0\n3e38,1\n3.2e38,1\n")
    done = muster.call("predict", "steep", "--data", "large.csv", "--out", "large.jsonl")
    assert done.returncode == 0
    assert "warning: the predictions of 2 rows are not finite, first those of row 1:" in done.stderr
    rows = [json.loads(line) for line in pathlib.Path("large.jsonl").read_text().splitlines()]
    assert rows[0]["predictions"][0] > 2 and rows[1]["predictions"] == [None]


def test_a_bad_record_shifts_no_row(muster, place) -> None:
    whole = predict("good.csv", "good.csv.out", "--format", "csv")
    assert "with m/model.ckpt-3" in muster.run(*whole)
    said = muster.event("predicted", *predict("bad.csv", "out.csv", *LENIENT, "--rejects", "r"), "--json")
    assert (said["examples"], said["bad_records"]) == (99, 1)
    assert said["checkpoint"] == "m/model.ckpt-3"
    expected = scores("good.csv.out")
    del expected[BAD]
    assert scores("out.csv") == expected
    (reject,) = map(json.loads, pathlib.Path("r").read_text().splitlines())
    assert reject == {
        "row": BAD,
        "where": "bad.csv:3",
        "error": "column 'x': 'much' is not a float",
        "record": "much,1",
    }
    text = muster.run(*predict("bad.csv", "out.csv", *LENIENT))
    assert "left out 1 bad record" in text


@pytest.mark.parametrize(("data", "workers", "parts"), [("part-*.csv", 2, 3), ("part-*.csv", 5, 5)])
def test_parts_are_what_one_process_writes(data, workers, parts, muster, place) -> None:
    muster.run(*predict("part-*.csv", "one.csv", *LENIENT, "--rejects", "one.rejects"))
    for task in range(workers):
        muster.run(
            *predict(data, "out", *LENIENT, "--workers", workers, "--task", task, "--rejects", "rejects")
        )
    found = sorted(place.glob("out/part-*.csv"))
    assert len(found) == parts
    header, *rows = found[0].read_text().splitlines()
    for path in found[1:]:
        first, *more = path.read_text().splitlines()
        assert first == header
        rows += more
    assert [header, *rows] == (place / "one.csv").read_text().splitlines()
    rejects = [path.read_text() for path in sorted(place.glob("rejects/part-*.jsonl"))]
    assert "".join(rejects) == (place / "one.rejects").read_text() != ""


def test_an_evaluation_counts_and_keeps_bad_records(muster, place) -> None:
    command = ("evaluate", "--model-dir", "m", "--data", "bad.csv", *LENIENT)
    found = muster.event("evaluated", *command, "--json", "--rejects", "r.jsonl")
    assert (found["bad_records"], found["checkpoint"]) == (1, "m/model.ckpt-3")
    assert "bad.csv:3" in pathlib.Path("r.jsonl").read_text()
    assert "left out 1 bad record" in muster.run(*command)


def test_no_output_takes_the_place_of_the_data(muster, place) -> None:
    pathlib.Path("link.csv").symlink_to("bad.csv")
    before = {path: path.read_bytes() for path in place.glob("*.csv")}
    rejects = (*LENIENT, "--rejects")
    evaluate = ("evaluate", "--model-dir", "m", "--data", "bad.csv", *rejects)
    parts = ("--workers", 2)
    for command in (
        predict("bad.csv", "bad.csv"),
        predict("*.csv", "good.csv"),
        predict("link.csv", "bad.csv"),
        predict("bad.csv", "out.csv", *rejects, "link.csv"),
        predict("bad.csv", ".", *parts),
        (*evaluate, "bad.csv"),
        (*evaluate, ".", *parts),
    ):
        said = muster.refuse(*command)
        assert "the data file" in said and "give another" in said, said
    for command, says in (
        (predict("bad.csv", "out", *rejects, "./out"), "--rejects: ./out is what --out names"),
        (predict("bad.csv", "out.csv", *rejects, "-"), "--rejects: -: standard output"),
        ((*evaluate, "-"), "--rejects: -: standard output"),
    ):
        result = muster.call(*command)
        assert result.returncode == 2 and says in result.stderr, result.stderr
    assert {path: path.read_bytes() for path in place.glob("*.csv")} == before
    assert not list(place.glob("out*")) and not list(place.glob("-"))


def test_a_job_that_fails_before_any_part_leaves_no_folder(muster, place, monkeypatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(place / "home"))
    pathlib.Path("other.csv").write_text("z,y\n1,1\n")
    assert "column 'x' is not in the header" in muster.fail(*predict("other.csv", "out", "--workers", 2))
    assert not pathlib.Path("out").exists()
    muster.run(*predict("good.csv", "out", "--workers", 2))
    muster.fail(*predict("other.csv", "out", "--workers", 2))
    assert len(list(place.glob("out/part-*"))) == 2


def test_data_without_rows_has_no_predictions(muster, place) -> None:
    assert "0 examples" in muster.run(*predict("empty.csv", "out.csv"))
    assert pathlib.Path("out.csv").read_text() == "row,logits,logistic,class_ids,classes\n"
    muster.run(*predict("empty.csv", "out", "--workers", 2, "--task", 0))
    assert "no records" in muster.fail("evaluate", "--model-dir", "m", "--data", "empty.csv")


@pytest.fixture
def broken(muster, place) -> pathlib.Path:
    """Of two checkpoints the newer one has a weight with another bit."""
    train = ("train", "spec.yaml", "--train", "good.csv", "--model-dir", "m", "--steps", 3)
    muster.run(*train)
    data = pathlib.Path("m/model.ckpt-6.data-00000-of-00001")
    damaged = bytearray(data.read_bytes())
    damaged[2] ^= 1
    data.write_bytes(damaged)
    return place


@pytest.mark.parametrize("flags", [(), ("--workers", 2, "--task", 0)])
def test_a_prediction_refuses_a_broken_checkpoint(flags, muster, broken) -> None:
    said = muster.fail(*predict("good.csv", "out", "--format", "csv", *flags))
    assert "model.ckpt-6.data" in said and "checksum" in said
    assert not list(broken.glob("out*/*.csv")) and not (broken / "out").is_file()
    shutil.rmtree("out", ignore_errors=True)
    result = muster.call(*predict("good.csv", "out", "--format", "csv", *flags), "--fall-back", "--quiet")
    assert result.returncode == 0, result.stderr
    assert "warning: broken checkpoints were passed over for m/model.ckpt-3" in result.stderr
    assert "with m/model.ckpt-3" in result.stdout


def test_so_does_an_export(muster, broken) -> None:
    export = ("export", "--model-dir", "m", "--out", "saved")
    assert "give --fall-back to take m/model.ckpt-3" in muster.fail(*export)
    result = muster.call(*export, "--fall-back", "--json")
    assert result.returncode == 0 and "warning: broken" in result.stderr, result.stderr
    assert json.loads(result.stdout)["checkpoint"] == "m/model.ckpt-3"


def test_an_evaluation_warns_that_it_fell_back_even_if_quiet(muster, broken) -> None:
    result = muster.call("evaluate", "--model-dir", "m", "--data", "good.csv", "--quiet", "--json")
    assert result.returncode == 0, result.stderr
    assert "warning: broken checkpoints were passed over for m/model.ckpt-3" in result.stderr
    assert json.loads(result.stdout)["checkpoint"] == "m/model.ckpt-3"


@pytest.mark.parametrize("verb", [("evaluate",), ("predict", "--out", "out.csv")])
def test_weights_of_step_0_are_told(verb, muster, place) -> None:
    muster.call("train", "spec.yaml", "--train", "good.csv", "--model-dir", "m", "--max-steps", 1)
    command = (*verb, "--model-dir", "m", "--data", "good.csv", "--quiet")
    told = muster.call(*command, "--checkpoint", "m/model.ckpt-0")
    assert told.returncode == 0, told.stderr
    assert told.stderr.count("warning:") == 1
    assert "m/model.ckpt-0 has the weights from before the first training step" in told.stderr
    assert "warning:" not in muster.call(*command).stderr


def test_the_best_checkpoint_and_its_export_can_be_read(muster, place) -> None:
    """Of an early-stopped training, whose newest checkpoints come after the best."""
    events = muster.json(
        "train", "spec.yaml", "--train", "good.csv", "--model-dir", "early", "--max-steps", 400,
        "--save-steps", 5, "--keep-checkpoints", 1, "--eval", "good.csv", "--exporter",
        "best:loss:higher", "--eval-start-delay-secs", 0, "--eval-throttle-secs", 0,
        "--early-stop", "loss:no_increase:20",
    )  # fmt: skip
    evaluated = [event for event in events if event["event"] == "evaluated"]
    best = max(evaluated, key=lambda event: event["loss"])
    assert best["global_step"] < evaluated[-1]["global_step"] < 400
    command = ("evaluate", "--model-dir", "early", "--data", "good.csv", "--name", "again")
    found = muster.event("evaluated", *command, "--checkpoint", "best", "--json")
    assert found["checkpoint"] == f"early/model.ckpt-{best['global_step']:.0f}"
    assert found["loss"] == best["loss"]
    export = max(pathlib.Path("early/export/best").iterdir())
    found = muster.event("evaluated", *command, "--checkpoint", export, "--json")
    assert (found["loss"], found["global_step"]) == (best["loss"], best["global_step"])
    said = muster.run("predict", "--model-dir", "early", "--data", "good.csv", "--out", "p.csv",
                      "--checkpoint", export)  # fmt: skip
    assert f"with {export}" in said
    assert "--eval" in muster.fail(*predict("good.csv", "out.csv", "--checkpoint", "best"))


def test_a_reader_that_leaves_leaves_no_lease(muster, place) -> None:
    rows = "\n".join(f"{i / 10},{i % 2}" for i in range(100_000))
    pathlib.Path("many.csv").write_text(f"x,y\n{rows}\n")
    command = [muster.binary, *map(str, predict("many.csv", "-", "--format", "csv"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline().startswith("row,")
        run.stdout.close()
        assert run.stderr.read() == ""
        assert run.wait(timeout=60) == -signal.SIGPIPE
    assert not list(pathlib.Path("m").glob("*lease*"))


@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 1), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_leaves_nothing_half_written(muster, place, sent: int, code: int) -> None:
    rows = "\n".join(f"{i / 10},{i % 2}" for i in range(200_000))
    pathlib.Path("long.csv").write_text(f"x,y\n{rows}\n")
    pathlib.Path("out").mkdir()
    command = [muster.binary, *predict("long.csv", "out/long.csv")]
    process = subprocess.Popen([*command[:-2], *["long.csv"] * 50, *command[-2:]], stderr=subprocess.PIPE, text=True)
    wait(lambda: any(place.glob("out/.long.csv.tmp-*")), "the first rows")
    process.send_signal(sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "out/long.csv was not written" in errors
    assert list(pathlib.Path("out").iterdir()) == []


def test_a_training_without_a_row_that_can_be_read_fails(muster, place) -> None:
    pathlib.Path("words.csv").write_text("x,y\n" + "word,1\n" * 20)
    command = ("train", "spec.yaml", "--train", "words.csv", "--model-dir", "w", "--max-bad-records")
    assert "none of the data's 20 rows can be read" in muster.fail(*command, 100)
    assert "--max-bad-records" in muster.refuse(*command, -5)


def test_a_training_whose_checkpoints_were_removed_says_that_it_begins_anew(muster, place) -> None:
    for path in pathlib.Path("m").glob("model.ckpt-*"):
        path.unlink()
    done = muster.call("train", "spec.yaml", "--train", "good.csv", "--model-dir", "m", "--steps", 3)
    assert done.returncode == 0
    assert "warning: m/checkpoint names model.ckpt-3, which is not there: the training begins anew" in done.stderr
