"""A place on an executor: a task of Spark in whose Python worker agents of a job run, one after another.

It asks the driver (muster.spark.places_server) again and again what to do, as docs/formats/slots.md
has it for provider and coordinator: it always says what it has, the answer always says all that is
wanted. It ends its agent, and itself, when the driver was silent for a lease.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import IO, Any, Dict, List, NamedTuple, Optional, Tuple

from muster import binary
from muster.spark import hadoop
from muster.spark.own_folder import OwnFolder
from muster.spark.pace import Pace
from muster.spark.reach import OtherMachineError, Reach, machine_id

_ANSWER_SECONDS = 5.0
_STOP_SECONDS = 10.0  # after SIGTERM; a killed agent's sweeper ends the rest
_TAIL_BYTES = 2000  # of an agent's output, for messages
_OUTPUT_BYTES = 1 << 16  # of an agent's output, in a report
_LAST_WORD_SECONDS = 10.0  # for what the driver has not heard when the place ends
_PR_SET_PDEATHSIG = 1


class Driver(NamedTuple):
    """How a place reaches its driver."""

    reach: Reach
    machine: str  # machine_id() of the driver
    lease_seconds: float


class Surroundings(NamedTuple):
    """What a program that runs in a place can know of the Python worker that gave it."""

    python: str
    path: List[str]  # sys.path, with the files of --py-files
    files: str  # the folder of SparkFiles
    cwd: str
    host: str  # by which other executors reach this one
    executor: Tuple[int, int]  # the pid of the executor's JVM and when it was started
    gpus: List[str]  # the addresses of the GPUs that Spark has given the task
    payload: bytes

    @classmethod
    def of_this_worker(cls, payload: bytes, host: str) -> Surroundings:
        """Called in a task of Spark."""
        daemon = os.getppid()  # all Python workers of an executor are forked from it
        return cls._of_this_process(payload, host, int(read_stat(daemon)[1]), task_gpus())

    @classmethod
    def of_this_driver(cls, payload: bytes, host: str) -> Surroundings:
        return cls._of_this_process(payload, host, os.getpid(), [])

    @classmethod
    def _of_this_process(cls, payload: bytes, host: str, jvm: int, gpus: List[str]) -> Surroundings:
        from pyspark import SparkFiles

        files = SparkFiles.getRootDirectory()
        executor = (jvm, int(read_stat(jvm)[19]))
        return cls(sys.executable, list(sys.path), files, os.getcwd(), host, executor, gpus, payload)

    def executor_lives(self) -> bool:
        pid, started = self.executor
        try:
            words = read_stat(pid)
            return int(words[19]) == started and words[0] not in ("Z", "X")
        except OSError:
            return False


def task_gpus() -> List[str]:
    """The addresses of the GPUs that Spark has given the task that calls this (spark.task.resource.gpu.*)."""
    from pyspark import TaskContext

    context = TaskContext.get()
    resources = context.resources() if context is not None else {}
    return [str(one) for one in resources["gpu"].addresses] if "gpu" in resources else []


def read_stat(pid: int) -> List[str]:
    """The words of /proc/PID/stat from the state on (0; 1: the parent, 19: when it was started)."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()


class Place:
    """Runs in the main thread of a process, whose end ends the agent."""

    def __init__(self, driver: Driver, name: str, around: Surroundings) -> None:
        self._driver = driver
        self._around = around
        self._name = name
        self._folder = OwnFolder()
        self._agent: Optional[subprocess.Popen[bytes]] = None
        self._output: Optional[IO[bytes]] = None
        self._slot: Optional[str] = None
        self._sends_output = False
        self._sent = 0  # bytes of the agent's output that the driver has
        self._heard = time.monotonic()
        self._pace = Pace()
        self._runs = False  # the agent, when its state was last reported
        self._end_is_known = True  # the driver knows how the last agent has ended, if there was one
        self._leaves = False  # the driver has said so

    def run(self) -> None:
        """Returns when the driver says so. Raises RuntimeError when it was silent for too long."""
        if not self._driver.reach.authority and machine_id() != self._driver.machine:
            raise OtherMachineError(self._around.host)
        # The daemon of Python workers sends it when its executor has ended.
        before = signal.signal(signal.SIGHUP, exit_on_signal)
        try:
            while self._around.executor_lives() and self._ask():
                time.sleep(self._pace.seconds())
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it may come only now
            if not (self._leaves and self._end_is_known):
                self._report_last()
            self._folder.remove()
            signal.signal(signal.SIGHUP, before)

    def _ask(self) -> bool:
        answer = self._post(self._report())
        now = time.monotonic()
        if answer is None:
            if now - self._heard > self._driver.lease_seconds:
                raise RuntimeError("the driver was silent for a lease; this place has ended its task")
            return True
        self._heard = now
        if answer.get("kill"):
            self._end_agent()
        order = answer.get("start")
        # The driver gives a place another slot only when it knows that the last one has ended.
        if order and order["slot"] != self._slot:
            self._start(order)
        self._leaves = bool(answer.get("leave"))
        return not self._leaves

    def _report(self) -> Dict[str, Any]:
        if self._agent is None:
            return {}
        code = self._agent.poll()
        said = self._unsent() if self._sends_output else ""
        if self._runs != (code is None):
            self._runs = code is None
            self._pace.note_change()
        if code is None or said:  # the end is reported once all output was
            return {"slot": self._slot, "state": "running", "output": said, "output_at": self._sent}
        return {
            "slot": self._slot, "state": "ended", "exit": code, "detail": self._tail(),
            "all_sent": self._sends_output,
        }  # fmt: skip

    def _report_last(self) -> None:
        """Ends the agent, and says so with what it wrote at last. The driver may be gone."""
        told: Dict[str, Any] = {}
        if self._agent is not None and self._agent.poll() is None:
            self._end_agent()
            told = {"disrupted": True, "exit": -1}
        end = time.monotonic() + _LAST_WORD_SECONDS
        while time.monotonic() < end:
            sent = self._sent
            report = {**self._report(), **told}
            is_last = report.get("state") != "running"
            answer = self._post({**report, "last": is_last})
            if is_last or answer is None or self._sent == sent:
                return

    def _post(self, report: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """Returns None if no answer came."""
        whole = {"place": self._name, "host": self._around.host, **report}
        try:
            answer = self._driver.reach.post(whole, _ANSWER_SECONDS)
        except (OSError, ValueError):
            return None
        self._sent = answer.get("output_read", 0)
        self._end_is_known = self._end_is_known or report.get("state") == "ended"
        return answer

    def _start(self, order: Dict[str, Any]) -> None:
        self._slot = order["slot"]
        self._sends_output, self._sent = order["sends_output"], 0
        self._end_is_known = False
        bundle = str(self._folder.path / self._slot)
        for part in ("agents", "logs"):
            os.makedirs(os.path.join(bundle, part), mode=0o700)
        for name, text in order["secrets"].items():
            with open(os.open(os.path.join(bundle, name), os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(text)
        if self._output is not None:
            self._output.close()
        self._output = open(os.path.join(bundle, "agent.log"), "wb")
        self._agent = subprocess.Popen(
            [binary.find(), "agent", "--swept", "--bundle", bundle, "--slot", self._slot,
             "--also-stdout", *self._host(), *order["arguments"]],
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT,
            env=self._environment(), cwd=self._cwd(order),
            start_new_session=True, preexec_fn=_ending_with_this_process(), pass_fds=self._folder.descriptors,
        )  # fmt: skip

    def _host(self) -> List[str]:
        """Where the tasks of other machines reach that of the agent."""
        if not self._driver.reach.authority:
            return []
        return ["--host", self._around.host, "--fetch-certificates"]

    def _cwd(self, order: Dict[str, Any]) -> str:
        """The driver's folder, if this machine has it."""
        wanted = order["cwd"]
        return wanted if wanted and os.path.isdir(wanted) else self._around.cwd

    def _environment(self) -> Dict[str, str]:
        payload = str(self._folder.path / "payload")
        if self._around.payload and not os.path.exists(payload):
            with open(payload, "wb") as file:  # the folder is this user's only
                file.write(self._around.payload)
        made = {
            **os.environ,
            "MUSTER_BINARY": binary.find(),
            "MUSTER_SPARK_PYTHON": self._around.python,
            "MUSTER_SPARK_PATH": os.pathsep.join(self._around.path),
            "MUSTER_SPARK_FILES": self._around.files,
            "MUSTER_SPARK_GPUS": ",".join(self._around.gpus),
            "MUSTER_SPARK_PAYLOAD": payload,
        }
        hadoop.complete(made)
        return made

    def _end_agent(self) -> None:
        if self._agent is None or self._agent.poll() is not None:
            return
        os.killpg(self._agent.pid, signal.SIGTERM)  # its leader alone would wait for the agent
        try:
            self._agent.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()

    def _unsent(self) -> str:
        """A character for each byte."""
        assert self._output is not None
        with open(self._output.name, "rb") as file:
            file.seek(self._sent)
            return file.read(_OUTPUT_BYTES).decode("latin-1")

    def _tail(self) -> str:
        assert self._output is not None
        with open(self._output.name, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")


def exit_on_signal(signum: int, frame: Any) -> None:
    """The agent is ended on the way out."""
    sys.exit(128 + signum)


def _ending_with_this_process() -> Any:
    """SIGKILL, which the agent gets with its leader. Its sweeper, in a session of its own, ends the task."""
    prctl, number = ctypes.CDLL(None).prctl, int(signal.SIGKILL)

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, number)

    return ask
