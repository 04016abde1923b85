"""How messages travel between processes: ZeroMQ, shared memory for arrays, acknowledged events, taps for tools."""
