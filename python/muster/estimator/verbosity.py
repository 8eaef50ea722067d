"""What a program asks of TensorFlow's logger is asked of the logger `muster` too."""

from __future__ import annotations

import logging


def follow_tensorflow() -> None:
    """Shows Muster's progress where the program said `tf.compat.v1.logging.set_verbosity(INFO)`.

    The logger `muster` then has the level of the logger `tensorflow` and, in a program that has no
    other handlers, its handlers. A level above INFO is not followed, since it would hide Muster's
    warnings; nor is any where the program has set the level of `muster` itself.
    """
    theirs, ours = logging.getLogger("tensorflow"), logging.getLogger("muster")
    if not logging.NOTSET < theirs.level <= logging.INFO or ours.level != logging.NOTSET:
        return
    ours.setLevel(theirs.level)
    if not ours.hasHandlers():
        for handler in theirs.handlers:
            ours.addHandler(handler)
