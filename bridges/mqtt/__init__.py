"""The robot on MQTT: state out, allowed orders in, and a broker for those who have none."""
