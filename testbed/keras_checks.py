"""Runs the checks of muster.keras with the current TensorFlow (testbed/exports/runner.py)."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import pathlib
import subprocess

from testbed import kept

FOLDER = pathlib.Path(__file__).parent / "exports"
ROOT = FOLDER.parent.parent
DEADLINE = 1500.0  # for all checks of a file, on a loaded machine


def names(file: str) -> list[str]:
    """Returns the names of the functions check_NAME, without running the file."""
    tree = ast.parse((FOLDER / file).read_text())
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return [name[len("check_") :] for name in functions if name.startswith("check_")]


def keys(file: str, table: str) -> list[str]:
    """Returns the keys of the dict `table` in the file: its constants, or the functions it is made
    from."""
    tree = ast.parse((FOLDER / file).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == table:
            if isinstance(node.value, ast.Dict):
                return [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
            assert isinstance(node.value, ast.DictComp)
            functions = node.value.generators[0].iter
            assert isinstance(functions, ast.Tuple)
            return [one.id for one in functions.elts if isinstance(one, ast.Name)]
    raise AssertionError(f"{file} has no dict {table}")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}", "CUDA_VISIBLE_DEVICES": ""}


def checksum_of_muster() -> str:
    """Of the bytes of Muster's program and of the one beside it that loads TensorFlow."""
    muster = pathlib.Path(os.environ["MUSTER_BINARY"])
    digest = hashlib.sha256()
    for program in (muster, muster.with_name("muster-tensorflow")):
        digest.update(program.read_bytes())
    return digest.hexdigest()


def run(
    python: str, *arguments: object, with_binary: bool = False
) -> subprocess.CompletedProcess[str]:
    """Unless `with_binary`, the program cannot find Muster's binary, so that its results can be
    kept."""
    variables = environment()
    if not with_binary:
        del variables["MUSTER_BINARY"]
    return subprocess.run([python, *map(str, arguments)], env=variables, capture_output=True,
                          text=True, timeout=DEADLINE)  # fmt: skip


def make(
    program: str, folder: pathlib.Path, *names: str, by: str = "MUSTER_PYTHON_TENSORFLOW"
) -> pathlib.Path:
    """Returns `folder` with what testbed/programs/PROGRAM makes in it, run by the interpreter in
    `by`."""

    def make_it(folder: pathlib.Path) -> bool:
        run_program(program, folder, *names, by=by)
        return True

    return kept.folder(
        folder, os.environ[by], program, *names, make=make_it, programs=[ROOT / "testbed/programs" / program]
    )


def run_program(program: str, *arguments: object, by: str = "MUSTER_PYTHON_TENSORFLOW") -> None:
    done = run(os.environ[by], ROOT / "testbed/programs" / program, *arguments)
    assert done.returncode == 0, done.stderr[-4000:]


def make_trainings(folder: pathlib.Path, *names: str, **options: str) -> pathlib.Path:
    return make("keras_trainings.py", folder, *names, **options)


class Checks:
    """Runs all checks of a file once, in one process. `with_binary`: they run Muster, too."""

    def __init__(self, file: str, folder: pathlib.Path, with_binary: bool = False):
        self.results: dict[str, str] = {}
        python = os.environ["MUSTER_PYTHON_TENSORFLOW"]
        output, end = folder.with_suffix(".out"), ""

        def check_all(results: pathlib.Path) -> bool:
            nonlocal end
            done = run(python, FOLDER / "runner.py", FOLDER / file, folder, with_binary=with_binary)
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            (results / "results.jsonl").write_text("\n".join(lines))
            end = f"exit code {done.returncode}\n{done.stderr[-4000:]}"
            failed = [line for line in lines if json.loads(line)["error"]]
            return done.returncode == 0 and not failed

        programs = [FOLDER / "runner.py", FOLDER / file]
        run_by = [checksum_of_muster()] if with_binary else []
        kept.folder(output, python, "runner.py", file, *run_by, make=check_all, programs=programs)
        for line in (output / "results.jsonl").read_text().splitlines():
            result = json.loads(line)
            self.results[result["name"]] = result["error"]
        self.end = end

    def check(self, name: str) -> None:
        assert name in self.results, f"{name} did not run: {self.end}"
        assert not self.results[name], self.results[name]
