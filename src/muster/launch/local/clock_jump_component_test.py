"""A machine whose wall clock jumps while a job runs: a library before libc's says a false time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import pytest

from testbed.jobs import Jobs

HOUR = 3600

# Adds the seconds in the file $CLOCK_JUMP to the wall clock, and to no other.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long Jump(void) {
  const char* const path = getenv("CLOCK_JUMP");
  FILE* const file = path == NULL ? NULL : fopen(path, "re");
  long seconds = 0;
  if (file != NULL) {
    if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
    fclose(file);
  }
  return seconds;
}

int clock_gettime(clockid_t id, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(id, now);
  if (id == CLOCK_REALTIME) now->tv_sec += Jump();
  return result;
}

int gettimeofday(struct timeval* now, void* zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out != NULL) *out = exact.tv_sec;
  return exact.tv_sec;
}
"""

JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: j
  annotations: {muster/progressTimeout: 10m, muster/finishTimeout: 10m}
spec:
  runPolicy: {activeDeadlineSeconds: 600, ttlSecondsAfterFinished: 600}
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: tensorflow
            command: [sh, -c, "while [ ! -e go ]; do sleep 0.05; done"]
"""


class Clock:
    """The wall clock that the programs of these jobs see."""

    def __init__(self, jobs: Jobs):
        self.jobs = jobs
        self.file = jobs.folder / "jump"
        source, library = jobs.folder / "clock.c", jobs.folder / "clock.so"
        source.write_text(LIBRARY)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        jobs.environment |= {"LD_PRELOAD": str(library), "CLOCK_JUMP": str(self.file)}

    def jump(self, seconds: int) -> None:
        (self.jobs.folder / "new").write_text(str(seconds))
        (self.jobs.folder / "new").rename(self.file)

    def seen(self, job: str) -> float:
        """Seconds by which the coordinator's last look at its clock was ahead of this test's."""
        journal = (self.jobs.home / "jobs" / job / "journal").read_text()
        return float(re.findall(r'"last_wall":([0-9.e+]+)', journal)[-1]) - time.time()


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["an hour ahead", "an hour back"])
def test_a_jump_of_the_wall_clock_ends_and_restarts_nothing(jobs: Jobs, jump: int) -> None:
    clock = Clock(jobs)
    (jobs.folder / "job.yaml").write_text(JOB)
    job = jobs.detach("job.yaml", "--lease", 60)
    before = [jobs.running(job, f"worker-{i}") for i in range(2)]
    clock.jump(jump)
    os.kill(before[0]["pid"], signal.SIGKILL)  # its restart is decided and written down after it
    after = jobs.running(job, "worker-0", before[0]["incarnation"] + 1)
    assert after["restarts"] == 1
    assert abs(clock.seen(job) - jump) < HOUR / 2
    jobs.forsake(job)
    jobs.ok("resume", job)
    tasks = [jobs.running(job, f"worker-{i}") for i in range(2)]
    assert [task["pid"] for task in tasks] == [after["pid"], before[1]["pid"]]
    (jobs.folder / "go").touch()
    jobs.wait_phase(job, "succeeded")
    assert abs(clock.seen(job) - jump) < HOUR / 2
    jobs.wait_nothing_runs()


def test_a_coordinator_in_whose_world_more_time_has_passed(jobs: Jobs) -> None:
    """The monotonic clock, which the kernel lets begin elsewhere in a time namespace."""
    ahead = ["unshare", "--time", "--monotonic", str(HOUR)]
    if subprocess.run([*ahead, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("may not make a time namespace; simulation_test.cc has such jumps")
    program = "while [ ! -e go ]; do sleep 0.05; done"
    job = jobs.detach("--workers", 2, "--lease", 60, "--", "sh", "-c", program)
    before = [jobs.running(job, f"worker-{i}") for i in range(2)]
    jobs.forsake(job)
    jobs.ok("resume", job, wrapper=ahead)
    after = [jobs.running(job, f"worker-{i}") for i in range(2)]
    assert [task["pid"] for task in after] == [task["pid"] for task in before]
    (jobs.folder / "go").touch()
    jobs.wait_phase(job, "succeeded")
    jobs.wait_nothing_runs()
