"""Data as people have it: raw tables train at once with a model file that says `format:`."""

from __future__ import annotations

import csv
import gzip
import json
import pathlib
import re
import subprocess

import pytest
import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]

SPEC = """
inputs:
  label: int
  n: {type: float, default: 0}
  word: string
label: label
columns:
  n: {numeric: n, log1p: true}
  word: {hash: word, buckets: 20}
model:
  type: linear
  linear: {columns: [n, word]}
train: {batch_size: 16}
"""
ROWS = [(i % 2, i - 3, f"w{i % 5}") for i in range(64)]


class Place:
    """A folder with a model file, in which muster runs."""

    def __init__(self, binary: str, folder: pathlib.Path):
        self.binary = binary
        self.folder = folder
        (folder / "spec.yaml").write_text(SPEC)

    def write(self, name: str, text: str | bytes) -> None:
        (self.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([self.binary, *arguments], cwd=self.folder, capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    def train(self, data: str, *more: str, spec: str = "spec.yaml", code: int = 0) -> str:
        """What it says on stderr."""
        return self.run("train", spec, "--train", data, "--model-dir", "model", *more,
                        code=code).stderr  # fmt: skip

    def evaluate(self, data: str, *more: str) -> dict:
        out = self.run("evaluate", "--model-dir", "model", "--data", data, "--json", "--quiet", *more)
        return json.loads(out.stdout)

    def predict(self, data: str, *more: str) -> list[str]:
        self.run("predict", "--model-dir", "model", "--data", data, "--out", "out.csv", "--quiet",
                 *more)  # fmt: skip
        return (self.folder / "out.csv").read_text().splitlines()


@pytest.fixture()
def place(muster, tmp_path) -> Place:
    return Place(muster.binary, tmp_path)


def table(rows, delimiter: str = ",", header: str | None = "label,n,word") -> str:
    lines = [delimiter.join(str(cell) for cell in row) for row in rows]
    names = [] if header is None else [header.replace(",", delimiter)]
    return "\n".join(names + lines) + "\n"


def test_a_name_without_an_ending_is_read_by_its_content_and_told_once(place):
    place.write("part-00000", table(ROWS, ";"))
    said = place.train("part-00000", "--eval", "part-00000")
    note = "note: part-00000 is read as CSV with ';' between its 3 cells, as its content says"
    assert said.count(note) <= 2 and note in said  # of --train and of --eval
    assert place.evaluate("part-00000")["bad_records"] == 0


def test_delimiters_and_compression_give_the_same_predictions(place):
    place.write("a.csv", table(ROWS))
    place.train("a.csv")
    expected = place.predict("a.csv")
    assert len(expected) == len(ROWS) + 1
    zstd = subprocess.run(["zstd", "-q", "-c"], input=table(ROWS, "|").encode(), check=True,
                          capture_output=True).stdout  # fmt: skip
    for name, content in {
        "b.tsv": table(ROWS, "\t"),
        "part-0": table(ROWS, ";"),
        "packed": gzip.compress(table(ROWS, "\t").encode()),
        "packed.zst": zstd,
        "hive": table(ROWS, "\x01"),
        "reordered.txt": table([row[::-1] for row in ROWS], header="word,n,label"),
    }.items():
        place.write(name, content)
        assert place.predict(name) == expected, name


def test_flags_stand_before_the_model_file_and_are_stored_with_the_model(place):
    place.write("raw", table([(a, b, f" {c}") for a, b, c in ROWS], ";", header=None))
    place.write("headed.csv", table(ROWS))
    flags = ["--no-header", "--columns", "label,n,word", "--trim", "--delimiter", ";"]
    assert "note:" in place.train("raw", *flags)  # that it is CSV
    assert "note:" not in place.run("predict", "--model-dir", "model", "--data", "raw", "--out",
                                    "quiet.csv", "--quiet").stderr  # fmt: skip
    stored = yaml.safe_load((place.folder / "model/model.yaml").read_text())["format"]
    assert stored["columns"] == ["label", "n", "word"] and stored["delimiter"] == ";"
    unasked = place.predict("raw")
    assert len(unasked) == len(ROWS) + 1
    # The trimmed words have the ids of the words.
    assert place.predict("headed.csv", "--header", "--delimiter", ",") == unasked


def test_missing_marks_and_encodings_are_those_that_are_given(place):
    place.write("marked.csv", "label,n,word\n0,NA,x\n1,?,\xe9\n".encode("latin1"))
    failed = place.train("marked.csv", "--no-shuffle", code=1)
    assert "marked.csv:2: column 'n': 'NA' is not a float" in failed
    failed = place.train("marked.csv", "--missing", "NA,?", "--encoding-errors", "error", code=1)
    assert "marked.csv:3: the row is not UTF-8" in failed
    place.train("marked.csv", "--missing", "NA,?", "--encoding-errors", "latin1")
    assert place.evaluate("marked.csv")["bad_records"] == 0


def test_what_is_not_read_is_named_with_a_way(place):
    place.write("data.parquet", b"PAR1\x15\x04\x00\x00PAR1")
    for arguments in (
        ["records", "from-csv", "data.parquet", "--spec", "spec.yaml", "--out", "shards"],
        ["inspect", "spec.yaml", "--features", "data.parquet"],
    ):
        said = place.run(*arguments, code=1).stderr
        assert "data.parquet: this is Apache Parquet, which muster init, train, evaluate, predict" in said
        assert "muster records from-parquet data.parquet --spec model.yaml --out data" in said
    place.write("data.orc", b"ORC\x15\x04\x00\x00ORC")
    said = place.run("records", "stats", "data.orc", code=1).stderr
    assert "data.orc: this is Apache ORC, which muster does not read" in said
    assert "pandas.read_orc('data.orc').to_csv('data.csv', index=False)" in said
    assert not (place.folder / "shards").exists()


def test_a_missing_and_an_additional_column_are_named(place):
    place.write("part-0.csv", table(ROWS))
    place.write("part-1.csv", table(ROWS, header="label,m,word"))
    said = place.train("part-*.csv", code=1)
    assert ("part-1.csv: its header differs from that of part-0.csv: column 'n' is missing; "
            "column 'm' is additional") in said  # fmt: skip


def test_a_file_without_a_header_is_said_to_look_like_one(place):
    place.write("raw.csv", table(ROWS, header=None))
    assert "that row looks like data: if the file has no header, give --no-header" in place.train(
        "raw.csv", code=1
    )


def test_data_without_the_label_is_converted_and_predicted(place):
    place.write("train.csv", table(ROWS))
    place.write("test.csv", table([row[1:] for row in ROWS], header="n,word"))
    place.train("train.csv")
    expected = place.predict("train.csv")
    assert place.predict("test.csv") == expected
    out = place.run("records", "from-csv", "test.csv", "--spec", "spec.yaml", "--out", "shards")
    assert "The data has no column 'label': the records are for muster predict" in out.stdout
    assert place.predict("shards/part-*") == expected
    # One that is misspelt is not taken for one that is not there.
    place.write("typo.csv", table(ROWS, header="labell,n,word"))
    said = place.run("records", "from-csv", "typo.csv", "--spec", "spec.yaml", "--out", "s", code=1)
    assert "column 'label' is not in the header (did you mean 'labell'?)" in said.stderr


def test_an_error_in_a_row_names_its_line_alone(place):
    place.write("a.csv", table([(0, 1, "x"), (1, 1, "y")]))
    place.write("spec.yaml", SPEC.replace("{hash: word, buckets: 20}", "{identity: n2, buckets: 3}")
                .replace("  word: string", "  n2: int"))  # fmt: skip
    place.write("b.csv", "label,n,n2\n0,1,1\n1,1,9\n")
    said = place.train("b.csv", code=1)
    assert "b.csv:3: column 'word': the value 9 is not below 3" in said
    assert re.search(r"row \d", said) is None


# What the files of the UCI repository and of Criteo look like.
ADULT_COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income-per-year"
).split()


def test_raw_adult_data_trains_at_once(place, real_data):
    rows = list(csv.reader(real_data("adult/adult.csv").open()))
    assert rows[0] == ADULT_COLUMNS
    place.write("adult.data", "".join(", ".join(row) + "\n" for row in rows[1:]) + "\n")
    spec = yaml.safe_load((REPOSITORY / "examples/adult/adult.yaml").read_text())
    spec["format"] = {"columns": ADULT_COLUMNS, "trim": True}
    spec["train"] |= {"epochs": 2, "shuffle": False}
    place.write("adult.yaml", yaml.safe_dump(spec, sort_keys=False))
    place.train("adult.data", spec="adult.yaml")
    trimmed = place.evaluate("adult.data")["auc"]
    assert trimmed > 0.85
    # The same rows with a header and without spaces give the same, to the bit.
    del spec["format"]
    place.write("adult.yaml", yaml.safe_dump(spec, sort_keys=False))
    place.write("adult.csv", "".join(",".join(row) + "\n" for row in rows))
    place.run("train", "adult.yaml", "--train", "adult.csv", "--model-dir", "other", "--quiet")
    out = place.run("evaluate", "--model-dir", "other", "--data", "adult.csv", "--json", "--quiet")
    assert json.loads(out.stdout)["auc"] == trimmed


def test_raw_criteo_data_trains_at_once(place, real_data):
    rows = list(csv.reader(real_data("criteo/criteo_sample.txt").open()))[1:]
    assert any(cell.startswith("-") for row in rows for cell in row[1:14]), "negative counts"
    raw = [[cell.removesuffix(".0") for cell in row] for row in rows]
    place.write("train.txt", "".join("\t".join(row) + "\n" for row in raw))
    place.write("test.txt", "".join("\t".join(row[1:]) + "\n" for row in raw))
    spec = (REPOSITORY / "examples/clicks/clicks.yaml").read_text()
    place.write("criteo.yaml", spec + "\nformat: {delimiter: tab, header: false}\n")
    place.train("train.txt", spec="criteo.yaml")
    assert place.evaluate("train.txt")["bad_records"] == 0
    predicted = place.predict("train.txt")
    assert len(predicted) == len(rows) + 1
    # Criteo's test.txt has no label.
    assert place.predict("test.txt") == predicted
    place.run("records", "from-csv", "test.txt", "--spec", "criteo.yaml", "--out", "shards")
    assert place.predict("shards/part-*") == predicted


def test_kaggle_s_titanic_is_scored_without_labels(place, real_data):
    spec = str(REPOSITORY / "examples/titanic/titanic.yaml")
    train, test = (str(real_data(f"titanic/{name}.csv")) for name in ("train", "test"))
    place.train(train, spec=spec)
    assert len(place.predict(test)) == 418 + 1
    expected = place.predict(test)
    place.run("records", "from-csv", test, "--spec", spec, "--out", "shards")
    assert place.predict("shards/part-*") == expected
