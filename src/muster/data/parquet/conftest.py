"""Fixtures of the component tests on a real HDFS."""

from __future__ import annotations

from testbed.hadoop.fixtures import folder, hdfs

__all__ = ["folder", "hdfs"]
