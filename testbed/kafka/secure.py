"""A Kafka broker whose clients need TLS, a password and permissions."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Iterable, Mapping

from confluent_kafka.admin import (
    AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType,
)

from testbed.kafka.cluster import Kafka

PASSWORDS = {"admin": "of-the-admin", "muster": "of-muster"}


class SecureKafka(Kafka):
    """SASL_SSL with PLAIN; the user "muster" may do only what allow() says."""

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder)
        self.authority = folder / "broker.crt"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", folder / "broker.key", "-out", self.authority],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        key_and_chain = (folder / "broker.key").read_text() + self.authority.read_text()
        (folder / "broker.pem").write_text(key_and_chain)

    def properties(self, broker: int) -> Mapping[str, object]:
        address = f"SASL_SSL://127.0.0.1:{self.ports[broker]}"
        users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
        return {
            **super().properties(broker),
            "listeners": f"{address},CONTROLLER://127.0.0.1:{self.controller_ports[broker]}",
            "advertised.listeners": address,
            "inter.broker.listener.name": "SASL_SSL",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config":
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="admin" password="{PASSWORDS["admin"]}" {users};',
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.folder / "broker.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:ANONYMOUS",  # ANONYMOUS: the controller's listener
        }  # fmt: skip

    def client(self, user: str = "admin") -> dict[str, object]:
        return {
            **super().client(),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": str(self.authority),
        }

    def config(self, path: pathlib.Path, **changes: object) -> pathlib.Path:
        """The settings of the user "muster" as a file of --kafka-config."""
        given = {name.replace("_", "."): value for name, value in changes.items()}
        settings = {**self.client("muster"), **given}
        del settings["bootstrap.servers"], settings["log_level"]
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        path.chmod(0o600)
        return path

    def allow(self, topic: str, *operations: str) -> None:
        """Lets the user "muster" do this with the topic: READ, WRITE, DESCRIBE."""
        self._allow(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, operations)

    def allow_topics(self, prefix: str, *operations: str) -> None:
        """The same with all topics whose names begin so; also CREATE and DELETE."""
        self._allow(ResourceType.TOPIC, prefix, ResourcePatternType.PREFIXED, operations)

    def allow_transactions(self, prefix: str) -> None:
        """Lets the user "muster" write in transactions whose ids begin so."""
        self._allow(ResourceType.TRANSACTIONAL_ID, prefix, ResourcePatternType.PREFIXED,
                    ("WRITE", "DESCRIBE"))  # fmt: skip

    def allow_group(self, group: str) -> None:
        """Lets the user "muster" read and commit the offsets of a consumer group."""
        self._allow(ResourceType.GROUP, group, ResourcePatternType.LITERAL, ("READ",))

    def _allow(self, kind: ResourceType, name: str, pattern: ResourcePatternType,
               operations: Iterable[str]) -> None:  # fmt: skip
        rules = [
            AclBinding(kind, name, pattern, "User:muster", "*", AclOperation[operation],
                       AclPermissionType.ALLOW)
            for operation in operations
        ]  # fmt: skip
        admin = self.admin()
        for done in admin.create_acls(rules).values():
            done.result(60)
