"""The process that `muster tune` takes for a trial: the driver (muster.spark.trials) runs its command on executors.

python trial_runner.py SOCKET COMMAND... prints what the trial's chief prints, and ends as its job does. SIGTERM stops
the job, and so does the end of this process. Where Spark was stopped, which no trial is to blame for, this tells
`muster tune` to end: the same study continues later. The file is run by its path: it needs only Python.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any


def main() -> int:
    study = os.getppid()
    path, *command = sys.argv[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as driver:

        def stop(signum: int, frame: Any) -> None:
            driver.shutdown(socket.SHUT_WR)  # the driver reads the end, and stops the job

        driver.connect(path)
        driver.sendall(json.dumps(command).encode() + b"\n")
        signal.signal(signal.SIGTERM, stop)
        with driver.makefile("rb") as lines:
            for line in lines:
                said = json.loads(line)
                if "error" in said:
                    print(said["error"], file=sys.stderr)
                    return 1
                if "spark_is_stopped" in said:
                    print("Spark was stopped", file=sys.stderr)
                    if os.getppid() == study:
                        os.kill(study, signal.SIGTERM)
                    continue  # until the end of the study ends this process
                if "ended" in said:
                    return 0
                sys.stdout.buffer.write(said["output"].encode("latin-1"))
                sys.stdout.buffer.flush()
    print("the driver has ended", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
