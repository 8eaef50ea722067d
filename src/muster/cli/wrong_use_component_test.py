"""Wrong use: exit code 2, and a message that says what to write instead."""

from __future__ import annotations

import pathlib
import shlex

import pytest

SPEC = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x], optimizer: {ftrl: {learning_rate: 0.1}}}}
train: {batch_size: 8, epochs: 2}
"""
ROWS = "x,y\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(40))

TRAIN = "train spec.yaml model --train rows.csv "
SCORE = "--data rows.csv "

# The command after `muster`, and what its message holds.
WRONG_USES = [
    # Verbs.
    ("trian spec.yaml", "muster: unknown verb 'trian' (did you mean 'train'?)"),
    ("zzz", "unknown verb 'zzz'\nmuster --help"),
    ("records from-cvs rows.csv", "muster records: unknown verb 'from-cvs' (did you mean 'from-csv'?)"),
    ("records", "a verb is missing"),
    ("help trian", "unknown verb 'trian' (did you mean 'train'?)"),
    ("--verison", "unknown flag '--verison' (did you mean '--version'?)"),
    # Flags.
    (TRAIN + "--epoch 3", "muster train: unknown flag '--epoch' (did you mean '--epochs'?)"),
    (TRAIN + "--max_steps=3", "unknown flag '--max_steps' (did you mean '--max-steps'?)"),
    ("train spec.yaml --trian rows.csv model", "unknown flag '--trian' (did you mean '--train'?)"),
    ("train spec.yaml --train rows.csv --mdel-dir model", "did you mean '--model-dir'?"),
    ("train spec.yaml --trian rows.csv --model-dir model", "did you mean '--train'?"),
    ("train --epoch 3 spec.yaml --model-dir model --train rows.csv", "did you mean '--epochs'?"),
    (TRAIN + "--model-dir other", "muster train: --model-dir is given twice"),
    ("evaluate model --dat rows.csv", "unknown flag '--dat' (did you mean '--data'?)"),
    ("records from-csv rows.csv --sepc spec.yaml", "did you mean '--spec'?"),
    ("status job --wtach", "did you mean '--watch'?"),
    ("init rows.csv --label y -o spec.yaml", "muster init: unknown flag '-o' (did you mean '--out'?)"),
    (TRAIN + "--set train.epochs=1 train.seed=2", "there is no use for 'train.seed=2': each setting needs its own "
     "--set: --set train.seed=2"),
    (TRAIN + "--cache --quiet", "muster train: --cache: its value is missing ('--quiet' is a flag)"),
    (TRAIN + "--qqqqqq", "unknown flag '--qqqqqq'\nmuster train --help"),
    ("list job", "muster list: there is no use for 'job'"),
    ("predict model --out p.csv", "muster predict: --data is required"),
    ("tensorboard", "A model folder or a job is required"),
    ("train rows.csv", "rows.csv is data, and no model file: muster init rows.csv --label COLUMN"),
    ("train rows.csv --trian spec.yaml model", "did you mean '--train'?"),
    ("predict model rows.csv --out p.csv", "--data is required, and there is no use for 'rows.csv': "
     "did you mean --data rows.csv?"),
    ("train --train rows.csv spec.yaml --model-dir model", "spec is required, and 'spec.yaml' is taken as a value "
     "of --train, which takes all words up to the next flag: write it before --train"),
    ("evaluate model rows.csv", "did you mean --data rows.csv?"),
    ("train spec.yaml rows.csv --model-dir model",
     "--model-dir is given twice: 'rows.csv' and 'model'; data stand after --train"),
    # Values.
    (TRAIN + "--epochs 0", "--epochs: 0 is refused: it must be above 0"),
    (TRAIN + "--batch-size 0", "--batch-size: Value 0 not in range 1 to 16777216"),
    (TRAIN + "--workers 2:1", "--workers: '2:1' is neither a number"),
    ("train spec.yaml --train rows.csv --model-dir ''", "muster train: --model-dir: is empty"),
    ("evaluate --data rows.csv --model-dir ''", "muster evaluate: --model-dir: is empty"),
    (TRAIN + "--job Bad_Name! --workers 2", "Bad_Name!"),
    (f"evaluate model {SCORE} --job Bad_Name! --workers 2", "Bad_Name!"),
    (TRAIN + "--set train.batch_size", "is not of the form PATH=VALUE"),
    (TRAIN + "--set train.bacth_size=4", "did you mean 'batch_size'?"),
    (TRAIN + "--set train.batch_size=soon", "train.batch_size: 'soon'"),
    (TRAIN + "--set model.linear.columns=[x", "not YAML"),
    (TRAIN + "--eval rows.csv --exporter bst", "unknown exporter 'bst' (did you mean 'best'?)"),
    (TRAIN + "--eval rows.csv --exporter best:acu:higher", "did you mean 'auc'?"),
    (TRAIN + "--eval rows.csv --early-stop auc:no_incraese:5", "no_incraese"),
    (TRAIN + "--eval rows.csv --early-stop acu:no_increase:5", "did you mean 'auc'?"),
    # Outputs.
    (f"predict model {SCORE} --out p.xyz", "output 'p.xyz': the name must end in .csv"),
    ("init rows.csv --label y --out rows.csv --force", "--out rows.csv is the data file rows.csv"),
    # Flags that do not go together.
    (TRAIN + "--workers 2:4 --ps 1", "--workers MIN:MAX is for all-reduce"),
    (TRAIN + "--staleness 2", "--staleness bounds how far"),
    (TRAIN + "--workers 2 --staleness 2", "--staleness bounds how far"),
    (TRAIN + "--strategy ps-sync", "needs parameter servers"),
    (TRAIN + "--steps 5 --workers 2", "--steps counts from where one process begins"),
    (TRAIN + "--steps 5 --eval rows.csv --evaluator", "--steps counts from where one process begins"),
    (TRAIN + "--steps 5 --max-steps 5", "excludes --"),
    (TRAIN + "--ps 1", "--ps requires --workers; --workers 1 is one replica"),
    ("train spec.yaml model --train - --workers 2", "cannot be divided among the tasks"),
    (f"evaluate model {SCORE} --steps 2 --workers 2", "--steps counts batches of one process"),
    ("evaluate model --data - --workers 2", "cannot be divided among --workers"),
    (f"evaluate model {SCORE} --workers 2 --task 2", "the last of 2 workers is 1"),
    (f"predict model {SCORE} --out - --workers 2", "give a folder for the parts"),
    (f"predict model {SCORE} --out rows.csv", "rows.csv"),
    ("run", "there is nothing to run"),
    ("run --env x -- true", "'x' is not NAME=VALUE"),
    ("rm", "give the names of jobs, or --older-than AGE"),
    ("sample clicks --out c.csv --rows 0", "--rows"),
]  # fmt: skip


@pytest.fixture()
def place(tmp_path: pathlib.Path, monkeypatch) -> pathlib.Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "rows.csv").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("command, says", WRONG_USES, ids=[command for command, _ in WRONG_USES])
def test_wrong_use_ends_with_2_and_says_what_to_write(command, says, muster, place) -> None:
    result = muster.call(*shlex.split(command))
    assert result.returncode == 2, result.stderr
    assert says in result.stderr
    assert result.stdout == ""
    assert (place / "rows.csv").read_text() == ROWS
    assert not (place / "model").exists() and not (place / "home/jobs").exists()


def test_a_model_file_that_is_broken_by_itself_is_a_failure(muster, place) -> None:
    (place / "spec.yaml").write_text(SPEC.replace("batch_size", "bacth_size"))
    assert "batch_size" in muster.fail(*TRAIN.split(), "--set", "train.epochs=1")


@pytest.mark.parametrize(
    "command",
    [
        "init rows.csv --label y --out no/p.yaml",
        f"predict model {SCORE} --out no/p.csv",
        f"evaluate model {SCORE} --max-bad-records 1 --rejects no/p.jsonl",
        "sample clicks --rows 5 --out no/p.csv",
        "records from-csv rows.csv --spec spec.yaml --out rows.csv/no",
        "train spec.yaml rows.csv/no --train rows.csv",
        "train spec.yaml rows.csv/no --train rows.csv --workers 2",
        "export model --out rows.csv/no",
    ],
)
def test_a_place_that_cannot_be_written_is_a_failure(command, muster, place) -> None:
    muster.run(*TRAIN.split())
    said = muster.fail(*command.split())
    assert "the folder no does not exist; make it (mkdir -p no)" in said or "rows.csv is a file, and no folder" in said
    assert not (place / "no").exists() and (place / "rows.csv").read_text() == ROWS


def test_a_metric_of_another_model_is_wrong_use(muster, place) -> None:
    muster.run(*TRAIN.split())
    result = muster.call("evaluate", "model", "--data", "rows.csv", "--top-k", "2")
    assert result.returncode == 2 and "top" in result.stderr
