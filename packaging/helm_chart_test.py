"""The chart gives what the files for kubectl have. Helm itself checks it in helm_lint, by hand."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import yaml

HERE = pathlib.Path(__file__).parent.parent / "deploy" / "kubernetes"


def render(text: str, values: dict[str, Any], namespace: str) -> list[Any]:
    """What helm template does with the few forms that the chart's templates have."""

    def put(match: re.Match[str]) -> str:
        path, _, filters = match.group(1).strip().partition("|")
        names = path.strip().lstrip(".").split(".")
        value: Any = {"Values": values, "Release": {"Namespace": namespace}}
        for name in names:
            value = value[name]
        assert filters.strip() in ("", "quote", "toJson"), filters
        return json.dumps(value) if filters else str(value)

    return [document for document in yaml.safe_load_all(re.sub(r"{{(.*?)}}", put, text)) if document]


def read(name: str) -> list[Any]:
    return [document for document in yaml.safe_load_all((HERE / name).read_text()) if document]


def test_the_chart_is_the_base() -> None:
    values = yaml.safe_load((HERE / "helm/values.yaml").read_text())
    for name in ("rbac.yaml", "operator.yaml"):
        rendered = render((HERE / "helm/templates" / name).read_text(), values, "muster")
        base = [document for document in read(name) if document["kind"] != "Namespace"]
        if name == "operator.yaml":
            base[0]["spec"]["template"]["spec"]["containers"][0]["args"] = []
        assert rendered == base, name
    assert (HERE / "helm/crds/crd.yaml").read_text() == (HERE / "crd.yaml").read_text()


def test_values_are_used() -> None:
    values = {"image": "i:1", "replicas": 1, "flags": ["--workers", "4"], "resources": {}}
    text = (HERE / "helm/templates/operator.yaml").read_text()
    deployment = render(text, values, "training")[0]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert deployment["metadata"]["namespace"] == "training" and deployment["spec"]["replicas"] == 1
    assert (container["image"], container["args"]) == ("i:1", ["--workers", "4"])
    assert read("kustomization.yaml")[0]["resources"] == ["crd.yaml", "rbac.yaml", "operator.yaml"]
