"""What `muster train` says of flags, folders and data that are not what a person meant."""

from __future__ import annotations

import json
import pathlib

import pytest

SPEC = """
inputs: {sex: string, age: float, y: int}
label: y
columns:
  sex: {vocabulary: sex, words: [Male, Female]}
  age: {numeric: age, mean: 40, stddev: 20}
model:
  type: linear
  linear: {columns: [sex, age], optimizer: {ftrl: {learning_rate: 0.1}}}
train: {batch_size: 8, epochs: 2}
"""


@pytest.fixture()
def place(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    rows = [f"{('male', 'female')[i % 2]},{20 + i},{i % 3 % 2}\n" for i in range(40)]
    (tmp_path / "rows.csv").write_text("sex,age,y\n" + "".join(rows))
    return tmp_path


def train(place: pathlib.Path, *more: object) -> tuple[object, ...]:
    return ("train", place / "spec.yaml", "--train", place / "rows.csv", "--model-dir",
            place / "model", *more)  # fmt: skip


@pytest.mark.parametrize(
    "flags, says",
    [
        (("--epochs", 0), "--epochs: 0 is refused: it must be above 0"),
        (("--epochs", "1.5"), "--epochs: '1.5' is not a whole number"),
        (("--seed", -1), "--seed: -1 is refused: it must not be below 0"),
        (("--save-secs", "soon"), "--save-secs: 'soon' is not a number"),
        (("--save-steps", 5, "--save-secs", 3), "--save-steps excludes --save-secs"),
        (("--class-weight", "2=5"), "--class-weight: there is no class 2: the model has 2"),
        (("--eval-every-epoch",), "--eval-every-epoch requires --eval"),
        (("--early-stop", "auc:no_increase:3"), "--early-stop requires --eval (or --eval-elsewhere)"),
    ],
)
def test_wrong_use_is_said_shortly(flags, says, muster, place) -> None:
    result = muster.call(*train(place, *flags))
    assert result.returncode == 2
    assert says in result.stderr
    assert len(result.stderr) < 200
    assert not (place / "model").exists()


def test_a_worker_without_tf_config_trains_nothing_alone(muster, place, monkeypatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    result = muster.call("worker", *train(place)[1:])
    assert result.returncode == 2
    assert "TF_CONFIG is not set" in result.stderr and "muster train" in result.stderr
    assert not (place / "model").exists()


def test_data_that_cannot_be_evaluated_is_found_before_the_training(muster, place) -> None:
    said = muster.fail(*train(place, "--eval", place / "rows.scv"))
    assert "the data to evaluate on: no file matches" in said
    assert not (place / "model").exists()


def test_a_command_stands_after_two_dashes(muster) -> None:
    result = muster.call("run", "--workers", 2, "python3", "x.py")
    assert result.returncode == 2
    assert "muster run --workers 2 -- python train.py" in result.stderr


@pytest.mark.parametrize("more", [(), ("--workers", 2)])
def test_a_metric_that_does_not_exist_is_refused_at_the_start(more, muster, place) -> None:
    evaluated = ("--eval", place / "rows.csv", *more)
    for rule in (("--early-stop", "acu:no_increase:3"), ("--exporter", "best:acu:higher")):
        said = muster.refuse(*train(place, *evaluated, *rule))
        assert "no metric 'acu' (did you mean 'auc'?)" in said
    said = muster.refuse(*train(place, "--eval-elsewhere", "--early-stop", "acu:no_increase:3"))
    assert "no metric 'acu'" in said
    assert not (place / "model").exists()


def test_a_finished_training_has_nothing_left_to_do(muster, place) -> None:
    assert "Trained at step 10" in muster.run(*train(place))
    again = muster.run(*train(place))
    assert again.startswith("Nothing left to do: the model is trained at step 10;")
    assert "loss" not in again and "examples/s" not in again
    event = json.loads(muster.run(*train(place, "--json")).splitlines()[-1])
    assert event["event"] == "trained" and event["nothing_left"] is True and event["loss"] is None


@pytest.mark.parametrize("flag", ["--model-dir", "--train", "spec"])
def test_a_scheme_that_is_not_known_is_no_local_folder(flag, muster, place, monkeypatch) -> None:
    monkeypatch.chdir(place)
    arguments = list(train(place))
    arguments[arguments.index(flag) + 1 if flag != "spec" else 1] = "s3://bucket/m"
    said = muster.fail(*arguments)
    assert "no file system for 's3://' here; known are paths of this machine" in said
    assert not (place / "s3:").exists()


def test_stats_have_the_share_of_rows_without_an_id(muster, place) -> None:
    stats = json.loads(
        muster.run("records", "stats", place / "rows.csv", "--spec", place / "spec.yaml", "--json")
    )
    assert stats["ids"] == {
        "sex": {
            "without_id": 40,
            "share_without_id": 1.0,
            "values_without_id": ["'male'", "'female'"],
        }
    }
    text = muster.run("records", "stats", place / "rows.csv", "--spec", place / "spec.yaml")
    assert "rows without id" in text and "100.0 %  'male'  'female'" in text


def test_values_of_the_model_file_are_set_by_flags(muster, place) -> None:
    """As if they stood in the file: by one process and by two."""
    settings = {
        "train.batch_size": "4",
        "model.linear.optimizer": "{sgd: {learning_rate: 0.5}}",
        "columns.age.mean": "30",
    }
    flags = [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]
    muster.run(*train(place, *flags))
    assert "batch_size: 4" in (place / "model/model.yaml").read_text()
    edited = SPEC.replace("batch_size: 8", "batch_size: 4").replace("mean: 40", "mean: 30")
    edited = edited.replace("{ftrl: {learning_rate: 0.1}}", "{sgd: {learning_rate: 0.5}}")
    (place / "edited.yaml").write_text(edited)
    data = ("--train", place / "rows.csv", "--model-dir")
    muster.run("train", place / "edited.yaml", *data, place / "other")
    for name in ("model", "other"):
        scored = ("--data", place / "rows.csv", "--out", place / f"{name}.csv")
        muster.run("predict", "--model-dir", place / name, *scored)
    scores = (place / "model.csv").read_text()
    assert scores == (place / "other.csv").read_text() and scores.count("\n") == 41
    muster.run("train", place / "spec.yaml", *data, place / "two", "--workers", 2, *flags)
    assert "batch_size: 4" in (place / "two/model.yaml").read_text()


@pytest.mark.parametrize(
    "setting, says",
    [
        ("train.batch_size", "is not of the form PATH=VALUE"),
        ("train.bacth_size=4", "train: unknown key 'bacth_size' (did you mean 'batch_size'?)"),
        ("train.batch_size=soon", "spec.yaml with train.batch_size=soon: train.batch_size: 'soon'"),
        ("train.batch_size.x=1", "train.batch_size is not a map in "),
        ("model.linear.columns=[sex", "not YAML"),
    ],
)
def test_settings_that_cannot_be_are_refused(setting, says, muster, place) -> None:
    said = muster.refuse(*train(place, "--set", setting))
    assert says in said
    assert not (place / "model").exists()


def test_class_weights_are_the_weights_of_rows(muster, place) -> None:
    """Of a native model: what a column of weights gives."""
    (place / "weighted.yaml").write_text(
        SPEC.replace("y: int}", "y: int, w: float}").replace("label: y", "label: y\nweight: w")
    )
    lines = (place / "rows.csv").read_text().splitlines()[1:]
    rows = [f"{line},{5 if line.endswith('1') else 0.5}\n" for line in lines]
    (place / "weighted.csv").write_text("sex,age,y,w\n" + "".join(rows))
    one = muster.event("trained", *train(place, "--class-weight", "0=0.5,1=5"))
    two = muster.event("trained", "train", place / "weighted.yaml", "--train", place / "weighted.csv",
                       "--model-dir", place / "weighted")  # fmt: skip
    plain = muster.event("trained", "train", place / "spec.yaml", "--train", place / "rows.csv",
                         "--model-dir", place / "plain")  # fmt: skip
    assert one["loss"] == two["loss"] != plain["loss"]


def test_an_epoch_is_evaluated_at_its_end(muster, place) -> None:
    flags = ("--eval", place / "rows.csv", "--eval-every-epoch")
    said = muster.run(*train(place, *flags), "--json")
    found = [json.loads(line) for line in said.splitlines() if '"evaluated"' in line]
    assert [(one["epoch"], one["global_step"]) for one in found] == [(1, 5), (2, 10)]
    again = muster.call("train", place / "spec.yaml", "--train", place / "rows.csv", "--model-dir",
                        place / "other", *flags)  # fmt: skip
    assert "Evaluated epoch 1 (step 5): " in again.stderr and "(training: loss " in again.stderr
    refused = muster.call(*train(place, *flags, "--eval-throttle-secs", 0))
    assert refused.returncode == 2 and "excludes" in refused.stderr
