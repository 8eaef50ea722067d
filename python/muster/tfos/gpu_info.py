"""Which GPUs of this machine are free, by nvidia-smi."""

from __future__ import annotations

import logging
import subprocess
import time
from typing import List, Union

logger = logging.getLogger(__name__)

MAX_RETRIES = 3
AS_STRING = "string"
AS_LIST = "list"
_PAUSE_SECONDS = 30.0  # before the first retry; each one waits longer
_ANSWER_SECONDS = 60.0


def is_gpu_available() -> bool:
    """Whether this machine has a GPU that nvidia-smi knows."""
    try:
        return bool(_ask("--query-gpu=index"))
    except (OSError, subprocess.SubprocessError):
        return False


def get_gpus(num_gpu: int = 1, worker_index: int = -1, format: str = AS_STRING) -> Union[str, List[str]]:
    """num_gpu GPUs on which no process runs; waits for them, MAX_RETRIES times.

    worker_index counts the processes of this machine that ask at the same time, so that each gets others;
    without it they are the first ones that are free. format: "0,1", or a list with AS_LIST. Raises
    RuntimeError if so many are not free.
    """
    if format not in (AS_STRING, AS_LIST):
        raise ValueError(f"format '{format}': it is '{AS_STRING}' or '{AS_LIST}'")
    for retry in range(1, MAX_RETRIES + 1):
        rows = [row.split(", ") for row in _ask("--query-gpu=index,uuid")]
        busy = set(_ask("--query-compute-apps=gpu_uuid"))
        free = [index for index, uuid in rows if uuid not in busy]
        if len(free) >= num_gpu:
            found = _share([index for index, _ in rows], free, num_gpu, max(worker_index, 0))
            return ",".join(found) if format == AS_STRING else found
        logger.warning("%d GPUs are wanted, and %d of %d are free", num_gpu, len(free), len(rows))
        if retry < MAX_RETRIES:
            time.sleep(_PAUSE_SECONDS * retry)
    raise RuntimeError(
        f"{num_gpu} GPUs are wanted, and only {len(free)} of {len(rows)} are free: ask for fewer (num_gpus), "
        "or end the processes that nvidia-smi shows"
    )


def _share(every: List[str], free: List[str], count: int, index: int) -> List[str]:
    """The GPUs of process `index`: counted among all, or from the last free one where those are taken."""
    mine = every[index * count : (index + 1) * count]
    if len(mine) == count and set(mine) <= set(free):
        return mine
    first = index * count % len(free) if free else 0
    return sorted((free[::-1] * 2)[first : first + count], key=free.index)


def _ask(query: str) -> List[str]:
    done = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, check=True, timeout=_ANSWER_SECONDS,
    )  # fmt: skip
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
