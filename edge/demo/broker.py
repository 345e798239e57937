"""The demo's own broker: `python -m edge.demo.broker PORT` serves MQTT 3.1.1 on
loopback until it is ended."""

from __future__ import annotations

import asyncio
import sys
from typing import Any


async def serve(port: int) -> None:
    """Serve `port` on this machine, without credentials."""
    from amqtt.broker import Broker

    settings: dict[str, Any] = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    await Broker(settings).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
