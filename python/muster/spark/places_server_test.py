"""The table of places: what it takes of agents' output, and how it tells that all of it came."""

from __future__ import annotations

from typing import Any

import pytest

from muster.spark import places_server
from muster.spark.places_server import Places

SLOT: dict[str, Any] = {"slot": "spark-1-chief-0", "task": "chief-0", "incarnation": 1}
ORDER: dict[str, Any] = {"slot": "spark-1-chief-0", "sends_output": True}


class Taken:
    def __init__(self) -> None:
        self.text, self.has_all = "", False

    def begin(self) -> None:
        self.text, self.has_all = "", False

    def take(self, text: str) -> None:
        self.text += text

    def end(self) -> None:
        self.has_all = True


def report(places: Places, **said: Any) -> dict[str, Any]:
    return places.answer({"place": "1-0-0", "host": "here", "slot": SLOT["slot"], **said})


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
def places(taken: Taken) -> Places:
    """A place has the slot, and has sent a part of its agent's output."""
    made = Places(output=taken)
    made.answer({"place": "1-0-0", "host": "here"})
    assert made.start(SLOT, ORDER)
    assert report(made, state="running", output="one\n", output_at=0)["output_read"] == 4
    return made


def test_output_that_is_sent_again_is_taken_once(places: Places, taken: Taken) -> None:
    assert report(places, state="running", output="one\ntwo\n", output_at=0)["output_read"] == 4
    assert report(places, state="running", output="two\n", output_at=4)["output_read"] == 8
    assert (taken.text, taken.has_all) == ("one\ntwo\n", False)


@pytest.mark.parametrize("disrupted", [False, True])
def test_a_place_that_ends_in_order_has_sent_all(places: Places, taken: Taken, disrupted: bool) -> None:
    last = {"last": True, "disrupted": True} if disrupted else {}
    report(places, state="ended", exit=-1, detail="", all_sent=True, **last)
    assert (taken.text, taken.has_all) == ("one\n", True)
    (slot,) = places.slots()
    assert slot["state"] == "ended" and slot.get("disrupted", False) == disrupted
    places.forget(SLOT["slot"])
    assert places.start(SLOT, ORDER) != disrupted  # its executor has ended
    assert taken.has_all == disrupted


def test_a_place_that_is_lost_has_not(
    places: Places, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places_server, "_LOST_SECONDS", 0.0)
    (slot,) = places.slots()
    assert slot["state"] == "ended" and slot["disrupted"]
    assert not taken.has_all
    # A place that was only slow: its slot has another end already.
    report(places, state="ended", exit=0, detail="", all_sent=True)
    assert not taken.has_all


def test_a_place_that_says_that_its_executor_has_ended_has_no_slot(taken: Taken) -> None:
    places = Places(output=taken)
    places.answer({"place": "1-0-0", "host": "here"})
    assert places.start(SLOT, ORDER)
    places.answer({"place": "1-0-0", "host": "here", "last": True})  # before it has heard of the slot
    (slot,) = places.slots()
    assert (slot["state"], slot["disrupted"], taken.has_all) == ("ended", True, False)


@pytest.mark.parametrize("end_together", [False, True])
def test_places_of_a_barrier_stage_end_together(end_together: bool) -> None:
    places = Places(end_together=end_together)
    for name in ("1-0-0", "1-1-1"):
        places.answer({"place": name, "host": "here"})
    places.answer({"place": "1-1-1", "host": "here", "last": True})
    assert places.start(SLOT, ORDER) != end_together
    places.answer({"place": "1-0-2", "host": "here"})  # of the stage that Spark repeats
    assert places.start({**SLOT, "slot": "spark-2-chief-0"}, ORDER)
