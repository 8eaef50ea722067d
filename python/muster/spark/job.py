"""Jobs of Muster on Spark's executors: agents in the tasks of a barrier stage, one for each task of the job.

The driver is a provider of slots (docs/formats/slots.md), and the job's coordinator its child. Roles,
restarts and TF_CONFIG are the coordinator's; Spark only gives processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from muster import binary
from muster.spark import background_place, manifest, sessions
from muster.spark.own_folder import OwnFolder
from muster.spark.place import Driver, Place, Surroundings
from muster.spark.places_server import LOCAL, Output, Places, PlacesServer
from muster.spark.reach import LOOPBACK, Home, Reach, machine_id

_ANSWER_SECONDS = 5.0
_STAGES = 5  # how often Spark is asked for places before the job is given up
_LEASE_SECONDS = 10.0
_END_SECONDS = 60.0
_REPORT_SECONDS = 30.0  # for places in the background to report after their stage has ended
_LEFT_SECONDS = 30.0  # for places in the background to end
_KEYS = ("token", "data_key")
_SECRETS = (*_KEYS, "ca.pem")  # what an agent is given


class Result(NamedTuple):
    """How a job has ended: "succeeded" or "failed", and a sentence or nothing."""

    phase: str
    message: str


def run(
    spark: Any,
    command: Sequence[str],
    *,
    workers: int = 1,
    ps: int = 0,
    chief: bool = False,
    evaluator: bool = False,
    env: Optional[Mapping[str, str]] = None,
    restarts: int = 5,
    all_workers: bool = False,
    finish_seconds: float = 60.0,
) -> Result:
    """Runs `command` as the tasks of a cluster, with TF_CONFIG, on executors; returns when it has ended.

    Each task takes a slot of Spark (a core, or spark.task.cpus) for as long as the job lasts. A task
    that fails is started again, at most `restarts` times in all; where one has no parameter servers,
    all of them together. env: additional variables. The job has succeeded when the chief has ended well,
    or worker 0 where there is no chief, or with `all_workers` all workers. Then workers may continue for
    `finish_seconds`; parameter servers are stopped when the others have ended. Raises ValueError for a job
    that cannot begin, and MusterError with the last lines of a task if it fails.
    """
    job = start(
        spark, command, workers=workers, ps=ps, chief=chief, evaluator=evaluator, env=env,
        restarts=restarts, all_workers=all_workers, finish_seconds=finish_seconds,
    )  # fmt: skip
    try:
        return job.wait()
    finally:
        job.stop()


def start(
    spark: Any,
    command: Sequence[str],
    *,
    workers: int = 1,
    ps: int = 0,
    chief: bool = False,
    evaluator: bool = False,
    env: Optional[Mapping[str, str]] = None,
    restarts: int = 5,
    all_workers: bool = False,
    finish_seconds: float = 60.0,
) -> Job:
    """As `run`, but returns at once; Job.wait() and Job.stop() do the rest."""
    counts = {"chief": int(chief), "worker": workers, "ps": ps, "evaluator": int(evaluator)}
    tasks = sum(counts.values())
    if isinstance(command, str) or not command:
        raise ValueError("command: a list of a program and its arguments is wanted")
    if tasks < 1 or min(counts.values()) < 0:
        raise ValueError(f"a job has one task or more, not {counts}")
    manifest.check_slots(spark.sparkContext, tasks)
    policy = manifest.Policy(restarts=restarts, all_workers=all_workers, finish_timeout=f"{finish_seconds:.0f}s")
    made = manifest.make(list(command), counts, env or {}, policy)
    return Job(spark.sparkContext, made, tasks, Home.of(spark.sparkContext))


class Options(NamedTuple):
    """How a job's tasks lie on executors."""

    # False: a task holds a slot of Spark for as long as the job lasts. True: a process that leaves the
    # slot is started there, so that the slots are free for stages that feed the tasks.
    background: bool = False
    payload: bytes = b""  # for each task, in the file that MUSTER_SPARK_PAYLOAD names
    here: bool = True  # tasks run in the driver's working folder; otherwise in that of their executor
    local_tasks: str = ""  # tasks of this type ("ps") run on the driver's machine, outside Spark
    local_count: int = 0
    output: Optional[Output] = None  # takes what the first chief and its agent write
    expect: Callable[[str, int], None] = lambda task, incarnation: None  # hears of each process before it starts


class Job:
    """A job that runs on executors. wait() and stop() may be called by any thread."""

    def __init__(
        self, context: Any, spec: Dict[str, Any], tasks: int, home: Home, options: Options = Options()
    ) -> None:
        """spec: a TFJob (muster.spark.manifest); tasks: how many tasks it has; home: of the driver, which
        the job removes at its end."""
        self.name: str = spec["metadata"]["name"]
        self._context = context
        self._tasks = tasks - options.local_count
        self._options = options
        self._home = home
        self._folder = OwnFolder()
        self._ended = threading.Event()
        self._result: Optional[Result] = None
        self._error: Optional[BaseException] = None
        self._stage_error, self._is_hopeless = "", False
        self._stages = self._sequence = 0
        self._is_final = False  # the job has ended; its coordinator waits until it has heard all
        self._final_status: Dict[str, Any] = {}
        self._stage_ended = 0.0
        self._tails: Dict[str, str] = {}  # the last lines of each task
        self._places = Places(options.local_tasks, options.output, end_together=not options.background)
        self._server = PlacesServer(self._places, home)
        self._stage: Optional[threading.Thread] = None
        (self._folder.path / "job.yaml").write_text(json.dumps(spec), encoding="utf-8")
        try:
            self._coordinator = self._start_coordinator()
        except BaseException:
            self._clean()
            raise
        self._local = list(map(self._start_local, range(options.local_count)))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, timeout: Optional[float] = None) -> Result:
        """Waits for the job's end. Raises MusterError if it fails, TimeoutError after `timeout`."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"the job {self.name} still runs after {timeout} s")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        if self._result.phase != "succeeded":
            # "worker-1: exit code 1", or "job: worker-1: ..." where a budget of restarts is spent
            named = self._result.message.split(": ")
            tail = next((self._tails[name] for name in named if name in self._tails), "")
            lines = f"\n{tail}" if tail else ""
            raise binary.MusterError(f"the job {self.name} {self._result.phase}: {self._result.message}{lines}")
        return self._result

    def stop(self) -> None:
        """Ends the job if it runs, and waits until nothing of it does."""
        if not self.has_ended():
            self._coordinator.terminate()
        self._thread.join()

    def has_ended(self) -> bool:
        return self._ended.is_set()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Calls it, in another thread, once the job has ended."""

        def wait_and_call() -> None:
            self._ended.wait()
            call()

        threading.Thread(target=wait_and_call, daemon=True).start()

    def lacks_places(self) -> bool:
        """Whether executors with places in the background were lost, for which slots are wanted now."""
        stage = self._stage
        started = stage is not None and (self._stages > 1 or not stage.is_alive())
        if not self._options.background or not started or self._is_young():
            return False
        return self._places.count_on_executors() < self._tasks

    def _is_young(self) -> bool:
        """Whether places that were started may not have reported yet."""
        return time.monotonic() < self._stage_ended + _REPORT_SECONDS

    def describe_places(self) -> str:
        """What Spark has given, for a message about tasks that are not there."""
        there = self._places.count_on_executors()
        text = f"Spark has given {there} of {self._tasks} processes"
        return f"{text}; {self._stage_error}" if self._stage_error else text

    def status(self) -> Dict[str, Any]:
        """What `muster status --json` says of a job; of one that has ended, what it said at last."""
        try:
            return self._coordinator_reach.get("/v1/status", _ANSWER_SECONDS)
        except (OSError, ValueError):
            if not self._final_status:
                raise binary.MusterError(f"the coordinator of the job {self.name} does not answer") from None
            return self._final_status

    def _start_coordinator(self) -> subprocess.Popen[str]:
        self._job = self._folder.path / "job"
        with open(self._folder.path / "coordinator.log", "wb") as log:
            process = subprocess.Popen(
                [binary.find(), "slot-coordinator", str(self._job), "--job", str(self._folder.path / "job.yaml"),
                 "--lease", str(_LEASE_SECONDS), "--end-with-stdin", *self._listen()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                pass_fds=self._folder.descriptors,
            )  # fmt: skip
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url.startswith("http"):
            process.wait()
            said = (self._folder.path / "coordinator.log").read_text(errors="replace").strip()
            raise binary.MusterError(said or "the job's coordinator ended at once")
        self._secrets = {
            name: (self._job / name).read_text() for name in _SECRETS if (self._job / name).exists()
        }
        for name in _KEYS:  # the coordinator has read them: a driver that is killed leaves none
            (self._job / name).unlink()
        self._coordinator_reach = Reach(url, self._secrets["token"].strip(), self._home.authority)
        return process

    def _listen(self) -> List[str]:
        """Where the coordinator listens, beyond its default."""
        if self._home.folder is None:
            return []
        return ["--listen", "0.0.0.0", "--certs", str(self._home.folder), "--certify"]

    def _run(self) -> None:
        try:
            self._provide()
        except BaseException as error:  # raised again by wait()
            self._error = error
        finally:
            self._places.leave()
            self._end_stage()
            self._places.wait_until_left(_LEFT_SECONDS)
            self._end_coordinator()
            self._clean()
            self._ended.set()

    def _provide(self) -> None:
        while self._coordinator.poll() is None:
            self._keep_stage()
            answer = self._report()
            if answer is not None and answer["sequence"] == self._sequence:
                self._obey(answer)
            self._places.wait_for_news()
        self._read_final()

    def _report(self) -> Optional[Dict[str, Any]]:
        self._sequence += 1
        slots = self._places.slots()
        for slot in slots:
            if slot["state"] == "ended" and slot.get("detail"):
                self._tails[slot["task"]] = slot["detail"].strip()
        report = {"provider": "spark", "attempt": 1, "sequence": self._sequence, "slots": slots}
        try:
            return self._coordinator_reach.post(report, _ANSWER_SECONDS, "/v1/slots")
        except (OSError, ValueError):
            return None

    def _obey(self, answer: Mapping[str, Any]) -> None:
        for name in answer["forget"]:
            self._places.forget(name)
        for name in answer["kill"]:
            self._places.kill(name)
        for wanted in answer["wanted"]:
            name = f"spark-{self._sequence}-{wanted['task']}"
            slot = {"slot": name, "task": wanted["task"], "incarnation": wanted["incarnation"]}
            self._options.expect(wanted["task"], wanted["incarnation"])
            self._places.start(slot, {"slot": name, **self._order(wanted)})
        if answer.get("final") and not self._is_final:
            self._is_final = True
            with contextlib.suppress(binary.MusterError):
                self._final_status = self.status()
        # A place that leaves earlier would not say that its agent has ended.
        if self._is_final and all(slot["state"] == "ended" for slot in self._places.slots()):
            self._places.leave()

    def _order(self, wanted: Mapping[str, Any]) -> Dict[str, Any]:
        """What a place needs to start the agent."""
        # The coordinator has said where processes of this machine reach it.
        url = self._coordinator_reach.url.replace(f"//{LOOPBACK}:", f"//{self._home.host}:")
        arguments = ["--task", wanted["task"], "--incarnation", str(wanted["incarnation"])]
        arguments += ["--coordinator", url, "--lease", str(wanted["lease_seconds"])]
        if wanted.get("port"):
            arguments += ["--port", str(wanted["port"])]
        if wanted.get("port_required"):
            arguments += ["--port-required"]
        return {
            "arguments": arguments,
            "secrets": self._secrets,
            "cwd": os.getcwd() if self._options.here else None,
            "sends_output": self._options.output is not None and wanted["task"] == "chief-0",
        }

    def _keep_stage(self) -> None:
        """Asks Spark for places, again when it has taken them away."""
        if self._is_final or (self._stage is not None and self._stage.is_alive()):
            return
        wanted = self._tasks
        if self._options.background and self._stage is not None and not self._stage_error:
            if self._is_young():
                return
            wanted -= self._places.count_on_executors()
            if wanted <= 0:
                return
        if self._is_hopeless:
            raise binary.MusterError(f"the job {self.name}: {self._stage_error}")
        if self._stages >= _STAGES:
            raise binary.MusterError(
                f"the job {self.name}: Spark has ended its places {self._stages} times, the last time "
                f"because of: {self._stage_error or 'executors were lost'}"
            )
        self._stages += 1
        self._stage_error = ""
        self._stage = threading.Thread(target=self._get_places, args=(self._stages, wanted), daemon=True)
        self._stage.start()

    def _driver(self) -> Driver:
        return Driver(self._server.reach, machine_id(), _LEASE_SECONDS)

    def _get_places(self, stage: int, count: int) -> None:
        driver, background, payload = self._driver(), self._options.background, self._options.payload
        # One executor, in the driver's JVM, which spark-submit waits for: a timer of barrier() would keep it.
        is_local = self._context.master.partition("[")[0] == "local"

        def serve(rows: Any) -> List[int]:
            from pyspark import BarrierTaskContext

            list(rows)
            context = BarrierTaskContext.get()
            name = f"{stage}-{context.partitionId()}-{context.taskAttemptId()}"  # also of a stage that Spark repeats
            own = context.getTaskInfos()[context.partitionId()]
            around = Surroundings.of_this_worker(payload, own.address.rpartition(":")[0])
            if background:
                background_place.start(driver, name, around)
                if not is_local:
                    context.barrier()  # as many tasks at once as slots: the places are spread over them
            else:
                Place(driver, name, around).run()
            return []

        group = f"{self.name}-{stage}"
        try:
            self._context.setJobGroup(group, f"muster job {self.name}", True)
            numbers = self._context.parallelize(range(count), count)
            numbers.barrier().mapPartitions(serve).collect()
        except Exception as error:
            self._stage_error, self._is_hopeless = sessions.reason(self._context, error)
        finally:
            self._stage_ended = time.monotonic()

    def _start_local(self, number: int) -> subprocess.Popen[bytes]:
        around = Surroundings.of_this_driver(self._options.payload, self._home.host)
        return background_place.start(self._driver(), f"{LOCAL}{number}", around)

    def _end_stage(self) -> None:
        for place in self._local:
            background_place.end(place)
        if self._stage is None:
            return
        self._stage.join(_END_SECONDS)
        if self._stage.is_alive():
            self._context.cancelJobGroup(f"{self.name}-{self._stages}")
            self._stage.join(_END_SECONDS)

    def _read_final(self) -> None:
        assert self._coordinator.stdout is not None
        for line in self._coordinator.stdout:
            words = line.split(" ", 2)
            if words[0] == "final":
                self._result = Result(words[1].strip(), "".join(words[2:]).strip())
                return
        said = (self._folder.path / "coordinator.log").read_text(errors="replace").strip()
        raise binary.MusterError(f"the job's coordinator has ended: {said}")

    def _end_coordinator(self) -> None:
        if self._coordinator.poll() is None:
            self._coordinator.kill()
        self._coordinator.wait()
        for pipe in filter(None, (self._coordinator.stdin, self._coordinator.stdout)):
            pipe.close()

    def _clean(self) -> None:
        self._server.close()
        self._folder.remove()
        self._home.remove()

