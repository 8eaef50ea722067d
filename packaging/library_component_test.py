"""The C++ Estimator API in a project outside of the tree: by find_package of what cmake --install
installed, and by add_subdirectory."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import pytest

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(users_project LANGUAGES CXX)
{muster}
add_executable(custom_estimator custom_estimator.cc)
target_link_libraries(custom_estimator PRIVATE Muster::train)
"""
FLAGS = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON")


def run(*command: object, **options: object) -> str:
    result = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=1500, check=False, **options
    )  # fmt: skip
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture
def project(repository: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(repository / "examples/custom_estimator/custom_estimator.cc", folder)
    return folder


@pytest.fixture(scope="module")
def release() -> pathlib.Path:
    """The build folder of the release preset."""
    return pathlib.Path(os.environ["MUSTER_BINARY"]).parents[2]


def configure(project: pathlib.Path, build: pathlib.Path, muster: str) -> None:
    (project / "CMakeLists.txt").write_text(PROJECT.format(muster=muster))
    run("cmake", "-S", project, "-B", build, *FLAGS)


def check_program(repository: pathlib.Path, program: pathlib.Path) -> None:
    """It must learn, and its hook must print."""
    run(repository / "examples/custom_estimator/run_test.sh", program, cwd=program.parent)


def test_who_builds_muster_alone_can_install_it(release) -> None:
    commands = run("ninja", "-C", release, "-t", "commands", "muster").splitlines()
    assert [line for line in commands if re.search("-E copy .*/muster-parquet ", line)]


def test_find_package(repository, release, project, tmp_path) -> None:
    run("cmake", "--install", release, "--prefix", tmp_path / "first")
    prefix = (tmp_path / "first").rename(tmp_path / "prefix")  # an installed folder may be moved
    headers = [path.name for path in prefix.rglob("*.h")]
    assert "shortest_float.h" in headers
    assert not [name for name in headers if re.search("_test|^test_|conformance", name)]
    assert not [path for path in prefix.rglob("*.cmake") if str(repository) in path.read_text()]
    configure(project, tmp_path / "build", f'find_package(Muster 0.1 REQUIRED HINTS "{prefix}")')
    run("cmake", "--build", tmp_path / "build")
    check_program(repository, tmp_path / "build/custom_estimator")
    assert run(prefix / "bin/muster", "--version").startswith("muster ")


def test_a_version_that_is_not_compatible_is_refused(release, project, tmp_path) -> None:
    prefix = tmp_path / "prefix"
    run("cmake", "--install", release, "--prefix", prefix, "--component", "development")
    with pytest.raises(AssertionError, match='with requested version "1.0"'):
        configure(project, tmp_path / "build", f'find_package(Muster 1.0 REQUIRED HINTS "{prefix}")')


def test_add_subdirectory(repository, release, project, tmp_path) -> None:
    """The layers are not compiled a second time: their archives are those of the release preset, put
    where the user's project would make them."""
    build = tmp_path / "build"
    configure(project, build, f'add_subdirectory("{repository}" muster)')
    commands = run("ninja", "-C", build, "-t", "commands", "custom_estimator").splitlines()
    for archive in release.glob("src/muster/*.a"):
        shutil.copy(archive, build / "muster/src/muster")
    for command in (line for line in commands if "muster/src/muster/CMakeFiles" not in line):
        run("sh", "-c", command, cwd=build)
    check_program(repository, build / "custom_estimator")
