"""A provider of slots (docs/formats/slots.md) whose platform is this machine: a slot is a process.

What a YARN ApplicationMaster or a Spark driver does, at its smallest: it asks the coordinator what is
wanted, starts an agent for each slot that is, and says all slots that there are. Agents outlive it;
its next attempt finds them by the processes of this machine, as YARN's would be told of its previous
containers.

usage: slot_provider.py --url URL --job FOLDER --slots FOLDER --muster BINARY --attempt N
exit code 0: the job has ended, or a later attempt is there
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

POLL_SECONDS = 0.1
ANSWER_SECONDS = 5.0
SHARED = ("token", "data_key", "ca.pem")  # what an agent needs from the job's folder


def processes_of(slots: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Returns the slots of the platform: all whose agents run, whoever started them."""
    found: dict[str, dict[str, Any]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, UnicodeDecodeError):
            continue
        if len(words) < 3 or words[1] != "agent" or state == "Z":
            continue
        flags = dict(zip(words[2::2], words[3::2]))
        if pathlib.Path(flags.get("--folder", "/")).parent != slots:
            continue
        found[flags["--slot"]] = {
            "slot": flags["--slot"], "task": flags["--task"], "state": "running", "host": "here",
            "incarnation": int(flags["--incarnation"]), "pid": int(entry.name),
        }  # fmt: skip
    return found


class Provider:
    def __init__(self, flags: argparse.Namespace):
        self.flags = flags
        self.token = (flags.job / "token").read_text().strip()
        self.known: dict[str, dict[str, Any]] = {}
        self.children: list[subprocess.Popen[bytes]] = []
        self.sequence = 0

    def look(self) -> None:
        for child in self.children:
            child.poll()  # reaps it
        running = processes_of(self.flags.slots)
        for name, slot in self.known.items():
            if name not in running:
                slot["state"] = "ended"
        self.known.update(running)

    def ask(self) -> dict[str, Any] | None:
        """Returns None if no answer came."""
        self.sequence += 1
        slots = [{k: v for k, v in slot.items() if k != "pid"} for slot in self.known.values()]
        body = {
            "provider": "testbed", "attempt": self.flags.attempt, "sequence": self.sequence,
            "slots": slots,
        }  # fmt: skip
        request = urllib.request.Request(
            self.flags.url + "/v1/slots", json.dumps(body).encode(), method="POST",
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def start(self, wanted: dict[str, Any]) -> None:
        name = f"slot-{self.flags.attempt}-{self.sequence}-{wanted['task']}"
        folder = self.flags.slots / name
        for part in ("agents", "logs"):
            (folder / part).mkdir(parents=True, mode=0o700)
        for secret in SHARED:
            if (self.flags.job / secret).exists():
                shutil.copy2(self.flags.job / secret, folder / secret)
        command = [
            self.flags.muster, "agent", "--folder", str(folder), "--task", wanted["task"],
            "--incarnation", str(wanted["incarnation"]), "--coordinator", self.flags.url,
            "--lease", str(wanted["lease_seconds"]), "--slot", name,
        ]  # fmt: skip
        if wanted.get("port"):
            command += ["--port", str(wanted["port"])]
        # fmt: off
        with open(folder / "agent.log", "wb") as log:
            self.children.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))
        # fmt: on
        self.known[name] = {
            "slot": name, "task": wanted["task"], "incarnation": wanted["incarnation"],
            "state": "asked", "pid": self.children[-1].pid,
        }  # fmt: skip

    def obey(self, answer: dict[str, Any]) -> bool:
        """Returns False if this provider has nothing left to do."""
        if answer.get("superseded"):
            return False
        for name in answer["forget"]:
            self.known.pop(name, None)
        for name in answer["kill"]:
            try:
                os.kill(self.known[name]["pid"], signal.SIGKILL)
            except (KeyError, ProcessLookupError):
                pass
        for wanted in answer["wanted"]:
            self.start(wanted)
        alive = any(slot["state"] != "ended" for slot in self.known.values())
        return alive or not answer.get("final")

    def run(self) -> int:
        while True:
            self.look()
            answer = self.ask()
            # An answer to any report but the last one is ignored.
            if answer is not None and answer["sequence"] == self.sequence:
                if not self.obey(answer):
                    return 0
            time.sleep(POLL_SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--job", type=pathlib.Path, required=True)
    parser.add_argument("--slots", type=pathlib.Path, required=True)
    parser.add_argument("--muster", required=True)
    parser.add_argument("--attempt", type=int, required=True)
    return Provider(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
