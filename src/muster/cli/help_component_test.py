"""What `muster`, `muster help` and --help show."""

from __future__ import annotations

import json
import re

import pytest

FREQUENT = ["--train", "--eval", "--epochs", "--workers", "--threads", "--model-dir", "--json"]
RARE = ["--keep-checkpoint-hours", "--histogram-steps", "--stall-timeout", "--precision"]
HIDDEN = ["--hook-calls", "--hook-answers"]


def get_verbs(text: str) -> list[str]:
    return re.findall(r"^  ([a-z][a-z-]*)  +\S", text, re.MULTILINE)


def get_all_verbs(muster) -> list[list[str]]:
    verbs = [[verb] for verb in get_verbs(muster.run("help"))]
    for group in ("records", "sample", "fs"):
        verbs += [[group, verb] for verb in get_verbs(muster.run(group, "--help"))]
    return verbs


def test_muster_alone_shows_the_verbs_in_groups_a_line_each(muster) -> None:
    shown = muster.run()
    assert shown == muster.run("help") == muster.run("--help")
    for title in ("Data:", "Models:", "Jobs of several processes:", "This program:"):
        assert f"\n{title}\n" in shown
    assert {"train", "run", "records", "doctor", "completion", "worker"} <= set(get_verbs(shown))
    for hidden in ("agent", "reach", "coordinator", "supervise", "file-service",
                   "slot-coordinator", "man"):
        assert hidden not in get_verbs(shown)
    assert "Subcommands" not in shown and "Verbs:" not in shown
    assert "\nFirst steps:\n  muster sample" in shown
    # Only what works: Spark is not there yet.
    assert not re.search("spark|where the data lives", shown, re.IGNORECASE)


def test_no_line_of_any_help_is_wider_than_80_columns(muster) -> None:
    for verb in [[], *get_all_verbs(muster)]:
        for flag in ("--help", "--help-all"):
            shown = muster.run(*verb, flag)
            assert max(map(len, shown.splitlines())) <= 80, (verb, flag)
            assert "Usage: muster" in shown
            assert not re.search(r"\[-?[0-9.e+]+ - [0-9]|:POSITIVE|:NONNEGATIVE|TEXT:", shown), verb
            assert "....." not in shown, verb
        if verb:
            assert "Example" in muster.run(*verb, "--help"), verb
            assert muster.run("help", *verb) == muster.run(*verb, "--help")


def test_frequent_flags_come_first_and_help_all_shows_the_others(muster) -> None:
    frequent = muster.run("train", "--help")
    everything = muster.run("train", "--help-all")
    for flag in FREQUENT:
        assert flag in frequent and flag in everything
    for flag in RARE:
        assert flag not in frequent and flag in everything
    for flag in HIDDEN:
        assert flag not in everything
    assert frequent.index("\nData:\n") < frequent.index("\nTraining:\n")
    assert "muster train --help-all shows also:" in frequent
    assert len(frequent.splitlines()) < 0.7 * len(everything.splitlines())


READERS = ["train", "worker", "evaluate", "predict", "explain", "init", "records inspect",
           "records verify", "records stats", "records index"]  # fmt: skip


@pytest.mark.parametrize("verb", READERS)
def test_a_verb_that_reads_json_lines_says_so_and_how_the_format_is_named(verb, muster) -> None:
    shown = re.sub(r"\s+", " ", muster.run(*verb.split(), "--help-all"))
    assert "or JSON lines: files" in shown
    assert "--data-format FORMAT csv, tfrecord, or jsonl for JSON lines" in shown


@pytest.mark.parametrize("verb", ["train", "evaluate", "predict", "export", "inspect"])
def test_a_model_folder_is_an_argument_or_a_flag_of_every_verb(verb, muster) -> None:
    assert "also --model-dir" in re.sub(r"\s+", " ", muster.run(verb, "--help"))


def test_a_folder_given_in_either_way_is_the_same(muster, tmp_path) -> None:
    (tmp_path / "spec.yaml").write_text(
        "inputs: {x: float, y: int}\nlabel: y\ncolumns: {x: {numeric: x}}\n"
        "model: {type: linear, linear: {columns: [x], optimizer: {sgd: {learning_rate: 0.1}}}}\n"
    )
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,1\n-1,0\n" * 20)
    data = ("--train", tmp_path / "rows.csv")
    muster.run("train", tmp_path / "spec.yaml", tmp_path / "a", *data)
    muster.run("train", tmp_path / "spec.yaml", "--model-dir", tmp_path / "b", *data)
    scores = {}
    for name in "ab":
        for way in ([], ["--model-dir"]):
            folder = [*way, tmp_path / name]
            rows = ("--data", tmp_path / "rows.csv")
            scores[name, len(way)] = muster.run("evaluate", *folder, *rows, "--json").replace(
                str(tmp_path / name), ""
            )
            out = tmp_path / f"{name}{len(way)}.csv"
            muster.run("predict", *folder, *rows, "--out", out)
            muster.run("export", *folder, "--out", tmp_path / f"{name}{len(way)}.export")
            assert "linear" in muster.run("inspect", *folder)
            assert out.read_text() == (tmp_path / "a0.csv").read_text()
    assert len(set(scores.values())) == 1


def test_version_as_json(muster) -> None:
    version = json.loads(muster.run("version", "--json"))
    assert muster.run("version") == muster.run("--version") == f"muster {version['version']}\n"
    assert version["instructions"] in ("baseline", "avx2", "avx512")
