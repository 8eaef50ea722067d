"""Fixtures of the component tests against Kubernetes' API server."""

from __future__ import annotations

from testbed.kubernetes.fixtures import cluster, installed, space

__all__ = ["cluster", "installed", "space"]
