"""Names of what a test has to itself on a cluster that it shares with others."""

from __future__ import annotations

import re

import pytest


def own_name(request: pytest.FixtureRequest) -> str:
    """A name of letters, digits and hyphens for the test that runs. It begins with the test's file: tests of two
    files may have one name."""
    file = request.path.stem.removesuffix("_component_test")
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{file}-{request.node.name}").strip("-")
