"""A Kafka cluster for tests: the one that PENSTOCK_KAFKA names, else the broker that is built
into the client library.

The built-in broker is a server on a port of this machine that speaks Kafka's protocol and
keeps records in memory. A whole Kafka needs Java: `mvn dependency:copy-dependencies` of
`org.apache.kafka:kafka_2.13` and `org.slf4j:slf4j-simple` gives its jars;
with `process.roles=broker,controller` in `server.properties`,
`kafka.tools.StorageTool format -t ID -c server.properties` and then `kafka.Kafka server.properties` start
one node. Then `PENSTOCK_KAFKA=127.0.0.1:9092 make test ARGS=tests/integration/sinks/test_kafka_sink.py`;
the sink passes it with Kafka 3.9.1.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

import pytest

from tests.support.waiting import PATIENCE_S


class Kafka:
    """A cluster; `topic` gives a name that nobody else uses."""

    def __init__(self) -> None:
        self.client: Any = pytest.importorskip("confluent_kafka")
        self._broker: Any = None
        self.brokers = os.environ.get("PENSTOCK_KAFKA", "")
        if not self.brokers:
            self._broker = self.client.Producer({"test.mock.num.brokers": 1, "log_level": 0})
            found = self._broker.list_topics(timeout=PATIENCE_S).brokers.values()
            self.brokers = ",".join(f"{broker.host}:{broker.port}" for broker in found)

    def topic(self) -> str:
        """A new name."""
        return f"penstock-{uuid.uuid4().hex[:12]}"

    def records(self, topic: str, count: int, wait_s: float = PATIENCE_S) -> list[Any]:
        """The first `count` records of a topic, in order; fewer if no more come."""
        consumer = self.client.Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": uuid.uuid4().hex,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        try:
            consumer.assign(
                [self.client.TopicPartition(topic, partition, 0) for partition in self._partitions(topic)]
            )
            found = [record for record in consumer.consume(count, timeout=wait_s) if record.error() is None]
            return sorted(found, key=lambda record: (record.partition(), record.offset()))
        finally:
            consumer.close()

    def _partitions(self, topic: str) -> list[int]:
        admin = self.client.Producer({"bootstrap.servers": self.brokers, "log_level": 0})
        return sorted(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)
