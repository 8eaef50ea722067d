"""testbed/kept.py keeps what was made, and makes it anew if anything differs."""

from __future__ import annotations

import pathlib
import runpy

import pytest

from testbed import kept


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MUSTER_RUN_AGAIN", raising=False)
    return tmp_path / "cache/kept"


class Maker:
    def __init__(self, good: bool = True) -> None:
        self.calls, self.good = 0, good

    def __call__(self, folder: pathlib.Path) -> bool:
        self.calls += 1
        (folder / "inner").mkdir()
        (folder / "inner/made").write_text(f"call {self.calls}")
        return self.good


def test_it_is_made_once_for_the_same_inputs(tmp_path: pathlib.Path) -> None:
    make = Maker()
    for n in range(3):
        made = kept.folder(tmp_path / f"copy {n}", "python", "adagrad", make=make)
        assert made == tmp_path / f"copy {n}"
        assert (made / "inner/made").read_text() == "call 1"
        (made / "inner/made").write_text("a test may change its copy")
    assert make.calls == 1


@pytest.mark.parametrize("interpreter, name", [("python", "adam"), ("pypy", "adagrad")])
def test_other_inputs_have_their_own(tmp_path: pathlib.Path, interpreter: str, name: str) -> None:
    make = Maker()
    kept.folder(tmp_path / "one", "python", "adagrad", make=make)
    kept.folder(tmp_path / "two", interpreter, name, make=make)
    assert make.calls == 2


def test_a_changed_program_makes_it_anew(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of what it imports, but not another one."""
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    programs = tmp_path / "testbed/programs"
    (tmp_path / "python/muster/keras").mkdir(parents=True)
    programs.mkdir(parents=True)
    program = programs / "program.py"
    files = {
        program: "def f():\n    from testbed import used\nimport muster.keras.lazy\n",
        tmp_path / "testbed/used.py": "from . import deep",
        tmp_path / "testbed/deep.py": "import numpy",
        tmp_path / "python/muster/__init__.py": "import testbed.other",
        tmp_path / "python/muster/keras/lazy.py": "x = 1",
    }
    for path, text in {**files, tmp_path / "testbed/other.py": "x = 1"}.items():
        path.write_text(text)
    make, copies = Maker(), 0

    def made() -> int:
        nonlocal copies
        copies += 1
        kept.folder(tmp_path / f"copy {copies}", "python", make=make, programs=[program])
        return make.calls

    assert made() == 1
    (tmp_path / "testbed/other.py").write_text("x = 2")
    assert made() == 1
    for n, (path, text) in enumerate(files.items()):
        path.write_text(f"{text}\ny = {n}")
        assert made() == n + 2, path


def test_a_changed_test_whose_function_makes_it_makes_it_anew(tmp_path: pathlib.Path) -> None:
    test, calls = tmp_path / "some_component_test.py", tmp_path / "calls"
    for n, text in enumerate(("x = 1", "x = 1", "x = 2")):
        test.write_text(
            f"def make(folder):\n    {text}\n"
            f"    with open({str(calls)!r}, 'a') as file:\n        return file.write('x') == 1\n"
        )
        make = runpy.run_path(str(test))["make"]
        kept.folder(tmp_path / f"copy {n}", "python", make=make)
    assert calls.read_text() == "xx"


def test_what_failed_is_not_kept(tmp_path: pathlib.Path, cache: pathlib.Path) -> None:
    make = Maker(good=False)
    for n in range(2):
        kept.folder(tmp_path / f"copy {n}", "python", make=make)
    assert make.calls == 2 and not cache.exists()


def test_it_can_be_asked_for_anew(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()
    kept.folder(tmp_path / "one", "python", make=make)
    monkeypatch.setenv("MUSTER_RUN_AGAIN", "1")
    again = kept.folder(tmp_path / "two", "python", make=make)
    assert (again / "inner/made").read_text() == "call 2"
