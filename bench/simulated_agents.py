"""Agents that only talk: each says over its own connection what an agent of `muster run` says."""

import asyncio
import json
import re
from collections.abc import Callable

ANSWER_HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Agent(asyncio.Protocol):
    """One worker's: it waits until it is told to start, runs, and polls for other orders."""

    def __init__(self, index: int, host: str, token: str, answered: Callable[[], None]):
        self.index, self.answered = index, answered
        self.head = (
            f"POST /v1/agent HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        self.received = b""
        self.seen = self.sequence = 0
        self.state, self.said = "waiting", "waits for the others"
        self.cpu_seconds = 0.0
        self.problem = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.report()

    def report(self) -> None:
        self.sequence += 1
        self.cpu_seconds += 0.7
        body = json.dumps({
            "task": f"worker-{self.index}", "incarnation": self.index + 1,
            "sequence": self.sequence, "state": self.state,
            "address": f"127.0.0.1:{20000 + self.index}", "pid": 30000 + self.index,
            "child_pid": 40000 + self.index, "said": self.said, "idle_seconds": 0.5,
            "cpu_seconds": round(self.cpu_seconds, 6), "pss_bytes": 123456789,
            "last_lines": [], "seen": self.seen,
        })  # fmt: skip
        self.transport.write(f"{self.head}{len(body)}\r\n\r\n{body}".encode())

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(ANSWER_HEAD_END)
        length = LENGTH.search(head) if found else None
        if length is None or len(body) < int(length[1]):
            return
        self.received = b""
        if not head.startswith(b"HTTP/1.1 200"):
            self.problem = (head + b" " + body).decode(errors="replace")[:500]
        else:
            self.take(body)
            self.answered()
        self.report()

    def take(self, body: bytes) -> None:
        orders = json.loads(body)
        self.seen = orders["version"]
        if "start" in orders and self.state == "waiting":
            self.state, self.said = "running", "runs"

    def connection_lost(self, exc: Exception | None) -> None:
        self.problem = self.problem or f"the connection ended: {exc}"


class Agents:
    """`count` of them on this thread's loop."""

    def __init__(self, count: int):
        self.count = count
        self.agents: list[Agent] = []
        self.heartbeats = 0

    def count_answer(self) -> None:
        self.heartbeats += 1

    async def connect(self, host: str, port: int, token: str) -> None:
        loop = asyncio.get_running_loop()
        for index in range(self.count):
            agent = Agent(index, f"{host}:{port}", token, self.count_answer)
            self.agents.append(agent)
            await loop.create_connection(lambda agent=agent: agent, host, port)

    def running(self) -> int:
        return sum(agent.state == "running" for agent in self.agents)

    def problem(self) -> str:
        return next((agent.problem for agent in self.agents if agent.problem), "")

    def close(self) -> None:
        for agent in self.agents:
            agent.transport.abort()
