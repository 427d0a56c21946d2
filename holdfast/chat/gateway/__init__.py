"""The door over WebSocket: what is on the wire, who is connected, what goes to whom and when."""
