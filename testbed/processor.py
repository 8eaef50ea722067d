"""Finds out what this machine's processor can do."""

from __future__ import annotations

import pathlib

import pytest


def has_bf16() -> bool:
    """Whether `--precision bf16` works here, which needs AMX."""
    return "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text()


def needs_bf16() -> None:
    if not has_bf16():
        pytest.skip("this processor has no AMX with bfloat16")
