"""Programs that remove their model folder at their start, as that of an article does."""

from __future__ import annotations

from testbed.jobs import Jobs

PROGRAM = """
rm -rf "$1"
mkdir "$1"
if [ ! -e started ]; then
  touch started "$1/model.ckpt-1200.index"
  kill -9 $$
fi
touch "$1/model.ckpt-0.index"
"""


def test_checkpoints_that_vanish_while_a_task_restarts_are_reported(jobs: Jobs) -> None:
    model = jobs.folder / "model"
    program = ("sh", "-c", PROGRAM, "program", model)
    result = jobs.call("run", "--name", "forgetful", "--model-dir", model, "--", *program)
    assert result.returncode == 0, result.stderr
    said = "worker-0 was started again (incarnation 2), and the checkpoints up to step 1200"
    assert f"{said} are gone from {model}" in result.stderr
    assert said in jobs.ok("status", "forgetful")
    (lost,) = jobs.status("forgetful")["lost_checkpoints"]
    assert (lost["task"], lost["incarnation"], lost["step"]) == ("worker-0", 2, 1200)
