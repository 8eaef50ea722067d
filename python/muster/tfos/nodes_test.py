"""The table of nodes: which of them belong together when a cluster is started again."""

from __future__ import annotations

from muster.tfos.nodes import Nodes, roles


class Starts:
    """Nodes that report, of a cluster of two workers and an evaluator."""

    def __init__(self, gang: bool = True) -> None:
        self.nodes = Nodes(roles([("worker", 2), ("evaluator", 1)]), gang)

    def expect(self, *incarnations: int) -> None:
        """Of worker 0, worker 1 and the evaluator."""
        for role, incarnation in zip(self.nodes._wanted, incarnations):
            self.nodes.expect(role.task, incarnation)

    def register(self, task: str, incarnation: int) -> None:
        self.nodes.answer({
            "what": "register", "task": task, "incarnation": incarnation, "machine": "here",
            "info": {"addr": f"{task}.{incarnation}"},
        })  # fmt: skip

    def there(self) -> list[str]:
        return sorted(str(info["addr"]) for info in self.nodes.cluster_info())


def test_nodes_of_one_start_belong_together() -> None:
    starts = Starts()
    starts.expect(1, 2, 3)
    starts.register("worker-1", 2)
    assert starts.nodes.missing() == ["worker-0", "evaluator-0"]
    starts.register("worker-0", 1)
    starts.register("evaluator-0", 3)
    assert (starts.nodes.missing(), starts.nodes.restarts()) == ([], 0)


def test_a_start_of_which_not_all_have_reported_leaves_nothing() -> None:
    starts = Starts()
    starts.expect(1, 2)
    starts.register("worker-0", 1)
    starts.register("worker-1", 2)
    starts.expect(3, 4)
    starts.register("worker-1", 4)  # worker-0.3 is lost before it can report
    assert starts.there() == ["worker-1.4"]
    starts.expect(5, 6)
    starts.register("worker-0", 5)
    assert starts.there() == ["worker-0.5"]
    starts.register("worker-1", 6)
    assert (starts.there(), starts.nodes.restarts()) == (["worker-0.5", "worker-1.6"], 2)
    assert starts.nodes.answer({"what": "done", "task": "worker-0", "requested": False}) == {}


def test_a_report_before_the_other_process_is_expected() -> None:
    starts = Starts()
    starts.expect(1, 2)
    starts.register("worker-0", 1)
    starts.register("worker-1", 2)
    starts.nodes.expect("worker-0", 3)
    starts.register("worker-0", 3)
    assert starts.there() == ["worker-0.3"]
    starts.nodes.expect("worker-1", 4)
    starts.register("worker-1", 4)
    assert (starts.there(), starts.nodes.restarts()) == (["worker-0.3", "worker-1.4"], 1)


def test_the_report_of_an_earlier_start_comes_too_late() -> None:
    starts = Starts()
    starts.expect(1, 2)
    starts.expect(3, 4)
    starts.register("worker-0", 3)
    starts.register("worker-1", 2)
    assert (starts.there(), starts.nodes.restarts()) == (["worker-0.3"], 0)


def test_an_evaluator_goes_its_own_way() -> None:
    starts = Starts()
    starts.expect(1, 2, 3)
    starts.register("evaluator-0", 3)
    starts.expect(4, 5)
    starts.register("worker-0", 4)
    starts.register("worker-1", 5)
    starts.nodes.expect("evaluator-0", 6)
    starts.register("evaluator-0", 6)
    assert starts.there() == ["evaluator-0.6", "worker-0.4", "worker-1.5"]


def test_tasks_that_are_started_again_one_by_one() -> None:
    starts = Starts(gang=False)
    starts.expect(1, 2)
    starts.register("worker-0", 1)
    starts.register("worker-1", 2)
    starts.nodes.expect("worker-1", 4)
    starts.register("worker-1", 4)
    assert (starts.there(), starts.nodes.restarts()) == (["worker-0.1", "worker-1.4"], 1)
