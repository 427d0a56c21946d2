"""Where MQTT clients come in: TCP, TLS, WebSocket, both. Bytes and connections; no packet is understood here.

Each layer is a `Consumer` for what lies below it and a `Transport` for what lies above, so they stack:

    socket ─ Wire ─┬──────────────────────────────► Peer        mqtt
                   ├─ TlsLayer ───────────────────► Peer        mqtts
                   ├─ WebSocketLayer ─────────────► Peer        mqtt_ws
                   └─ TlsLayer ─ WebSocketLayer ──► Peer        mqtt_wss
"""

from holdfast.broker.doors.doors import Doors
from holdfast.broker.doors.layers import Above, Consumer
from holdfast.broker.doors.tls import server_context

__all__ = ["Above", "Consumer", "Doors", "server_context"]
