"""Makes a program wait at a step of its training, so that a test can kill it there."""

import os
import time

DEADLINE_SECONDS = 300


class Gate:
    """`pass_through(step)` waits from step `at` on until the file `path` exists; "" never waits."""

    def __init__(self, path: str, at: int):
        self.path, self.at, self.said = path, at, False

    def pass_through(self, step: int) -> None:
        if not self.path or step < self.at:
            return
        if not self.said:
            print(f"at the gate in step {step}", flush=True)
            self.said = True
        end = time.monotonic() + DEADLINE_SECONDS
        while not os.path.exists(self.path):
            if time.monotonic() > end:
                raise TimeoutError(f"{self.path} has not been made")
            time.sleep(0.02)


def add_flags(parser) -> None:
    parser.add_argument("--gate", default="", help="a file; wait for it")
    parser.add_argument("--gate-step", type=int, default=0, help="in this step")
