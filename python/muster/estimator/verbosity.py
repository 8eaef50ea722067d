"""Applies settings of TensorFlow's logger to the logger `muster`."""

from __future__ import annotations

import logging


def follow_tensorflow() -> None:
    """Shows Muster's progress after `tf.compat.v1.logging.set_verbosity(INFO)`.

    The logger `muster` then has the level of the logger `tensorflow` and, if the program has no
    other handlers, its handlers. A level above INFO is not applied, since it would hide Muster's
    warnings; nor is any if the program has set the level of `muster` itself.
    """
    theirs, ours = logging.getLogger("tensorflow"), logging.getLogger("muster")
    if not logging.NOTSET < theirs.level <= logging.INFO or ours.level != logging.NOTSET:
        return
    ours.setLevel(theirs.level)
    if not ours.hasHandlers():
        for handler in theirs.handlers:
            ours.addHandler(handler)
