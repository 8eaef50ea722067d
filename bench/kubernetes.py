"""The operator of Kubernetes beside Kubeflow's: pods a second, CPU time, memory, calls."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.context import CannotRun, Context
from bench.kubernetes_start import start_job
from bench.coordinator_load import cpu_seconds, resident_mib
from bench.measure import Series
from bench.report import Report, Row, in_unit
from testbed.kubernetes.api import Object
from testbed.kubernetes.cluster import ADMINISTRATOR, Cluster
from testbed.kubernetes.operators import install, start_muster, stop_process, tfjob
from testbed.kubernetes.peer import UNLIMITED, start_peer

JOBS, WORKERS = 25, 20
PODS = JOBS * WORKERS
CONNECTIONS = 8
LOOK = 0.02  # seconds between two looks
SETTLE = 3.0  # seconds without a change, after which a controller is at rest
PATIENCE = 300.0
FINISHED, IDLE = 1000, 20.0  # jobs, seconds
MANY_JOBS = 100
THREADS = 8  # of Kubeflow's controller: as many jobs at a time as Muster's operator looks at
COUNTED = ("pods", "services", "events", "tfjobs")
METHOD = f"""
{JOBS} TFJobs of {WORKERS} workers, {PODS} pods and as many services, on an API server and etcd of this
machine; no kubelet and no scheduler runs, so that pods stay Pending. A round: Muster's operator, Kubeflow's
controller and a program that only makes such pods and services over {CONNECTIONS} connections, each in a
namespace of its own, which is removed afterwards. Pods a second: from the first job's creation until the last
pod and the last service are there. CPU time, and memory after that, are of the controller's process, until
nothing has changed for {SETTLE:.0f} seconds. API calls are those that the API server counts for {", ".join(COUNTED)}
(but for the creation of the jobs, lists and watches).

Muster: `muster operator --namespace NS`, all defaults. Kubeflow: the TFJob reconciler of training-operator
1.9.3 by itself (testbed/kubernetes/peer), `--namespace NS --controller-threads {THREADS} --kube-api-qps 5000
--kube-api-burst 5000`: with its own defaults, 1 thread and 20 calls a second, it makes about 10 pods and their
services a second. Idle: {FINISHED} jobs of one worker that have succeeded, CPU time of the controller over
{IDLE:.0f} seconds. Memory with {MANY_JOBS * WORKERS} pods: {MANY_JOBS} such jobs, resident size at rest.

A native job: a chief and 2 workers on a small table, whose pods are processes in namespaces of this machine, made by
the tests' kubelet. From `muster submit` until the last pod's process starts, and from that until the chief says that its
first step is done.
"""

LIMIT = (
    "On 2 cores the API server is the limit: a pod or a service costs some 2 ms of its CPU time and etcd's, so that "
    "the bare program, which makes two objects a pod, needs both cores. It makes less than twice as many pods as "
    "Kubeflow's controller, which makes the same objects and its events after them: twice Kubeflow's rate is out of "
    "reach here for any program. The operator makes 1.25 calls a pod more than the bare one (the admission of each pod, the "
    "status and events of each job), and the API server tells it of each change. By a profile of the API server 17 % of "
    "its time goes into admissions, the price of a pod that comes late and never runs (docs/kubernetes.md): 0.9 of the "
    "bare program is out of reach as long as a pod is admitted by a call of its own."
)
CPU_LIMIT = (
    "The operator's CPU time, by a profile of 500 pods: 21 % in the kernel, a half of it changing between threads; some "
    "20 % each for memory that is taken and freed and for JSON; 12 % TLS; in the rest no function has 2 %. It is 0.27 ms "
    "a call, with what the watches bring. The bare program, which reads no answer and watches nothing, takes 0.1 ms a call: "
    "0.21 of Kubeflow's time. A third would leave 0.06 ms a call for all answers, changes and decisions. What an object has "
    "in managedFields is skipped before it is parsed. tcmalloc and jemalloc in place of glibc's allocator take 0.84 and 0.81 "
    "of the time (two rounds on a busy machine) but 6 MiB more memory, which misses both goals of memory; one arena, or "
    "larger thresholds of glibc's, 0.87 and 0.9 of the time, within the spread of the rounds."
)
mebibytes = in_unit("MiB", 1)
seconds = in_unit("s", 2)
percent = in_unit("%", 2)
ratio = in_unit("", 2)


def plain(value: float) -> str:
    return f"{value:.1f}"


def count_objects(cluster: Cluster, path: str) -> int:
    """By one small answer, since to read them all would load the API server."""
    listed = cluster.api.get(f"{path}?limit=1")
    return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))


def wait_made(cluster: Cluster, core: str, number: int, what: str) -> float:
    """When so many pods and services were there, within LOOK seconds."""
    wait(lambda: all(count_objects(cluster, f"{core}/{kind}") >= number
                     for kind in ("pods", "services")), what)  # fmt: skip
    return time.monotonic()


@dataclass
class Side:
    name: str
    start: Callable[[Cluster, str, Path], subprocess.Popen[bytes]]


SIDES = (
    Side("muster", start_muster),
    Side("kubeflow", lambda cluster, namespace, log: start_peer(
        cluster, namespace, log, "--controller-threads", str(THREADS), *UNLIMITED)),
)  # fmt: skip


def wait(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise CannotRun(f"{what} did not happen in {PATIENCE:.0f} seconds")
        time.sleep(LOOK)


def count_calls(cluster: Cluster) -> int:
    """Of the kinds that controllers deal with, since the API server's start."""
    total = 0
    for line in read_metrics(cluster).splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels.get("resource") in COUNTED and labels.get("verb") not in ("WATCH", "LIST"):
                total += int(float(line.rsplit(" ", 1)[1]))
    return total


def read_metrics(cluster: Cluster) -> str:
    connection = cluster.api.connect()
    connection.request("GET", "/metrics", None, cluster.api.headers("application/json"))
    text = connection.getresponse().read().decode()
    connection.close()
    return text


@contextmanager
def namespace(cluster: Cluster, name: str) -> Iterator[str]:
    path = cluster.namespace(name)
    try:
        yield path
    finally:
        cluster.api.delete(path)
        wait(lambda: cluster.api.find(path) is None, f"the removal of namespace {name}")


@contextmanager
def controller(
    cluster: Cluster, side: Side, name: str, folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    process = side.start(cluster, name, folder / f"{name}.log")
    try:
        yield process
    finally:
        stop_process(process)


def rest(look: Callable[[], object], still: float = SETTLE) -> None:
    seen, since = look(), time.monotonic()
    while time.monotonic() - since < still:
        time.sleep(0.25)
        if (now := look()) != seen:
            seen, since = now, time.monotonic()


def submit(cluster: Cluster, name: str, jobs: int, workers: int, prefix: str = "job") -> None:
    path = f"/apis/kubeflow.org/v1/namespaces/{name}/tfjobs"
    for number in range(jobs):
        cluster.api.create(path, tfjob(f"{prefix}-{number}", {"Worker": workers}))


def warm_up(cluster: Cluster, name: str, core: str) -> None:
    """The controller has begun to work: it has made a pod of a first job."""
    submit(cluster, name, 1, 1, "first")
    wait(lambda: cluster.api.find(f"{core}/services/first-0-worker-0") is not None
         and cluster.api.find(f"{core}/pods/first-0-worker-0") is not None, "a first pod")  # fmt: skip


def make_pods(cluster: Cluster, side: Side, name: str, folder: Path) -> dict[str, float]:
    with namespace(cluster, name) as core, controller(cluster, side, name, folder) as process:
        warm_up(cluster, name, core)
        rest(lambda: count_calls(cluster), 1.0)
        calls, cpu, begin = count_calls(cluster), cpu_seconds(process.pid), time.monotonic()
        submit(cluster, name, JOBS, WORKERS)
        made = wait_made(cluster, core, PODS + 1, f"{PODS} pods of {side.name}")
        rest(lambda: count_calls(cluster))
        return {
            "rate": PODS / (made - begin),
            "cpu": cpu_seconds(process.pid) - cpu,
            "memory": resident_mib(process.pid),
            "calls": (count_calls(cluster) - calls - JOBS) / PODS,
        }


def bare_load(cluster: Cluster, program: Path, name: str) -> float:
    with namespace(cluster, name):
        words = [program, cluster.server, cluster.folder / "ca.crt", ADMINISTRATOR, name,
                 str(PODS), str(CONNECTIONS)]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotRun(done.stderr[-1000:])
        return float(done.stdout)


def idle(cluster: Cluster, side: Side, name: str, folder: Path) -> float:
    """Percent of a core, with many jobs that have succeeded."""
    api = cluster.api
    jobs = f"/apis/kubeflow.org/v1/namespaces/{name}/tfjobs"

    def finished(job: Object) -> bool:
        return any(c["type"] == "Succeeded" for c in job.get("status", {}).get("conditions", []))

    with namespace(cluster, name) as core, controller(cluster, side, name, folder) as process:
        submit(cluster, name, FINISHED, 1)
        ended: set[str] = set()
        deadline = time.monotonic() + PATIENCE
        while len(ended) < FINISHED and time.monotonic() < deadline:
            for pod in api.items(f"{core}/pods"):
                if (pod_name := pod["metadata"]["name"]) not in ended:
                    ended.add(pod_name)
                    state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
                    container = {"name": "tensorflow", "image": "i", "imageID": "i", "ready": False,
                                 "restartCount": 0, "state": state}  # fmt: skip
                    api.patch_status(f"{core}/pods/{pod_name}", {
                        "phase": "Succeeded", "containerStatuses": [container]})  # fmt: skip
            time.sleep(0.1)
        wait(lambda: all(finished(job) for job in api.items(jobs)), f"the end of {FINISHED} jobs")
        rest(lambda: count_calls(cluster))
        cpu, begin = cpu_seconds(process.pid), time.monotonic()
        time.sleep(IDLE)
        return 100 * (cpu_seconds(process.pid) - cpu) / (time.monotonic() - begin)


def memory(cluster: Cluster, side: Side, name: str, folder: Path) -> float:
    with namespace(cluster, name) as core, controller(cluster, side, name, folder) as process:
        warm_up(cluster, name, core)
        submit(cluster, name, MANY_JOBS, WORKERS)
        wait_made(cluster, core, MANY_JOBS * WORKERS + 1, "all pods")
        rest(lambda: count_calls(cluster))
        return resident_mib(process.pid)


def build_load(context: Context) -> Path:
    program = context.scratch / "kubernetes-load"
    if shutil.which("go") is None:
        raise CannotRun("there is no Go in the PATH, with which the API server is built")
    words = ["go", "build", "-o", str(program), str(context.root / "bench/kubernetes_load/main.go")]
    subprocess.run(words, check=True)
    return program


def one_round(cluster: Cluster, number: int, load: Path, folder: Path) -> dict[str, dict[str, float]]:
    sides = SIDES if number % 2 == 0 else SIDES[::-1]
    found: dict[str, dict[str, float]] = {}
    for side in sides:
        name = f"{side.name}-{number}"
        figures = make_pods(cluster, side, name, folder)
        figures["idle"] = idle(cluster, side, f"{name}-idle", folder)
        figures["many"] = memory(cluster, side, f"{name}-many", folder)
        found[side.name] = figures
        print(f"  round {number + 1}: {side.name} {figures}", flush=True)
    found["native"] = start_job(
        cluster, f"native-{number}", folder / f"native-{number}", os.environ["MUSTER_BINARY"]
    )
    print(f"  round {number + 1}: native {found['native']}", flush=True)
    found["bare"] = {"rate": bare_load(cluster, load, f"bare-{number}")}
    print(f"  round {number + 1}: bare {found['bare']}", flush=True)
    return found


def measure(context: Context, name: str) -> Report:
    os.environ["MUSTER_BINARY"] = str(context.muster)
    folder, load = context.fresh_folder("kubernetes"), build_load(context)
    cluster = Cluster(folder)
    try:
        cluster.start()
        install(cluster)
        rounds = [one_round(cluster, i, load, folder) for i in range(context.rounds)]
    finally:
        cluster.stop()

    def series(side: str, key: str) -> Series:
        return Series(tuple(one[side][key] for one in rounds))

    def rows(what: str, key: str, form: Callable[[float], str], goal: float, limit: bool) -> list[Row]:
        ours, theirs = series("muster", key), series("kubeflow", key)
        if limit:
            return [Row(what, ours, goal=goal, form=form), Row("... Kubeflow's", theirs, form=form)]
        return [Row(what, ours, theirs, goal=goal, form=form, less_is_better=True)]

    rates = series("muster", "rate").over(series("kubeflow", "rate"))
    return Report(
        name=name,
        title="The operator of Kubernetes",
        method=METHOD,
        peer="",
        unit="absolute figures",
        rows=[
            Row("pods a second, with their services", series("muster", "rate"), form=plain),
            Row("... Kubeflow's controller", series("kubeflow", "rate"), form=plain),
            Row("... a program that only makes them", series("bare", "rate"), form=plain),
            Row("... Muster / Kubeflow", rates, least=2.0, form=ratio),
            Row("... Muster / that program", series("muster", "rate").over(series("bare", "rate")),
                least=0.9, form=ratio),
            *rows("API calls a pod", "calls", plain, 4.0, True),
            Row("CPU time of the controller", series("muster", "cpu"), form=seconds),
            Row("... Kubeflow's", series("kubeflow", "cpu"), form=seconds),
            Row("... Muster / Kubeflow", series("muster", "cpu").over(series("kubeflow", "cpu")),
                goal=1 / 3, form=ratio),
            Row("memory of the controller", series("muster", "memory"), form=mebibytes),
            Row("... Kubeflow's", series("kubeflow", "memory"), form=mebibytes),
            Row("... Muster / Kubeflow",
                series("muster", "memory").over(series("kubeflow", "memory")),
                goal=1 / 3, form=ratio),
            *rows(f"idle with {FINISHED} finished jobs, of one core", "idle", percent, 0.5, True),
            *rows(f"memory with {MANY_JOBS * WORKERS} pods", "many", mebibytes, 20.0, True),
            Row("a native job: from its pods' start to its first step", series("native", "step"),
                goal=1.0, form=seconds),
            Row("... from `muster submit` to its pods' start", series("native", "submit"), form=seconds),
        ],
        same=["Each side has made all pods and services; the rows of pods a second need one of "
              "their two goals.", LIMIT, CPU_LIMIT],
    )  # fmt: skip
