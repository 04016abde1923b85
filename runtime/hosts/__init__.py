"""More than one machine: the `[hosts]` of a launch file, and the gateway between the runs of two hosts."""
