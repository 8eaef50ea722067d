"""A client of Kubernetes' API for tests: JSON in, JSON out, one connection a thread."""

from __future__ import annotations

import http.client
import json
import pathlib
import ssl
import threading
from typing import Any, Iterator

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(Exception):
    def __init__(self, code: int, body: Object):
        super().__init__(f"{code}: {body.get('message', body)}")
        self.code = code
        self.body = body


class Api:
    def __init__(self, port: int, authority: pathlib.Path, token: str):
        self.port = port
        self.context = ssl.create_default_context(cafile=str(authority))
        self.token = token
        self.local = threading.local()

    def connect(self, timeout: float = 30) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.context, timeout=timeout
        )

    def headers(self, content_type: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Object:
        text = None if body is None else json.dumps(body)
        for attempt in range(2):
            if not hasattr(self.local, "connection"):
                self.local.connection = self.connect()
            try:
                self.local.connection.request(method, path, text, self.headers(content_type))
                answer = self.local.connection.getresponse()
                read = answer.read()
                break
            except (OSError, http.client.HTTPException):
                # A kept connection may have been closed meanwhile.
                del self.local.connection
                if attempt:
                    raise
        try:
            result: Object = json.loads(read or b"{}")
        except ValueError:
            result = {"message": read.decode(errors="replace")}
        if answer.status >= 300:
            raise ApiError(answer.status, result)
        return result

    def get(self, path: str) -> Object:
        return self.call("GET", path)

    def find(self, path: str) -> Object | None:
        try:
            return self.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def items(self, path: str) -> list[Object]:
        return self.get(path)["items"]

    def create(self, path: str, body: Object) -> Object:
        return self.call("POST", path, body)

    def merge(self, path: str, patch: Object) -> Object:
        return self.call("PATCH", path, patch, MERGE)

    def patch_status(self, path: str, status: Object) -> Object:
        return self.call("PATCH", path + "/status", {"status": status}, STRATEGIC)

    def delete(self, path: str, grace: int | None = None, uid: str | None = None) -> Object:
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        return self.call("DELETE", path, options)

    def watch(self, path: str, version: str, connections: list[Any]) -> Iterator[Object]:
        """Events until the server ends the watch, after 20 s, or somebody closes the connection's socket."""
        connection = self.connect(timeout=60)
        connections.append(connection)
        query = f"?watch=1&timeoutSeconds=20&resourceVersion={version}"
        connection.request("GET", path + query, None, self.headers("application/json"))
        answer = connection.getresponse()
        while line := answer.readline():
            yield json.loads(line)
