"""The MQTT broker: packets, topics and sessions are pure; listener, peer and queue are not."""
