"""A root folder in which dpkg installs packages, with a separate database: this machine's is only
read."""

from __future__ import annotations

import pathlib
import re
import subprocess


class DebianRoot:
    """`installed` is the text of its database."""

    def __init__(self, folder: pathlib.Path, installed: str):
        self.folder = folder
        for name in ("info", "updates", "triggers"):
            (folder / "var/lib/dpkg" / name).mkdir(parents=True)
        (folder / "var/lib/dpkg/status").write_text(installed)

    def dpkg(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        # --force-not-root only matters to users other than root, who may write to this folder, too.
        return subprocess.run(
            ["dpkg", f"--root={self.folder}", "--force-not-root", "--force-script-chrootless",
             "--log=/dev/null", *map(str, arguments)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def files(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.glob("usr/**/*") if path.is_file()}


def status_of(*packages: str) -> str:
    """Returns what this machine's dpkg database says about these packages, without their
    dependencies."""
    said = subprocess.run(
        ["dpkg-query", "--status", *packages], capture_output=True, text=True, check=True
    ).stdout
    keep = ("Package:", "Status:", "Architecture:", "Version:", "Maintainer:", "Provides:", "Multi-Arch:")
    lines = []
    for paragraph in re.split(r"\n\n(?=Package:)", said):
        lines += [line for line in paragraph.splitlines() if line.startswith(keep)]
        lines += ["Description: of this machine", ""]
    return "\n".join(lines)
