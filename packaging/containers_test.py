"""What can be said of the container file without building an image."""

from __future__ import annotations

import fnmatch
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).parent.parent
CONTAINERS = ROOT / "packaging" / "containers"


def read_stages() -> dict[str, list[str]]:
    """The instructions of each image, with continued lines joined."""
    text = (CONTAINERS / "Dockerfile").read_text().replace("\\\n", " ")
    stages: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("FROM "):
            lines: list[str] = []
            stages[line.split()[-1]] = lines
        elif line and not line.startswith("#"):
            lines.append(line)
    return stages


def test_what_a_build_copies_is_there() -> None:
    ignored = (CONTAINERS / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    for lines in read_stages().values():
        sources = re.findall(r"source=([^, ]+)", " ".join(lines))
        assert sources
        for source in sources:
            assert f"!{source}" in ignored
            assert source == "dist" or (ROOT / source).is_file(), source


def test_packages_have_the_names_that_are_installed() -> None:
    release = (ROOT / "tools" / "release.sh").read_text()
    assert "dist" in release
    patterns = re.findall(r"/dist/(\S+)", " ".join(sum(read_stages().values(), [])))
    names = ["muster_0.1.0_amd64.deb", "muster-0.1.0-py3-none-manylinux_2_36_x86_64.whl"]
    for pattern in patterns:
        assert any(fnmatch.fnmatchcase(name, pattern) for name in names), pattern


def test_no_image_runs_as_root() -> None:
    for name, lines in read_stages().items():
        users = [line.split()[1] for line in lines if line.startswith("USER ")]
        # By number: Kubernetes does not start an image with runAsNonRoot whose user is a name.
        assert users and users[-1].isdecimal() and int(users[-1]) > 0, name
        assert f"--uid {users[-1]} " in " ".join(lines), name


def test_the_operator_runs_in_the_image_without_root_and_without_writing() -> None:
    deployment = yaml.safe_load((ROOT / "deploy/kubernetes/operator.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    user = pod["securityContext"]["runAsUser"]
    assert pod["securityContext"]["runAsNonRoot"] and f"USER {user}" in read_stages()["slim"]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["command"][0] == "muster"  # in the PATH, where the package puts it
    assert 'ENTRYPOINT ["muster"]' in read_stages()["slim"]
