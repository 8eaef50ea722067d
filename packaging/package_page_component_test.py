"""The page that a package index shows: its commands run, and it has no link that is dead there."""

from __future__ import annotations

import os
import pathlib
import random
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).parent.parent
LINK = re.compile(r"\]\((?!https?://)|(?:src|href)=\"(?!https?://)")


def test_no_link_is_relative() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / project["readme"]).read_text()
    assert not LINK.search(page)
    assert "urls" in project or "This page has no links" in page
    assert LINK.search((ROOT / "README.md").read_text()), "the first page of the sources has some"


def test_its_commands_run(muster, tmp_path) -> None:
    chosen = random.Random(1)
    rows = [f"{chosen.randint(18, 70)},{chosen.choice('abc')},{i % 2}\n" for i in range(200)]
    (tmp_path / "data.csv").write_text("age,job,clicked\n" + "".join(rows))
    (tmp_path / "muster").symlink_to(muster.binary)
    page = (ROOT / "packaging/package_page.md").read_text()
    (commands,) = re.findall(r"```sh\npip install muster\n(.*?)```", page, re.DOTALL)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", commands], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 201
