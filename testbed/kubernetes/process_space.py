"""A namespace whose pods are processes of this machine."""

from __future__ import annotations

from testbed.kubernetes.operators import Space
from testbed.kubernetes.process_kubelet import ProcessKubelet


class ProcessSpace(Space):
    kubelet: ProcessKubelet
