"""The package as a user installs it: typed, with the program inside, running anywhere."""

from __future__ import annotations

import csv
import os
import pathlib
import subprocess
import venv
import zipfile

import pytest

COLUMNS = (
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,"
    "gender,capital_gain,capital_loss,hours_per_week,native_country,income_bracket"
).split(",")


@pytest.fixture(scope="module")
def tools() -> str:
    """An interpreter with what builds and checks the package."""
    return os.environ["MUSTER_PYTHON_TOOLS"]


def run(*command: object, **options) -> str:
    result = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=1500, **options
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tools, repository, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(
        tools, "-m", "pip", "wheel", repository, "--no-build-isolation", "--no-deps", "--no-index",
        "--disable-pip-version-check", "--wheel-dir", folder,
        # The name by which CMake calls the compiler elsewhere: ccache knows what the release build
        # compiled.
        env={**os.environ, "CXX": "c++"},
    )  # fmt: skip
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> pathlib.Path:
    """The bin folder of an environment with the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin/python", "-m", "pip", "install", "--disable-pip-version-check"]
    run(*pip, "--no-index", "--no-deps", wheel)
    return folder / "bin"


def clean_environment(**more: str) -> dict[str, str]:
    """Without what would lead to the checkout."""
    hidden = ("MUSTER_BINARY", "PYTHONPATH", "MUSTER_PYTHON_TOOLS")
    return {**{k: v for k, v in os.environ.items() if k not in hidden}, **more}


@pytest.fixture(scope="module")
def tables(real_data, tmp_path_factory) -> tuple[pathlib.Path, pathlib.Path]:
    """The census table, split, with a header of the program's names."""
    folder = tmp_path_factory.mktemp("adult")
    with open(real_data("adult/adult.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    paths = folder / "train.csv", folder / "test.csv"
    for path, keep in zip(paths, (lambda i: i % 5 != 4, lambda i: i % 5 == 4)):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(row for i, row in enumerate(rows) if keep(i))
    return paths


def test_types_are_strict(tools, repository) -> None:
    cache = os.devnull
    run(tools, "-m", "mypy", "--cache-dir", cache, cwd=repository)


def test_the_wheel_is_for_this_platform_and_has_no_tests(wheel) -> None:
    assert "-py3-none-linux_" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    programs = {"muster/bin/muster", "muster/bin/muster-tensorflow"}
    assert programs | {"muster/py.typed", "muster/estimator/core.py"} <= set(names)
    assert not [name for name in names if name.endswith("_test.py")]


def test_the_command_is_there(installed, tmp_path) -> None:
    out = run(installed / "muster", "--version", cwd=tmp_path, env=clean_environment())
    assert out.startswith("muster ")


def test_the_census_program_without_tensorflow(installed, tables, repository, tmp_path) -> None:
    train, test = tables
    out = run(
        installed / "python", repository / "examples/estimator_program/adult_files.py",
        "--train", train, "--test", test, "--model-dir", "model", "--epochs", 10,
        cwd=tmp_path, env=clean_environment(),
    )  # fmt: skip
    metrics = dict(line.split(": ") for line in out.splitlines() if ": " in line)
    assert float(metrics["auc"]) > 0.88
    assert (tmp_path / "model/saved").is_dir()
    assert "exported model/saved/" in out


def test_the_census_program_with_tensorflow(installed, tables, repository, tmp_path) -> None:
    """TensorFlow feeds it; it is the one of the environment that runs this test."""
    headless = []
    for table in tables:
        lines = table.read_text().splitlines(keepends=True)[1:2001]
        headless.append(tmp_path / table.name)
        headless[-1].write_text("".join(lines))
    import numpy

    packages = pathlib.Path(numpy.__file__).parent.parent
    environment = clean_environment(PYTHONPATH=str(packages), TF_CPP_MIN_LOG_LEVEL="3")
    out = run(
        installed / "python", repository / "examples/estimator_program/adult.py",
        "--train", headless[0], "--test", headless[1], "--model-dir", "model", "--epochs", 2,
        cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert "global_step: 100" in out
    assert out.count("predicted ") == 5
