"""Tasks that TF_CONFIG names as Kubernetes names pods: a name can be looked up some time after its
task has begun, and never by the task itself."""

from __future__ import annotations

import pytest

from testbed.network import Network
from testbed.trainings import Trainings
from testbed.two_hosts import TWO, TwoHosts

FLAGS = ("--epochs", 2, "--save-secs", 0)
SERVED = {"chief-0": "a", "worker-0": "b", "ps-0": "b"}


@pytest.mark.parametrize(
    ("places", "flags"),
    [(TWO, ("--workers", 2)), (SERVED, ("--workers", 2, "--ps", 1, "--strategy", "ps-sync"))],
    ids=["allreduce", "ps"],
)
def test_tasks_find_each_other_by_names_when_the_names_are_known(
    trainings: Trainings, cable: Network, places: dict[str, str], flags: tuple[object, ...]
) -> None:
    trainings.ok("unbroken", *flags, *FLAGS)
    hosts = TwoHosts(trainings, cable, places, named=True)
    environment = {"MUSTER_CERTS": str(hosts.certificates())}
    strategy = flags[flags.index("--strategy") :] if "--strategy" in flags else ()
    try:
        hosts.start(*strategy, *FLAGS, environment=environment)
        for host, address in cable.addresses.items():
            others = {name: at for name, at in hosts.names.items() if at != address}
            cable.know(host, others)
        hosts.finish()
    finally:
        hosts.kill()
    assert trainings.weights("broken") == trainings.weights("unbroken")
