"""Every verb finds a job by the record of its place, and refuses a place that it does not know."""

from __future__ import annotations

import json

import pytest

from testbed.jobs import Jobs

KNOWN = ("status", "logs", "stop", "suspend", "resume", "tensorboard", "spec", "rm")


def record(jobs: Jobs, name: str, **members: object) -> None:
    folder = jobs.home / "jobs" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "place.json").write_text(json.dumps(members))


@pytest.mark.parametrize("verb", KNOWN)
def test_an_unknown_place_is_refused_by_name_with_those_known(jobs: Jobs, verb: str) -> None:
    record(jobs, "far", format=1, kind="moonbase", id="crater/7")
    result = jobs.call(verb, "far")
    assert result.returncode == 1, result.stdout
    assert "the job far runs in a place of kind 'moonbase'" in result.stderr
    assert "(known: local, kubernetes, yarn)" in result.stderr
    assert (jobs.home / "jobs" / "far" / "place.json").exists()


def test_a_list_names_what_it_cannot_ask_and_shows_the_rest(jobs: Jobs) -> None:
    jobs.ok("run", "--name", "here", "--", "true")
    record(jobs, "far", format=1, kind="moonbase")
    record(jobs, "torn", format=2, kind="local")
    result = jobs.call("list", "--json")
    assert result.returncode == 0
    assert [json.loads(line)["name"] for line in result.stdout.splitlines()] == ["here"]
    assert "moonbase" in result.stderr and "this muster reads format 1" in result.stderr


def test_a_record_of_this_machine_is_as_good_as_none(jobs: Jobs) -> None:
    jobs.ok("run", "--name", "here", "--", "echo", "said")
    record(jobs, "here", format=1, kind="local")
    assert jobs.status("here")["phase"] == "succeeded"
    assert jobs.ok("logs", "here") == "said\n"
    jobs.ok("rm", "here")
    assert not (jobs.home / "jobs" / "here").exists()


def test_a_new_job_does_not_push_away_the_record_of_one_elsewhere(jobs: Jobs) -> None:
    record(jobs, "far", format=1, kind="moonbase")
    result = jobs.call("run", "--name", "far", "--", "true")
    assert result.returncode == 1
    assert "muster rm far" in result.stderr
    assert (jobs.home / "jobs" / "far" / "place.json").exists()
