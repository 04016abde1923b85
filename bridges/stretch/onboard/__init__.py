"""The process that speaks to stretch_body: Python 3.10 as Stretches have it; stdlib, pyzmq, msgspec, stretch_body."""
