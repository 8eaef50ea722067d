"""A job on YARN: from the command to its running tasks, a killed agent's replacement, and memory."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.context import CannotRun, Context
from bench.measure import Series, interleave
from bench.report import Report, Row, in_unit
from testbed.hadoop.cluster import Hdfs
from testbed.hadoop.yarn import Yarn
from testbed.hadoop.yarn_jobs import AGENT, COORDINATOR, MASTER, YarnJobs

TASKS, MEMORY_MB, MASTER_MB = 2, 256, 512
PATIENCE = 300.0
SETTLED_SECONDS = 3.0
LOOK = 0.005
MIB = 1 << 20
TIMELINE = (
    "Muster stages its files on HDFS before YARN has the application, starts its coordinator beside the ApplicationMaster, "
    "and an agent in each container before the task."
)
# Measured once, on the same machine and day as the page of 2026-11-29.
HDFS_WAITS = (
    "Each step of a coordinator is durable on HDFS before it is taken. To close a file takes HDFS some 0.02 s, or 0.42 s "
    "where its client asks the NameNode before the DataNode has reported the block: that client, in the DataNode, then waits "
    "for dfs.client.block.write.locateFollowingBlock.initial.delay.ms (400). With 50 there, five rounds gave 0.54 s (0.15 to "
    "1.04 s) more than the ApplicationMaster that does nothing, and 0.47 s (0.42 to 0.63 s) until a killed agent's task runs "
    "again."
)
SERVICES_SECONDS = 15.7  # YARN services' ApplicationMaster, measured once on such a machine
METHOD = f"""
NameNode, DataNode, ResourceManager and two NodeManagers of Hadoop 3.4.2 run on this machine, in the test bed's
configuration (heartbeats each 200 ms). A task writes its time into a file and sleeps.

- Submit: from the start of the command to the last of {TASKS} tasks. Muster: `muster run --on yarn --workers {TASKS} --detach`,
  which stages its own program of some 10 MB, and starts tasks once all their agents have reported. The peer is an
  ApplicationMaster in Java that does nothing but ask for {TASKS} containers and start the command (`bench/yarn_peer`), its jar on
  HDFS before; submitted by the same calls of the ResourceManager.
- Replacement: from `kill -9` of an agent to the file of its task's next incarnation, in another container. All tasks
  have run for {SETTLED_SECONDS:.0f} s before.
- Memory: resident size of the ApplicationMaster's JVM, and of the coordinator beside it, while the tasks run.
"""


def wait(what: Callable[[], Any], why: str) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(LOOK)
    raise CannotRun(f"waited in vain for {why}")


def resident_mib(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 / MIB if found else 0.0


class Bare:
    """Submits the peer."""

    def __init__(self, yarn: Yarn, folder: Path):
        self.yarn, self.folder = yarn, folder
        source = Path(__file__).parent / "yarn_peer"
        jars = f"{yarn.hdfs.jars}/*"
        subprocess.run(["javac", "-cp", jars, "-d", folder / "classes", source / "BareMaster.java"], check=True)
        (folder / "jar").mkdir()
        subprocess.run(["jar", "--create", "--file", folder / "jar/bare.jar", "-C", folder / "classes", "."], check=True)
        yarn.hdfs.put(folder / "jar", f"{yarn.hdfs.url}/user/tester/bare")
        status = json.loads(yarn.hdfs.call("GET", "/user/tester/bare/bare.jar", "GETFILESTATUS", user="tester"))
        self.jar = status["FileStatus"]

    def post(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        request = urllib.request.Request(
            f"{self.yarn.url}/ws/v1/cluster/apps{path}?user.name=tester",
            json.dumps(body).encode() if body else b"", {"Content-Type": "application/json"}, method="POST",
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())

    def submit(self, command: str) -> str:
        """Returns the application's id."""
        application = json.loads(self.post("/new-application"))["application-id"]
        jars = f"bare.jar:{self.yarn.hdfs.folder}/conf:{self.yarn.hdfs.jars}/*"
        java = "exec {{JAVA_HOME}}/bin/java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 BareMaster"
        resource = {
            "resource": f"{self.yarn.hdfs.url}/user/tester/bare/bare.jar", "type": "FILE",
            "visibility": "APPLICATION", "size": self.jar["length"], "timestamp": self.jar["modificationTime"],
        }  # fmt: skip
        self.post("", {
            "application-id": application, "application-name": "bare", "application-type": "BARE",
            "resource": {"memory": MASTER_MB, "vCores": 1},
            "am-container-spec": {
                "local-resources": {"entry": [{"key": "bare.jar", "value": resource}]},
                "environment": {"entry": [{"key": "CLASSPATH", "value": jars}]},
                "commands": {"command": f"{java} {TASKS} {MEMORY_MB} '{command}' 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"},
            },
        })  # fmt: skip
        return application


class Bench:
    def __init__(self, context: Context, yarn: Yarn, folder: Path):
        built = subprocess.run([context.root / "java/yarn/build.sh"], capture_output=True, text=True, check=True)
        self.yarn, self.folder = yarn, folder
        self.jobs = YarnJobs(str(context.muster), folder, yarn, built.stdout.strip())
        self.bare = Bare(yarn, context.fresh_folder("yarn-peer"))
        self.number = 0
        self.others: dict[str, list[float]] = {"replaced": [], "master": [], "coordinator": []}

    def marks(self) -> Path:
        """A new folder in which tasks leave their times."""
        self.number += 1
        path = self.folder / f"marks-{self.number}"
        path.mkdir()
        return path

    def wait_for_marks(self, path: Path, number: int) -> float:
        """When the last one was made, in seconds since the epoch."""
        wait(lambda: len(list(path.iterdir())) >= number, f"{number} tasks")
        time.sleep(0.1)  # until the last one has its text
        return max(float(mark.read_text()) for mark in path.iterdir())

    def peer(self) -> float:
        path = self.marks()
        begin = time.time()
        # The shell that starts the ApplicationMaster must leave the variable to that of the task.
        application = self.bare.submit(f"date +%s.%N > {path}/\\$CONTAINER_ID; exec sleep 1000")
        try:
            return self.wait_for_marks(path, TASKS) - begin
        finally:
            self.yarn.kill_app(application)
            self.wait_for_end(application)

    def wait_for_end(self, application: str) -> None:
        wait(lambda: not self.jobs.processes_of(application), f"the end of {application}")

    def muster(self) -> float:
        path, name = self.marks(), f"bench-{self.number}"
        begin = time.time()
        self.jobs.ok("run", "--on", "yarn", "--workers", TASKS, "--memory", f"{MEMORY_MB}Mi", "--detach",
                     "--name", name, "--restart-scope", "task", "--",
                     "sh", "-c", f"date +%s.%N > {path}/$MUSTER_TASK.$MUSTER_INCARNATION; exec sleep 1000")  # fmt: skip
        taken = self.wait_for_marks(path, TASKS) - begin
        for word, what in ((MASTER, "master"), (COORDINATOR, "coordinator")):
            sizes = [resident_mib(pid) for pid in self.jobs.find(name, word)]
            self.others[what].append(max(sizes))
        agent = next(pid for pid in self.jobs.find(name, AGENT) if "muster" in os.readlink(f"/proc/{pid}/exe"))
        time.sleep(SETTLED_SECONDS)
        killed = time.time()
        os.kill(agent, signal.SIGKILL)
        self.others["replaced"].append(self.wait_for_marks(path, TASKS + 1) - killed)
        application = self.jobs.application(name)
        self.jobs.ok("stop", name)
        self.wait_for_end(application)
        return taken


def measure(context: Context, name: str) -> Report:
    folder = context.fresh_folder("yarn")
    hdfs = Hdfs(folder / "cluster", data_nodes=1)
    yarn = Yarn(hdfs)
    loads = [os.getloadavg()[0]]
    try:
        hdfs.start()
        yarn.start()
        bench = Bench(context, yarn, folder)
        bench.peer()  # so that the files of both are in memory
        bench.muster()
        for values in bench.others.values():
            values.clear()
        submit = interleave({"muster": bench.muster, "bare": bench.peer}, context.rounds)
    finally:
        yarn.stop()
        hdfs.stop()
    loads.append(os.getloadavg()[0])
    beside = Series(tuple(a - b for a, b in zip(submit["muster"].values, submit["bare"].values)))
    others = {what: Series(tuple(values)) for what, values in bench.others.items()}
    seconds, mebibytes = in_unit("s", 2), in_unit("MiB", 1)
    return Report(
        name=name,
        title="Jobs on YARN",
        method=METHOD,
        peer="",
        unit="absolute figures",
        rows=[
            Row("submit to all tasks running", submit["muster"], goal=0.6 * SERVICES_SECONDS, form=seconds),
            Row("... an ApplicationMaster that does nothing", submit["bare"], form=seconds),
            Row("... more than that", beside, goal=1.5, form=seconds),
            Row("a killed agent's task runs again after", others["replaced"], goal=1.0, form=seconds),
            Row("memory of the ApplicationMaster", others["master"], goal=150, form=mebibytes),
            Row("memory of the coordinator", others["coordinator"], goal=15, form=mebibytes),
        ],
        same=[
            f"The goal of the first row is 0.6 of the {SERVICES_SECONDS} s that YARN services' ApplicationMaster took on another "
            "day of such a machine; it does not run here.",
            TIMELINE,
            HDFS_WAITS,
            f"Load of the machine: {loads[0]:.1f} at the start and {loads[1]:.1f} at the end, on {os.cpu_count()} cores.",
        ],
    )  # fmt: skip
