"""What newcomers do in their first hour, and what they are told."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess

import pytest

from testbed.waiting import wait

MODEL = """
inputs: {age: float, city: string, y: int}
label: y
columns: {age: {numeric: age}, city: {vocabulary: city, words: [Rome, Oslo, Lima]}}
model: {type: linear, linear: {columns: [age, city]}}
train: {batch_size: 10, epochs: 2}
"""
CITIES = ("Rome", "Oslo", "Lima")


def rows(cities: tuple[str, ...], count: int = 60) -> str:
    lines = (f"{i % 50},{cities[i % len(cities)]},{i % 2}" for i in range(count))
    return "age,city,y\n" + "\n".join(lines) + "\n"


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch) -> pathlib.Path:
    (tmp_path / "model.yaml").write_text(MODEL)
    (tmp_path / "rows.csv").write_text(rows(CITIES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    return tmp_path


def train(muster, model: str = "model") -> str:
    result = muster.call("train", "model.yaml", model, "--train", "rows.csv")
    assert result.returncode == 0, result.stderr
    return result.stderr


@pytest.mark.parametrize("verb", [["predict", "--out", "p.csv"], ["evaluate"]], ids=["predict", "evaluate"])
def test_words_that_the_model_does_not_know_are_told_if_they_are_many(verb, muster, place) -> None:
    train(muster)

    def warnings(cities: tuple[str, ...], *flags: str) -> list[str]:
        (place / "new.csv").write_text(rows(cities, 5000))
        result = muster.call(verb[0], "model", "--data", "new.csv", *verb[1:], *flags)
        assert result.returncode == 0, result.stderr
        return [line for line in result.stderr.splitlines() if line.startswith("warning: ")]

    assert warnings(CITIES) == []
    assert warnings(("Rome", "Bern")) == []  # a half
    assert warnings(("", "", "", "Rome")) == []  # missing values are not unknown
    [said] = warnings(("Rome", "Bern", "", "rome"))
    assert said.startswith("warning: column 'city' does not know 66.67 % of its values, such as 'Bern': "
                           "its words are 'Rome', 'Oslo', 'Lima'")  # fmt: skip
    assert warnings(("Rome", "Bern", "", "rome"), "--quiet") == [said]


def test_a_key_of_another_type_is_told_when_the_model_is_trained(muster, place) -> None:
    (place / "model.yaml").write_text(MODEL.replace("age: float", "age: float, id: int") + "key: id\n")
    with_ids = [("id," if i == 0 else f"a{i},") + line for i, line in enumerate(rows(CITIES).splitlines())]
    (place / "rows.csv").write_text("\n".join(with_ids) + "\n")
    said = train(muster)
    assert ("warning: predict will not be able to read the key: rows.csv:2: column 'id': 'a1' is not an int; "
            "if its values are words, make id a string under inputs in the model file") in said  # fmt: skip
    refused = muster.fail("predict", "model", "--data", "rows.csv", "--out", "p.csv")
    assert "make it a string under inputs in model/model.yaml" in refused and "rows.csv:2" in refused
    path = place / "model/model.yaml"
    lines = path.read_text()
    assert '"id": {type: int}' in lines, lines
    path.write_text(lines.replace('"id": {type: int}', '"id": {type: string}'))
    muster.run("predict", "model", "--data", "rows.csv", "--out", "p.csv")
    assert (place / "p.csv").read_text().splitlines()[1].startswith("a1,")


def test_a_key_that_can_be_read_or_is_not_there_is_not_mentioned(muster, place) -> None:
    (place / "model.yaml").write_text(MODEL.replace("age: float", "age: float, id: int") + "key: id\n")
    assert "key" not in train(muster)
    lines = rows(CITIES).splitlines()
    (place / "rows.csv").write_text("\n".join(["id," + lines[0], *(f"7,{line}" for line in lines[1:])]) + "\n")
    assert "key" not in train(muster, "other")


# What is there, the command after `muster`, and what its message holds.
FAILURES = [
    ({}, "tensorboard nosuch", "there is no folder nosuch"),
    ({}, "tensorboard rows.csv", "rows.csv is a file: give its folder, ."),
    ({}, "tensorboard ./rows.csv", "./rows.csv is a file: give its folder, ."),
    ({"kexp/model.json": b'{"version": 1}', "kexp/weights.index": b""},
     "train kexp/model.json model --train rows.csv", "no model file: give the folder kexp"),
    ({}, "train . model --train rows.csv", "give a model file, as muster init writes one, or the folder"),
    ({"p.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))}, "init p.png --label x --out n.yaml", "this is a picture"),
    ({"p": bytes(range(256)) * 4}, "init p --label x --out n.yaml", "p: its content is binary and of no known format"),
    ({"p": bytes(range(256)) * 4}, "train model.yaml model --train p", "p: its content is binary"),
    ({"de.csv": b"Alter,Gek\xfcndigt\n1,0\n2,1\n"}, "init de.csv --label Gek\u00fcndigt --out n.yaml", "give --encoding-errors latin1"),
    ({"s.csv": b"age, city,y\n1,Rome,0\n"}, "train model.yaml model --train s.csv",
     "(did you mean ' city'?); that name has spaces around it, which --trim leaves out"),
    ({"s.csv": b"age,city,y\n1,Rome,0\n1,Rome,1\n"}, "init s.csv --label y --out s.yaml",
     "can be learned from; column 'age' is left out: all values are the same; column 'city' is left out"),
]  # fmt: skip


@pytest.mark.parametrize("files, command, says", FAILURES, ids=[command for _, command, _ in FAILURES])
def test_what_went_wrong_names_what_to_write(files, command, says, muster, place) -> None:
    for name, content in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
    assert says in muster.fail(*command.split())


def test_a_jobs_folder_that_cannot_be_made_names_the_variable_that_moves_it(muster, place, monkeypatch) -> None:
    (place / "file").touch()
    monkeypatch.delenv("MUSTER_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "file"))
    said = muster.fail("train", "model.yaml", "model", "--train", "rows.csv", "--workers", "2")
    assert "set MUSTER_HOME to a folder of your own" in said


def test_a_relative_state_folder_does_not_count(muster, place, monkeypatch) -> None:
    """XDG Base Directory Specification 0.8."""
    monkeypatch.delenv("MUSTER_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(place / "home"))
    (place / "home").mkdir()
    muster.run("train", "model.yaml", "model2", "--train", "rows.csv", "--workers", "2", "--name", "here")
    assert (place / "home/.local/state/muster/jobs/here").exists()
    assert not (place / "state").exists()


def test_numbers_of_ints_are_written_in_full(muster, place) -> None:
    (place / "big.csv").write_text("a,y\n" + "".join(f"{1_709_290_000 + i % 500 * 2000},{i // 3 % 2}\n" for i in range(1000)))
    for command in ("init big.csv --label y --out big.yaml", "records stats big.csv"):
        assert "1709290000 to 1710288000, mean 1709789000" in muster.run(*command.split()), command
    assert "int, 1709290000 to 1710288000" in (place / "big.yaml").read_text()


def test_an_export_may_be_quiet(muster, place) -> None:
    train(muster)
    result = muster.call("export", "model", "--out", "saved", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Exported SavedModel of ")


def test_a_delimiter_of_the_model_file_that_does_not_fit_is_named(muster, place) -> None:
    (place / "model.yaml").write_text("format: {delimiter: tab}\n" + MODEL)
    assert "give --delimiter ','" in muster.fail("train", "model.yaml", "model", "--train", "rows.csv")
    (place / "rows.tsv").write_text(rows(CITIES).replace(",", "\t"))
    muster.run("train", "model.yaml", "model", "--train", "rows.tsv")
    said = muster.fail("predict", "model", "--data", "rows.csv", "--out", "p.csv")
    assert "not by tab, as --delimiter or 'format: {delimiter: ...}' of the model file says" in said
    muster.run("predict", "model", "--data", "rows.csv", "--out", "p.csv", "--delimiter", ",")


def test_files_that_are_other_ones_are_named_with_what_to_do(muster, place) -> None:
    for verb in (["run"], ["run", "--dry-run"]):
        said = muster.fail(*verb, "model.yaml")
        assert "model.yaml: is a model file, and no TFJob: muster train model.yaml" in said
    (place / "model.yaml").write_text("inputs:\n\tx: float\n\ty: int\nlabel: y\n")
    said = muster.fail("train", "model.yaml", "model", "--train", "rows.csv")
    assert "model.yaml:2: not YAML: a tab indents this line; write spaces" in said


def test_tables_are_aligned_and_values_stay_on_their_line(muster, place) -> None:
    names = ["price_\u20ac", "gr\u00f6\u00dfe", "\u540d\u524d", "plain"]
    (place / "wide.csv").write_text(",".join([*names, "y"]) + "\n" + '1,2,"a\nb",4,0\n5,6,"a\nb",8,1\n')
    spec = "inputs: {" + ", ".join(f'"{name}": string' for name in names) + ", y: int}\nlabel: y\n"
    columns = ", ".join(f'"{name}": {{vocabulary: "{name}", words: [q]}}' for name in names)
    (place / "wide.yaml").write_text(
        f"{spec}columns: {{{columns}}}\nmodel: {{type: linear, linear: {{columns: [plain]}}}}\n"
    )

    def places(text: str, mark: str) -> set[int]:
        """The terminal's columns in which `mark` begins, in lines that begin with one of the names."""
        found = set()
        for line in text.splitlines():
            if line.split("  ")[0].strip() in names:
                before = line[: line.index(mark)]
                found.add(sum(2 if "\u4e00" <= c <= "\u9fff" else 1 for c in before))
        return found

    told = muster.run("records", "stats", "wide.csv", "--spec", "wide.yaml")
    table, coverage = told.split("\n\n")
    assert len(places(table, "string")) == 1 and len(places(coverage, "100.0 %")) == 1, told
    assert "  a\\nb (2)" in table and len(table.splitlines()) == 2 + len(names) + 1
    told = muster.run("records", "stats", "wide.csv")
    assert "a\\nb (2)" in told and len(told.splitlines()) == 2 + len(names) + 1
    assert len({line.index(kind) for line, kind in zip(told.splitlines()[2:4], ["int", "int"])}) == 1
    told = muster.run("init", "wide.csv", "--label", "y", "--out", "w.yaml")
    assert "a\\nb" in told or "a b" in told


ENDLESS = {
    "train": ("train", "model.yaml", "model", "--train", "rows.csv", "--epochs", "100000000"),
    "train --workers": ("train", "model.yaml", "model", "--train", "rows.csv", "--epochs", "100000000",
                        "--workers", "2", "--job", "j"),
    "run": ("run", "--name", "j", "--", "sh", "-c", "touch started; exec sleep 1000"),
    "sample": ("sample", "clicks", "--rows", "1000000000", "--out", "clicks.csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_sigterm_ends_every_verb_with_143(name, muster, place) -> None:
    with subprocess.Popen(
        [muster.binary, *ENDLESS[name]], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        sign = {"run": "started", "sample": ".clicks.csv.tmp*"}.get(name, "model/checkpoint")
        wait(lambda: list(place.glob(sign)) or process.poll() is not None, f"{sign} or the end")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert "stopped" in said, said


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_training_whose_launcher_was_killed_is_told_once(muster, place) -> None:
    command = ["train", "model.yaml", "model", "--train", "rows.csv", "--epochs", "100000000", "--workers", "2"]
    launcher = subprocess.Popen(
        [muster.binary, *command, "--job", "first"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    lease = place / "model/muster.lease"
    wait(lease.exists, "the lease of the first")
    chief = json.loads(lease.read_text())["pid"]
    launcher.kill()
    launcher.wait(timeout=60)
    result = muster.call(*command, "--job", "second")
    alive = is_alive(chief)  # until it has missed the launcher for a while
    said = result.stdout + result.stderr
    wait(lambda: not is_alive(chief), "the end of the first's tasks")
    assert alive and result.returncode == 1, said
    assert said.count("is being trained by") == 1 and f"chief-0 of job 'first' (incarnation 1), process {chief}" in said
    assert not (place / "home/jobs/second").exists()
