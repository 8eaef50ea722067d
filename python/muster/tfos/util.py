"""Small helpers that programs of TensorFlowOnSpark call."""

from __future__ import annotations

import os
import socket
from typing import Sequence, Union

from muster.tfos import gpu_info
from muster.tfos.gpus import on_machine_of

_OUTSIDE = ("8.8.8.8", 53)  # only its route is looked up: nothing is sent


def single_node_env(num_gpus: int = 1, worker_index: int = -1, nodes: Sequence[str] = ()) -> None:
    """Sets CUDA_VISIBLE_DEVICES to free GPUs of this machine; to none without GPUs, or with num_gpus=0.

    nodes: addresses of the processes that ask at the same time, this one's at worker_index.
    """
    chosen = ""
    if num_gpus > 0 and gpu_info.is_gpu_available():
        index = worker_index
        if nodes and worker_index >= 0:
            # Tasks of one executor have the same address.
            index = len(on_machine_of(nodes[worker_index], nodes[:worker_index]))
        chosen = str(gpu_info.get_gpus(num_gpus, index))
    os.environ["CUDA_VISIBLE_DEVICES"] = chosen


def get_ip_address() -> str:
    """The address at which other machines reach this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_OUTSIDE)
        except OSError:  # no route leads outside
            return socket.gethostbyname(socket.getfqdn())
        return str(probe.getsockname()[0])


def find_in_path(path: str, file: str) -> Union[str, bool]:
    """The first file of this name in folders that os.pathsep separates; False if there is none."""
    found = (os.path.join(folder, file) for folder in path.split(os.pathsep))
    return next((name for name in found if os.path.isfile(name)), False)
