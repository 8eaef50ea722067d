"""What docs/kubernetes.md shows as YAML: an API server takes it, and the jobs do what the page says."""

from __future__ import annotations

import pathlib
import shutil

import yaml

from testbed import documents
from testbed.kubernetes.api import Object
from testbed.kubernetes.native_jobs import NativeJobs
from testbed.kubernetes.operators import Space
from testbed.kubernetes.process_space import ProcessSpace
from testbed.muster import Muster

PAGE = "docs/kubernetes.md"
PLURALS = {"TFJob": "tfjobs", "NetworkPolicy": "networkpolicies"}


def documented() -> list[Object]:
    """The objects of the page's YAML, without their namespaces."""
    blocks = [block for block in documents.blocks_of(PAGE) if block.language == "yaml"]
    objects = [yaml.safe_load(block.text) for block in blocks]
    for each in objects:
        each["metadata"].pop("namespace", None)
    return objects


def find(kind: str, name: str) -> Object:
    (found,) = [o for o in documented() if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found


def test_the_api_server_takes_what_the_page_shows(space: Space) -> None:
    """Fields that it does not know would be an error."""
    shown = documented()
    assert {each["kind"] for each in shown} == set(PLURALS)
    for each in shown:
        target = (
            f"/apis/{each['apiVersion']}/namespaces/{space.name}/{PLURALS[each['kind']]}"
            "?dryRun=All&fieldValidation=Strict"
        )
        space.api.create(target, each)
        for replica in each["spec"].get("tfReplicaSpecs", {}).values():
            template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"},
                        "template": replica["template"]}  # fmt: skip
            space.api.create(
                f"{space.core}/podtemplates?dryRun=All&fieldValidation=Strict", template
            )


def make_data(muster: Muster, space: ProcessSpace, repository: pathlib.Path) -> pathlib.Path:
    """The claim `training`, with the model file, data/ and test/."""
    space.make_claim("training")
    folder = space.kubelet.claims / "training"
    folder.mkdir(parents=True)
    shutil.copy(repository / "examples/clicks/clicks.yaml", folder)
    muster.run("sample", "clicks", "--rows", 3000, "--seed", 1, "--out", folder / "clicks.csv")
    muster.run("records", "from-csv", folder / "clicks.csv", "--spec", folder / "clicks.yaml",
               "--out", folder / "data")  # fmt: skip
    shutil.copytree(folder / "data", folder / "test")
    return folder


def test_parameter_servers_with_an_evaluator_and_scores_of_several_pods(
    process_space: ProcessSpace, muster: Muster, repository: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    space = process_space
    space.start_operator("--lease", "120")
    space.kubelet.images["example/muster:1"] = space.kubelet.images["image"]
    native = NativeJobs(space, None)  # type: ignore[arg-type]
    folder = make_data(muster, space, repository)
    space.submit(find("TFJob", "servers"))
    native.wait_success("servers")
    assert "Evaluated step" in space.kubelet.log("servers-evaluator-0")
    assert list((folder / "servers/export/latest").iterdir())
    assert sorted(native.tasks("servers")) == [
        "chief-0", "evaluator-0", "ps-0", "ps-1", "worker-0", "worker-1"]  # fmt: skip

    space.make_claim("data")
    data = space.kubelet.claims / "data"
    data.mkdir()
    shutil.copytree(folder / "servers", data / "model")
    shutil.copytree(folder / "test", data / "test")
    space.submit(find("TFJob", "parts"))
    space.submit(find("TFJob", "scores"))
    native.wait_success("parts")
    native.wait_success("scores")
    alone = (data / "scores.csv").read_text()
    muster.run("predict", data / "model", "--data", data / "test/part-*", "--out", tmp_path / "s.csv")
    assert alone == (tmp_path / "s.csv").read_text() and len(alone.splitlines()) == 3001
    parts = [path.read_text().splitlines() for path in sorted((data / "scores").glob("part-*"))]
    assert len(parts) >= 3
    assert [parts[0][0]] + [row for part in parts for row in part[1:]] == alone.splitlines()
