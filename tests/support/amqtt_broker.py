"""Runs the embedded broker: `python -m tests.support.amqtt_broker PORT`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any


async def serve(port: int) -> None:
    """Serve MQTT 3.1.1 to anybody on the loopback interface, until the process is ended."""
    from amqtt.broker import Broker

    settings: dict[str, Any] = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    await Broker(settings).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
