"""Fixtures of the component tests against Kubernetes' API server."""

from __future__ import annotations

from testbed.kubernetes.fixtures import (
    cluster,
    installed,
    pod_logs,
    process_space,
    process_user,
    space,
    user,
)

__all__ = ["cluster", "installed", "pod_logs", "process_space", "process_user", "space", "user"]
