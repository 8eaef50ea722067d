"""A run that does not learn is told so with the line to change; the examples are not.

The rules are stated in features/scale.h and train/learned_check.h.
"""

from __future__ import annotations

import pathlib
import re
import subprocess

import pytest
import yaml

EXAMPLES = {
    "adult": "adult/adult.csv",
    "titanic": "titanic/train.csv",
    "clicks": None,
}


def train(muster, spec, data, model, *flags) -> subprocess.CompletedProcess[str]:
    result = muster.call("train", spec, model, "--train", data, *flags)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_example_is_warned(name, muster, repository, real_data, tmp_path) -> None:
    if EXAMPLES[name] is None:
        data = tmp_path / "clicks.csv"
        muster.run("sample", "clicks", "--rows", 20000, "--seed", 1, "--out", data)
    else:
        data = real_data(EXAMPLES[name])
    spec = repository / "examples" / name / f"{name}.yaml"
    for epochs in (1, 2):
        said = train(muster, spec, data, tmp_path / f"model{epochs}", "--epochs", epochs)
        assert "warning" not in said.stderr


def by_defaults(repository: pathlib.Path) -> dict:
    """The census model as someone writes it first: no optimizers, numbers as they are."""
    spec = yaml.safe_load((repository / "examples/adult/adult.yaml").read_text())
    for column in spec["columns"].values():
        for option in ("mean", "stddev", "log1p"):
            column.pop(option, None)
    del spec["model"]["linear"]["optimizer"], spec["model"]["dnn"]["optimizer"]
    return spec


def test_the_lines_that_a_warning_names_mend_the_model(muster, repository, real_data, tmp_path) -> None:
    data = real_data("adult/adult.csv")
    spec = by_defaults(repository)
    path = tmp_path / "defaults.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    flags = ("--epochs", 5)
    said = train(muster, path, data, tmp_path / "defaults", *flags).stderr
    [line] = [line for line in said.splitlines() if "reaches the model" in line]
    assert "column 'gain'" in line and "up to 99999" in line
    written = re.search(r"model file: (gain: \{[^}]*\})", line)
    assert written, line
    spec["columns"].update(yaml.safe_load(written[1]))
    for optimizer, part in re.findall(r"optimizer: (\{\w+: \{[^}]*\}\}) in model\.(\w+)", line):
        spec["model"][part]["optimizer"] = yaml.safe_load(optimizer)
    assert {"optimizer"} <= spec["model"]["dnn"].keys() & spec["model"]["linear"].keys()
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    assert "reaches the model" not in train(muster, path, data, tmp_path / "mended", *flags).stderr

    def auc(model: str) -> float:
        return muster.event("evaluated", "evaluate", tmp_path / model, "--data", data)["auc"]

    aucs = {name: auc(name) for name in ("mended", "defaults")}
    assert aucs["mended"] > max(0.87, aucs["defaults"] + 0.05), aucs


FAR = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x], optimizer: {sgd: {learning_rate: 1e-6}}}}
"""


def test_a_mean_that_is_far_off_is_told_once(muster, tmp_path) -> None:
    lines = [f"{(i % 7 - 3) / 3:g},{int(i % 10 == 0)}" for i in range(20000)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    (tmp_path / "far.yaml").write_text(FAR)
    said = train(muster, tmp_path / "far.yaml", tmp_path / "rows.csv", tmp_path / "far").stderr
    warnings = [line for line in said.splitlines() if "has not learned" in line]
    assert len(warnings) == 1, said
    assert "that of the labels 0.0998 " in warnings[0]
    assert "optimizer: {sgd: {learning_rate: 0.01}} in model.linear (it is 1e-06)" in warnings[0]
    better = ("--set", "model.linear.optimizer={sgd: {learning_rate: 2}}")
    said = train(muster, tmp_path / "far.yaml", tmp_path / "rows.csv", tmp_path / "near", *better)
    assert "warning" not in said.stderr
