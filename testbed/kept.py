"""Keeps what TensorFlow makes for the tests, such as exports, trainings and reference numbers: it
is made once for the programs that make it, the test whose function makes it, what of this repository
these import, the TensorFlow that runs them and this processor, and kept in MUSTER_CACHE/kept.
MUSTER_RUN_AGAIN=1 makes everything anew."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import pathlib
import shutil
import tempfile
import time
from typing import Callable, Iterable, Iterator

ROOT = pathlib.Path(__file__).parent.parent
DAYS = 30


def cache() -> pathlib.Path:
    home = pathlib.Path(os.environ.get("HOME", "/tmp"))
    return pathlib.Path(os.environ.get("MUSTER_CACHE", home / ".cache/muster")) / "kept"


def processor() -> str:
    """Returns the processor features on which TensorFlow's last digits depend."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line for line in lines if line.startswith("flags")), "")


def file_of(make: Callable[[pathlib.Path], bool]) -> pathlib.Path:
    """Returns the file in which `make` is written."""
    function = make if inspect.isfunction(make) else type(make).__call__
    return pathlib.Path(inspect.getfile(function))


def imported_names(file: pathlib.Path) -> Iterator[str]:
    """The modules that a program names in its imports, wherever these stand, and what it imports from them."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                package = file.parents[node.level - 1].relative_to(home_of(file)).parts
                module = ".".join([*package, *filter(None, [module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def home_of(file: pathlib.Path) -> pathlib.Path:
    """The folder from which the modules of a file are imported."""
    python = ROOT / "python"
    return python if python in file.parents else ROOT


def find_files(name: str) -> list[pathlib.Path]:
    """The files of this repository that the import of a name runs: its module last, after the packages around it."""
    parts = name.split(".")
    return [
        path
        for home in (ROOT, ROOT / "python")
        for end in range(1, len(parts) + 1)
        for path in (home.joinpath(*parts[:end], "__init__.py"), home.joinpath(*parts[:end]).with_suffix(".py"))
        if path.is_file()
    ]


def with_imports(programs: Iterable[pathlib.Path]) -> list[pathlib.Path]:
    """These programs, with what they import of this repository, and what that imports. Of a package around a module
    that is imported only its __init__.py counts: muster and muster.estimator import much that only others use."""
    found, around = set[pathlib.Path](), set[pathlib.Path]()
    waiting = list(programs)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        for files in map(find_files, imported_names(file)):
            waiting += files[-1:]
            around.update(files[:-1])
    return sorted(found | around)


def key_of(
    make: Callable[[pathlib.Path], bool], interpreter: str, *inputs: str, programs: Iterable[pathlib.Path] = ()
) -> str:
    """Returns the name under which results are kept. `interpreter`, a path, has the checksum of its
    requirements in it."""
    digest = hashlib.sha256("\0".join((interpreter, processor(), *inputs)).encode())
    for path in with_imports([*programs, file_of(make)]):
        digest.update(f"{os.path.relpath(path, ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def folder(
    wanted: pathlib.Path, interpreter: str, *inputs: str, make: Callable[[pathlib.Path], bool],
    programs: Iterable[pathlib.Path] = (),
) -> pathlib.Path:  # fmt: skip
    """Returns `wanted` with what `make(wanted)` makes from the inputs; it is kept if `make` returns
    True. `programs`: what `make` runs in other processes."""
    kept = cache() / key_of(make, interpreter, *inputs, programs=programs)
    if kept.is_dir() and not os.environ.get("MUSTER_RUN_AGAIN"):
        os.utime(kept)
        return pathlib.Path(shutil.copytree(kept, wanted, dirs_exist_ok=True))
    wanted.mkdir(exist_ok=True)
    if make(wanted):
        keep(wanted, kept)
    return wanted


def keep(made: pathlib.Path, kept: pathlib.Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    for old in kept.parent.iterdir():
        if old.stat().st_mtime < time.time() - DAYS * 86_400:
            shutil.rmtree(old, ignore_errors=True)
    copy = pathlib.Path(tempfile.mkdtemp(dir=kept.parent))
    shutil.copytree(made, copy, dirs_exist_ok=True)
    try:
        copy.rename(kept)
    except OSError:  # another process has kept it in the meantime
        shutil.rmtree(copy)
