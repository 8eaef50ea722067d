"""Test files of folders that are no packages have names of their own: pytest imports them by these."""

from __future__ import annotations

import collections
import pathlib

FOLDERS = ("src", "examples", "python", "docs", "testbed", "packaging")  # testpaths of pytest.ini


def test_no_two_test_files_have_one_name(repository: pathlib.Path) -> None:
    places = collections.defaultdict(list)
    for folder in FOLDERS:
        for path in (repository / folder).rglob("*_test.py"):
            if not (path.parent / "__init__.py").exists():
                places[path.name].append(str(path))
    assert places and [paths for paths in places.values() if len(paths) > 1] == []
