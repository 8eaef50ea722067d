"""Which rows `--eval 20%` holds back."""

from __future__ import annotations

MASK = (1 << 64) - 1


def hash_name(name: str) -> int:
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def is_held_back(name: str, number: int, share: float) -> bool:
    """Whether the row of this number in the file of this name, or of this offset in the partition, is among the share,
    as docs/data.md describes it."""
    mixed = (hash_name(name) + number + 0x9E3779B97F4A7C15) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    mixed ^= mixed >> 31
    return (mixed >> 11) / 2**53 < share
