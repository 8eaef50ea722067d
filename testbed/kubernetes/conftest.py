"""Fixtures of the test of the kubelet itself."""

from __future__ import annotations

from testbed.kubernetes.fixtures import cluster, installed, process_space

__all__ = ["cluster", "installed", "process_space"]
