"""What stands between rows in a queue."""

from __future__ import annotations


class Marker:
    """Not a row."""


class EndPartition(Marker):
    """The rows of a partition of an inference end here."""


class EndFeed(Marker):
    """No more rows will come."""
