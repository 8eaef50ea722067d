"""./quickstart uses a program of its version where it finds one, and builds only where there is none."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest


@pytest.fixture
def checkout(repository: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """What ./quickstart reads of a checkout."""
    folder = tmp_path / "checkout"
    (folder / "tools").mkdir(parents=True)
    for name in ("quickstart", "CMakeLists.txt", "tools/environment.sh", "tools/packages.sh"):
        shutil.copy(repository / name, folder / name)
    shutil.copytree(repository / "examples/clicks", folder / "examples/clicks")
    return folder


@pytest.fixture
def version(repository: pathlib.Path) -> str:
    text = (repository / "CMakeLists.txt").read_text()
    return re.search(r"project\(muster VERSION (\S+)", text)[1]


def script(path: pathlib.Path, line: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def quickstart(checkout: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With a `cmake` that fails: what would build stops there."""
    script(checkout / "commands/cmake", "echo this would build; exit 1")
    path = f"{checkout}/commands:{os.environ['PATH']}"
    return subprocess.run(
        [checkout / "quickstart", "--no-install", *arguments], capture_output=True, text=True,
        env={**os.environ, "PATH": path}, timeout=600, check=False,
    )  # fmt: skip


def test_a_wheel_in_dist_is_used(checkout, version) -> None:
    wheel = checkout / f"dist/muster-{version}-py3-none-any.whl"
    wheel.parent.mkdir()
    binary = pathlib.Path(os.environ["MUSTER_BINARY"])
    with zipfile.ZipFile(wheel, "w") as file:
        for name in ("muster", "muster-tensorflow"):
            file.write(binary.with_name(name), f"muster/bin/{name}")
    done = quickstart(checkout)
    assert done.returncode == 0, done.stderr
    assert f"Using muster {version} of dist/{wheel.name} " in done.stdout
    assert "Building" not in done.stdout
    assert float(re.search(r"AUC +([0-9.]+)", done.stdout)[1]) > 0.7, done.stdout


def test_an_installed_program_of_this_version_is_used(checkout, version) -> None:
    """The programs here do no more than to say their version."""
    installed = script(checkout / "commands/muster", "echo muster 0.0.1")
    assert "this would build" in quickstart(checkout).stderr
    script(installed, f'[ "$1" = --version ] && echo muster {version}')
    assert f"Using muster {version} of {installed} " in quickstart(checkout).stdout
    assert "this would build" in quickstart(checkout, "--build").stderr


def test_an_archive_in_the_folder_is_used(checkout, version) -> None:
    name = f"muster-{version}-linux-x86_64"
    script(checkout / name / "bin/muster", f"echo muster {version}")
    subprocess.run(["tar", "-czf", f"{name}.tar.gz", name], cwd=checkout, check=True)
    assert f"Using muster {version} of ./{name}.tar.gz " in quickstart(checkout).stdout
