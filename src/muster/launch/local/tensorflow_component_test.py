"""Real TensorFlow programs under `muster run`, unchanged."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

PROGRAM = pathlib.Path(__file__).parent / "testdata" / "mirrored.py"
DEADLINE = 300.0


def wait_for(path: pathlib.Path, run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not path.exists():
        assert run.poll() is None, f"ended before {path.name}"
        assert time.monotonic() < deadline, f"no {path.name}"
        time.sleep(0.1)


def start(muster, folder: pathlib.Path, steps: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "MUSTER_HOME": str(folder / "home"), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        [muster.binary, "run", "--name", "mwms", "--workers", "2", "--expect", "mwms",
         "--grace", "2", "--", sys.executable, str(PROGRAM), str(folder), str(steps)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(run: subprocess.Popen[str]) -> str:
    output, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 0, errors + output
    return output


def losses(output: str) -> dict[str, float]:
    found = re.findall(r"(worker-\d) \| replicas 2 loss ([\d.e-]+)", output)
    return {name: float(loss) for name, loss in found}


def test_two_mirrored_workers_train_together(muster, tmp_path: pathlib.Path) -> None:
    (tmp_path / "go").touch()
    result = losses(finish(start(muster, tmp_path, 40)))
    assert set(result) == {"worker-0", "worker-1"}
    assert result["worker-0"] == result["worker-1"]


def test_a_killed_mirrored_worker_costs_a_restart_of_both_and_no_step(
    muster, tmp_path: pathlib.Path
) -> None:
    run = start(muster, tmp_path, 40)
    for index in range(2):
        wait_for(tmp_path / f"waits-{index}", run)
    killed = subprocess.run(
        ["pgrep", "-f", f"^{sys.executable} {PROGRAM} {tmp_path} "],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert len(killed) == 2
    os.kill(int(killed[1]), signal.SIGKILL)
    (tmp_path / "go").touch()
    output = finish(run)
    assert set(losses(output)) == {"worker-0", "worker-1"}
    assert re.findall(r"begins at (\d+)", output).count("0") == 2
    assert re.findall(r"begins at (\d+)", output).count("20") == 2
