"""Trials of a study as jobs on executors: the driver's side of muster.spark.trial_runner."""

from __future__ import annotations

import json
import pathlib
import queue
import socketserver
import sys
import threading
from typing import Any, Dict, List, Optional

from muster import binary
from muster.spark import manifest, sessions, trial_runner
from muster.spark.job import Job, Options
from muster.spark.own_folder import OwnFolder
from muster.spark.reach import Home

_CLOSE_SECONDS = 0.05  # until the server sees that it is to end
# A training that has failed by itself would fail again; one that was killed would not.
_POLICY = manifest.Policy(restarts=3, restart_policy="ExitCode", scope="task", finish_timeout="60s")
# A job that has succeeded, and whose chief's last output was lost with its executor, runs again: it finds its
# training done, and says what it gave.
_RUNS = 3


class Trials:
    """Runs the trials of the runners that connect to its socket, each as a job. close() ends all of them."""

    def __init__(self, context: Any, workers: int, ps: int) -> None:
        """workers: replicas of a trial, the first of which is its chief; 1 without others."""
        counts = {"chief": 1, "worker": workers - 1, "ps": ps}
        self._folder = OwnFolder()
        self._socket = str(self._folder.path / "driver")
        handler = type("Handler", (_Handler,), {"context": context, "counts": counts})
        self._server = _Server(self._socket, handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_CLOSE_SECONDS,), daemon=True)
        self._thread.start()

    def runner(self) -> List[str]:
        """The words before a trial's command."""
        return [sys.executable, "-I", "-S", str(pathlib.Path(trial_runner.__file__).absolute()), self._socket]

    def close(self) -> None:
        """Call it when the runners have ended."""
        self._server.shutdown()
        self._server.server_close()  # waits for the threads of the trials
        self._thread.join()
        self._folder.remove()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = False
    request_queue_size = 1024  # as many trials as `muster tune --parallel` can have


class _Handler(socketserver.StreamRequestHandler):
    """One trial, and what takes its output."""

    context: Any
    counts: Dict[str, int]

    def handle(self) -> None:
        line = self.rfile.readline()
        if not line.endswith(b"\n"):
            return  # the runner was killed before it had said anything
        command = json.loads(line)
        # What is said to the runner, each as a member of an object.
        self._news: queue.Queue[Dict[str, Any]] = queue.Queue()
        self._ends_line = True
        self._lock = threading.Lock()
        self._job: Optional[Job] = None
        self._is_stopped = False
        threading.Thread(target=self._stop_with_runner, daemon=True).start()
        for _ in range(_RUNS):
            self._has_all = False
            end = self._run(command)
            if "error" in end or self._has_all:
                break
        else:
            end = {"error": f"the output of the trial's job was lost {_RUNS} times, each time with its executor"}
        if "error" in end and sessions.is_stopped(self.context):
            self._say({"spark_is_stopped": True})
            self.rfile.read(1)  # there is only an end
        else:
            self._say(end)

    def _run(self, command: List[str]) -> Dict[str, Any]:
        """Runs a job to its end, and returns that."""
        try:
            with self._lock:
                if self._is_stopped:
                    return {"error": "the trial was stopped"}
                self._job = job = self._start(command)
        except Exception as error:
            return {"error": str(error)}
        job.when_ended(lambda: self._news.put(_outcome(job)))
        while True:
            said = self._news.get()
            if "output" not in said:
                break
            self._say(said)
        job.stop()
        return said

    def _start(self, command: List[str]) -> Job:
        spec = manifest.make(command, self.counts, {}, _POLICY)
        return Job(
            self.context, spec, sum(self.counts.values()), Home.of(self.context), Options(output=self)
        )

    def begin(self) -> None:
        self._has_all = False
        if not self._ends_line:  # a run that was killed has left a line without an end
            self.take("\n")

    def take(self, text: str) -> None:
        self._ends_line = text.endswith("\n")
        self._news.put({"output": text})

    def end(self) -> None:
        self._has_all = True

    def _say(self, what: Dict[str, Any]) -> None:
        try:
            self.wfile.write(json.dumps(what).encode() + b"\n")
        except OSError:
            pass  # the runner is gone, and its job is being stopped

    def _stop_with_runner(self) -> None:
        try:
            self.request.recv(1)  # there is only an end
        except OSError:
            pass
        with self._lock:
            self._is_stopped = True
            job = self._job
        if job is not None:
            job.stop()


def _outcome(job: Job) -> Dict[str, Any]:
    error: Optional[BaseException] = None
    try:
        job.wait(0)
    except (binary.MusterError, RuntimeError) as failed:
        error = failed
    return {"ended": True} if error is None else {"error": str(error)}
