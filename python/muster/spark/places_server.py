"""The driver's side of places on executors: who has which slot, and what each shall do next."""

from __future__ import annotations

import hmac
import http.server
import json
import math
import secrets
import ssl
import threading
import time
from typing import Any, Dict, List, Optional, Protocol

from muster.spark.pace import Pace
from muster.spark.reach import LOOPBACK, Home, Reach

Slot = Dict[str, Any]  # as docs/formats/slots.md reports it

# After its last word, a place that nobody hears has ended its agent: its lease, SIGTERM and a margin.
_LOST_SECONDS = 25.0
_POLL_SECONDS = 0.1
_CLOSE_SECONDS = 0.05  # until the server sees that it is to end
LOCAL = "local-"  # how the names of places on the driver's machine, outside Spark, begin


class _Known:
    """A place that has reported."""

    def __init__(self) -> None:
        self.heard = time.monotonic()
        self.slot: Optional[Slot] = None
        self.order: Optional[Dict[str, Any]] = None  # to start the slot's agent
        self.output_read = 0  # bytes of what the slot's agent has written
        self.kill = False
        self.left = False
        self.is_ending = False  # it gets no other slot


class Answers(Protocol):
    """What a server of JSON answers to a report. Called by any thread."""

    def answer(self, report: Dict[str, Any]) -> Dict[str, Any]: ...


class Output(Protocol):
    """Takes what agents write whose order asks for it. Called under the lock of the table of places."""

    def begin(self) -> None:
        """An agent is to start."""

    def take(self, text: str) -> None:
        """text: a character for each byte."""

    def end(self) -> None:
        """The agent has ended, and everything that it wrote was taken."""


class Places:
    """The table of places and slots. All methods may be called by any thread."""

    def __init__(
        self, local_tasks: str = "", output: Optional[Output] = None, end_together: bool = False
    ) -> None:
        """local_tasks: the type of task ("ps") that local places take, and no others do. end_together: Spark
        ends all places on executors when one of them has ended, as tasks of a barrier stage."""
        self._lock = threading.Lock()
        self._output = output
        self._local_tasks = local_tasks
        self._end_together = end_together
        self._places: Dict[str, _Known] = {}
        self._leave = False
        self._news = threading.Event()
        self._pace = Pace()

    def answer(self, report: Dict[str, Any]) -> Dict[str, Any]:
        """What the place is to do."""
        with self._lock:
            if report["place"] not in self._places:
                self._news.set()
            place = self._places.setdefault(report["place"], _Known())
            place.heard = time.monotonic()
            place.left = self._leave
            slot = place.slot
            if slot is not None and report.get("slot") == slot["slot"]:
                place.order = None
                slot["host"] = report["host"]
                self._take_output(place, report)
                if slot["state"] != "ended":
                    if slot["state"] != report["state"]:
                        self._news.set()
                    slot["state"] = report["state"]
                    if report["state"] == "ended":
                        slot["exit"], slot["detail"] = report["exit"], report["detail"]
                        if report.get("disrupted"):
                            slot["disrupted"] = True
                        if self._output is not None and report.get("all_sent"):
                            self._output.end()
            if report.get("last"):
                place.heard = -math.inf
                self._note_end(report["place"])
            return {
                "start": place.order, "kill": place.kill, "leave": self._leave,
                "output_read": place.output_read,
            }  # fmt: skip

    def _note_end(self, ended: str) -> None:
        for name, place in self._places.items():
            if name == ended or (self._end_together and not name.startswith(LOCAL)):
                place.is_ending = True

    def _take_output(self, place: _Known, report: Dict[str, Any]) -> None:
        """A report whose answer was lost is repeated, with output that was taken already."""
        output = report.get("output", "")
        if output and self._output is not None and report["output_at"] == place.output_read:
            self._output.take(output)
            place.output_read += len(output)

    def slots(self) -> List[Slot]:
        """All slots, as the provider reports them."""
        now = time.monotonic()
        with self._lock:
            for place in self._places.values():
                slot = place.slot
                if slot is None or slot["state"] == "ended" or now - place.heard < _LOST_SECONDS:
                    continue
                slot.update(state="ended", exit=-1, disrupted=True, detail="its executor is lost")
            return [dict(place.slot) for place in self._places.values() if place.slot is not None]

    def wait_for_news(self) -> None:
        """Until a place has reported something new, or it is time to ask the job's coordinator again."""
        if self._news.wait(self._pace.seconds()):
            self._news.clear()
            self._pace.note_change()

    def start(self, slot: Slot, order: Dict[str, Any]) -> bool:
        """Gives the slot to a free place; False if there is none."""
        now = time.monotonic()
        with self._lock:
            for name, place in self._places.items():
                there = place.slot is None and not place.is_ending and now - place.heard < _LOST_SECONDS / 5
                if there and self._may_take(name, slot["task"]):
                    place.slot, place.order = {**slot, "state": "asked"}, order
                    place.kill, place.output_read = False, 0
                    if self._output is not None and order["sends_output"]:
                        self._output.begin()
                    return True
        return False

    def kill(self, name: str) -> None:
        with self._lock:
            for place in self._places.values():
                if place.slot is not None and place.slot["slot"] == name:
                    place.kill = True

    def forget(self, name: str) -> None:
        with self._lock:
            for place in self._places.values():
                if place.slot is not None and place.slot["slot"] == name:
                    place.slot, place.order = None, None

    def _may_take(self, place: str, task: str) -> bool:
        is_local_task = self._local_tasks != "" and task.rpartition("-")[0] == self._local_tasks
        return place.startswith(LOCAL) == is_local_task

    def count_on_executors(self) -> int:
        """How many places on executors are there, or may be."""
        now = time.monotonic()
        with self._lock:
            return sum(
                now - place.heard < _LOST_SECONDS
                for name, place in self._places.items()
                if not name.startswith(LOCAL)
            )

    def leave(self) -> None:
        """All places are to end."""
        with self._lock:
            self._leave = True

    def wait_until_left(self, seconds: float) -> None:
        """Waits until each place was told to end, and is heard no more, or is lost."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._lock:
                now = time.monotonic()
                waits = [p for p in self._places.values() if now - p.heard < _LOST_SECONDS]
                if all(place.left for place in waits):
                    return
            time.sleep(_POLL_SECONDS)


class PlacesServer:
    """Answers those who know its token, where the driver is at home. close() ends it."""

    def __init__(self, places: Answers, home: Optional[Home] = None) -> None:
        home = home or Home()
        token = secrets.token_hex(32)
        handler = type("Handler", (_Handler,), {"places": places, "token": token})
        context = home.server_context()
        interface = LOOPBACK if context is None else ""  # "": every one
        self._server = _Server((interface, 0), handler, context)
        scheme = "http" if context is None else "https"
        url = f"{scheme}://{home.host}:{self._server.server_address[1]}/"
        self.reach = Reach(url, token, home.authority)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_CLOSE_SECONDS,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: Any, handler: Any, context: Optional[ssl.SSLContext]) -> None:
        super().__init__(address, handler)
        self._context = context

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the connection's own thread, so that a peer that is silent in the handshake stops nobody else."""
        if self._context is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(_Handler.timeout)
        with self._context.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a stranger, or a place that has given up, or that asks again


class _Handler(http.server.BaseHTTPRequestHandler):
    places: Answers
    token: str
    timeout = 10.0

    def do_POST(self) -> None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given, f"Bearer {self.token}"):
            self.send_error(401)
            return
        size = int(self.headers.get("Content-Length", "0"))
        if size > 1 << 20:
            self.send_error(413)
            return
        body = json.dumps(self.places.answer(json.loads(self.rfile.read(size)))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        try:
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # it has not waited for the answer, and asks again

    def log_message(self, format: str, *args: object) -> None:
        pass
