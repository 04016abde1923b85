"""What the operating system grants: real-time scheduling, what not every machine can do, and the stop by a signal."""
