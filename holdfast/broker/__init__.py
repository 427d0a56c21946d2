"""The MQTT broker: packets, topics and sessions are pure; listeners, peers and the journal are not."""
