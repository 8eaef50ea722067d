"""The packages of tools/release.sh, as users install them: the wheel in each Python of this machine,
the Debian package under another root, the archive in a folder that moves."""

from __future__ import annotations

import ast
import csv
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from typing import Any

import pytest

from testbed import keras_checks
from testbed.debian_root import DebianRoot, status_of

PROGRAMS = ("muster", "muster-tensorflow")
MB = 1_000_000
SIZES = {"muster": 16 * MB, "muster-tensorflow": MB}  # 5 MB are OpenSSL's and libstdc++'s
# What programs of TensorFlow load, in its folder.
LIBRARIES = ("libmuster-tensorflow-hdfs.so", "libhdfs.so")
HDFS_FILES = {f"tensorflow-hdfs/{name}" for name in (*LIBRARIES, "sitecustomize.py")}
LIBRARY_SIZE = 0.2 * MB
JARS = ("muster-yarn.jar", "muster-tfrecord.jar")
JAR_SIZE = 0.1 * MB
# Run where this machine has them; the syntax of the package is checked for the oldest one anyway.
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
OLDEST_PYTHON = (3, 8)
OLDEST_C_LIBRARY = (2, 34)
# Of the C library and the compiler, which each distribution has.
LIBRARIES_OF_ALL = {
    "ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6",
}  # fmt: skip
COLUMNS = (
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,"
    "gender,capital_gain,capital_loss,hours_per_week,native_country,income_bracket"
).split(",")
SMALL_PROGRAM = """
import sys
from muster import estimator, feature_column
with open("t.csv", "w") as file:
    file.write("x,y\\n" + "".join("%g,%d\\n" % (i / 50 - 1, i > 50) for i in range(100)))
model = estimator.LinearClassifier([feature_column.numeric_column("x")], model_dir="model")
model.train(lambda: estimator.inputs.csv("t.csv", label="y", batch_size=10, num_epochs=50))
print(model.evaluate(lambda: estimator.inputs.csv("t.csv", label="y", batch_size=10))["auc"])
assert "tensorflow" not in sys.modules and "numpy" not in sys.modules
"""


@pytest.fixture(scope="module")
def tools() -> str:
    """An interpreter with what builds and checks the package."""
    return os.environ["MUSTER_PYTHON_TOOLS"]


def run(*command: object, **options: Any) -> str:
    result = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=600, check=False, **options
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


def clean_environment(**more: str) -> dict[str, str]:
    """Without what would lead to the checkout."""
    hidden = ("MUSTER_BINARY", "PYTHONPATH", "MUSTER_PYTHON_TOOLS")
    return {**{k: v for k, v in os.environ.items() if k not in hidden}, **more}


@pytest.fixture(scope="module")
def release(repository, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("dist")
    run(repository / "tools/release.sh", "--out", folder)
    return folder


@pytest.fixture(scope="module")
def version(repository) -> str:
    text = (repository / "CMakeLists.txt").read_text()
    return re.search(r"project\(muster VERSION (\S+)", text)[1]


def only(folder: pathlib.Path, pattern: str) -> pathlib.Path:
    (path,) = folder.glob(pattern)
    return path


@pytest.fixture(scope="module")
def wheel(release) -> pathlib.Path:
    return only(release, "*.whl")


def new_environment(folder: pathlib.Path, python: str, wheel: pathlib.Path, tools: str) -> pathlib.Path:
    """The bin folder of an environment with the wheel and nothing else."""
    run(python, "-m", "venv", "--without-pip", folder)
    run(tools, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-index",
        "--no-deps", "--disable-pip-version-check", wheel)  # fmt: skip
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(wheel, tools, tmp_path_factory) -> pathlib.Path:
    return new_environment(tmp_path_factory.mktemp("environment"), tools, wheel, tools)


@pytest.fixture(scope="module")
def archive(release, tmp_path_factory) -> pathlib.Path:
    """The archive's folder, which has moved since it was unpacked."""
    folder = tmp_path_factory.mktemp("archive")
    with tarfile.open(only(release, "*-linux-*.tar.gz")) as file:
        file.extractall(folder / "first")
    (folder / "first").rename(folder / "second")
    (content,) = (folder / "second").iterdir()
    return content


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


def needed_libraries(program: pathlib.Path) -> set[str]:
    text = run("readelf", "--dynamic", "--wide", program)
    return set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", text))


def oldest_c_library(program: pathlib.Path) -> tuple[int, ...]:
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", program))
    return max(tuple(map(int, version)) for version in found)


def test_checksums_and_names(release, version) -> None:
    names = {path.name for path in release.iterdir()}
    major, minor = OLDEST_C_LIBRARY
    assert names == {
        f"muster-{version}-py3-none-manylinux_{major}_{minor}_x86_64.whl",
        f"muster_{version}_amd64.deb", f"muster-{version}-linux-x86_64.tar.gz",
        f"muster-{version}.tar.gz", f"SHA256SUMS-{version}",
    }  # fmt: skip
    sums = dict(
        reversed(line.split()) for line in only(release, "SHA256SUMS*").read_text().splitlines()
    )
    assert sums == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in release.iterdir() if not path.name.startswith("SHA256SUMS")
    }  # fmt: skip


def test_pip_can_build_the_sources(release, version, tmp_path) -> None:
    """CMake and ninja, which fail on a file that is missing, are content with what pip asks them for.
    Nothing is compiled: the release preset has compiled the same files."""
    with tarfile.open(release / f"muster-{version}.tar.gz") as file:
        file.extractall(tmp_path)
    sources = tmp_path / f"muster-{version}"
    settings = tomllib.loads((sources / "pyproject.toml").read_text())["tool"]["scikit-build"]
    defines = [f"-D{name}={value}" for name, value in settings["cmake"]["define"].items()]
    run("cmake", "-S", sources, "-B", tmp_path / "build", "-G", "Ninja", *defines)
    run("ninja", "-C", tmp_path / "build", "-n", *settings["build"]["targets"])
    (component,) = settings["install"]["components"]
    assert f'COMPONENT STREQUAL "{component}"' in "".join(
        path.read_text() for path in (tmp_path / "build").rglob("cmake_install.cmake")
    )
    assert not list(sources.rglob("*_test.*"))
    assert (sources / "PKG-INFO").read_text().count(f"\nVersion: {version}\n") == 1


# The wheel.


def test_types_are_strict(tools, repository) -> None:
    run(tools, "-m", "mypy", "--cache-dir", os.devnull, cwd=repository)


def test_the_wheel_has_the_programs_and_no_tests(wheel) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    programs = {f"muster/bin/{name}" for name in PROGRAMS}
    programs |= {f"muster/bin/{name}" for name in (*HDFS_FILES, *JARS, "muster-parquet")}
    assert programs | {"muster/py.typed", "muster/estimator/core.py"} <= set(names)
    assert not [name for name in names if "_test" in name]


def test_the_wheel_finds_its_jar_for_spark(installed) -> None:
    jar = pathlib.Path(run(installed / "python", "-m", "muster.spark", env=clean_environment()).strip())
    assert jar.name == "muster-tfrecord.jar" and jar.stat().st_size < JAR_SIZE
    classes = zipfile.ZipFile(jar).namelist()
    assert {f"org/tensorflow/hadoop/io/TFRecordFile{way}Format.class" for way in ("Input", "Output")} <= set(classes)


def test_pip_install_says_what_it_does(tools, wheel, repository, tmp_path) -> None:
    """On the terminal, since pip keeps the output of builds to itself."""
    with zipfile.ZipFile(wheel) as file:
        for name in (*PROGRAMS, "muster-parquet", *HDFS_FILES):
            file.extract(f"muster/bin/{name}", tmp_path)
    command = [tools, "-m", "pip", "wheel", str(repository), "--no-deps", "--no-build-isolation",
               "--no-index", "--disable-pip-version-check", "--wheel-dir", str(tmp_path)]  # fmt: skip
    folder = tmp_path / "muster/bin"
    said = run("script", "--quiet", "--return", "--command", shlex.join(command), "/dev/null",
               env=clean_environment(MUSTER_PREBUILT=str(folder)))  # fmt: skip
    assert f"muster: packing the programs of {folder}" in said
    assert re.search(r"muster: the wheel was built in \d+ s", said)


def test_the_wheels_metadata_names_its_licences(wheel, version, repository) -> None:
    folder = f"muster-{version}.dist-info"
    with zipfile.ZipFile(wheel) as file:
        metadata = file.read(f"{folder}/METADATA").decode()
        third_party = file.read(f"{folder}/licenses/packaging/THIRD_PARTY.txt").decode()
        licence = file.read(f"{folder}/licenses/LICENSE")
    for line in ("Metadata-Version: 2.4", f"Version: {version}", "License-Expression: Apache-2.0",
                 "License-File: LICENSE", "Requires-Python: >=3.8"):  # fmt: skip
        assert f"{line}\n" in metadata
    assert (repository / "packaging/package_page.md").read_text().strip() in metadata
    assert licence == (repository / "LICENSE").read_bytes()
    for project in ("OpenSSL", "Abseil", "yaml-cpp", "farmhash", "zlib", "zstd", "Boost"):
        assert project in third_party


def test_the_wheels_programs_run_with_an_old_c_library_alone(wheel, tools, tmp_path) -> None:
    with zipfile.ZipFile(wheel) as file:
        for name in PROGRAMS:
            path = pathlib.Path(file.extract(f"muster/bin/{name}", tmp_path))
            assert needed_libraries(path) <= LIBRARIES_OF_ALL
            assert oldest_c_library(path) <= OLDEST_C_LIBRARY
            assert "libstdc++.so.6" not in needed_libraries(path) or name == "muster-tensorflow"
            assert ".debug_info" not in run("readelf", "--sections", "--wide", path)
            assert path.stat().st_size < SIZES[name]
        for name in LIBRARIES:
            path = pathlib.Path(file.extract(f"muster/bin/tensorflow-hdfs/{name}", tmp_path))
            assert needed_libraries(path) <= LIBRARIES_OF_ALL - {"libstdc++.so.6"}
            assert oldest_c_library(path) <= OLDEST_C_LIBRARY
            assert path.stat().st_size < LIBRARY_SIZE
    said = run(tools, "-m", "auditwheel", "show", wheel)
    assert wheel.name.split("-")[-1][: -len(".whl")] in " ".join(said.split())


@pytest.mark.parametrize("python", PYTHONS)
def test_a_program_without_tensorflow_in_each_python(
    python, wheel, tools, repository, tmp_path
) -> None:
    find = f"source tools/environment.sh && python_of {python}"
    found = run("bash", "-c", find, cwd=repository).strip()
    if not found:
        pytest.skip(f"untested: this machine has no Python {python}")
    folder = new_environment(tmp_path / "environment", found, wheel, tools)
    environment = clean_environment(PATH=f"{folder}:{os.environ['PATH']}")
    assert run("muster", "--version", env=environment).startswith("muster ")
    out = run(folder / "python", "-c", SMALL_PROGRAM, cwd=tmp_path, env=environment)
    assert float(out) > 0.95


def test_the_package_is_written_for_the_oldest_python(tools, repository) -> None:
    """Its syntax, and what it takes from the standard library."""
    for path in (repository / "python/muster").rglob("*.py"):
        ast.parse(path.read_text(), str(path), feature_version=OLDEST_PYTHON)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    run(pathlib.Path(tools).with_name("vermin"), f"--target={oldest}-", "--no-tips", "--violations",
        "--exclude-regex", r".*_test\.py$", "--backport", "typing",
        repository / "python/muster")  # fmt: skip


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


def test_tensorflow_knows_hdfs_in_what_the_wheel_starts(installed, tmp_path) -> None:
    program = "import tensorflow as tf; tf.io.gfile.exists('hdfs://127.0.0.1:1/x')"
    failed = subprocess.run(
        [installed / "muster", "run", "--", sys.executable, "-c", program], cwd=tmp_path,
        env=clean_environment(HADOOP_CONF_DIR=str(tmp_path)), capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert failed.returncode == 1
    assert "Connection refused" in failed.stdout + failed.stderr


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


# The archive.


def test_the_archive_trains_an_exported_model_wherever_it_lies(archive, tmp_path) -> None:
    """The program finds muster-tensorflow beside itself, also when it is called by a link."""
    # These three are what other tests use, too, so that they are made once.
    models = keras_checks.make_trainings(tmp_path / "keras", "adagrad", "words", "pictures")
    model = models / "adagrad"
    command = ("train", model / "export", "--train", model / "data.tfrecord", "--steps", "3", "--quiet")
    environment = clean_environment(MUSTER_TENSORFLOW=os.environ["MUSTER_PYTHON_TENSORFLOW"])
    link = tmp_path / "link"
    link.symlink_to(archive / "bin/muster")
    run(link, *command, "--model-dir", tmp_path / "m", env=environment)
    assert (tmp_path / "m/checkpoint").exists()

    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(archive / "bin/muster", alone)
    failed = subprocess.run(
        [alone / "muster", *command, "--model-dir", tmp_path / "n"],
        capture_output=True, text=True, env=environment, timeout=120, check=False,
    )  # fmt: skip
    assert failed.returncode == 1
    assert f"no muster-tensorflow beside {alone}/muster" in failed.stderr


def test_the_archive_gives_tensorflow_the_library_wherever_it_lies(archive, tmp_path) -> None:
    out = run(archive / "bin/muster", "run", "--", "env", cwd=tmp_path, env=clean_environment())
    folder = archive / "lib/muster/tensorflow-hdfs"
    assert f"PYTHONPATH={folder}\n" in out
    assert f"MUSTER_TENSORFLOW_HDFS={folder / LIBRARIES[0]}\n" in out
    assert {f"tensorflow-hdfs/{path.name}" for path in folder.iterdir()} == HDFS_FILES


def test_the_archive_has_licences_and_the_changes(archive) -> None:
    documents = {path.name for path in (archive / "share/doc/muster").iterdir()}
    assert documents == {"LICENSE", "THIRD_PARTY.txt", "CHANGELOG.md"}


# The Debian package.


def test_the_debian_package_needs_the_libraries_of_its_programs(release, version) -> None:
    (path,) = release.glob("*.deb")
    fields = dict(
        line.split(": ", 1)
        for line in run("dpkg-deb", "--field", path).splitlines() if ": " in line
    )  # fmt: skip
    assert fields["Package"] == "muster" and fields["Version"] == version
    names = {word.split(" ")[0] for word in fields["Depends"].split(", ")}
    assert names == {"libc6", "libgcc-s1", "libssl3", "libstdc++6"}
    assert all("(>= " in word for word in fields["Depends"].split(", "))


def test_the_debian_package_is_installed_runs_and_is_removed(release, version, tmp_path) -> None:
    (package,) = release.glob("*.deb")
    refused = DebianRoot(tmp_path / "empty", "").dpkg("--install", package)
    assert refused.returncode != 0 and "depends on libssl3" in refused.stderr, refused.stderr

    root = DebianRoot(tmp_path / "root", status_of("libc6", "libgcc-s1", "libssl3", "libstdc++6"))
    done = root.dpkg("--install", package)
    assert done.returncode == 0, done.stderr
    assert {"usr/bin/muster", "usr/bin/muster-tensorflow", "usr/share/doc/muster/LICENSE"} <= root.files()
    assert {f"usr/lib/muster/{name}" for name in HDFS_FILES} <= root.files()
    assert {f"usr/share/muster/{name}" for name in JARS} <= root.files()
    said = run(root.folder / "usr/bin/muster", "--version", env=clean_environment())
    assert said == f"muster {version}\n"
    assert (root.folder / "usr/bin/muster").stat().st_size < 10 * MB
    needed = set().union(*(needed_libraries(root.folder / "usr/bin" / name) for name in PROGRAMS))
    assert needed <= LIBRARIES_OF_ALL | {"libssl.so.3", "libcrypto.so.3"}

    done = root.dpkg("--remove", "muster")
    assert done.returncode == 0, done.stderr
    assert not root.files()
