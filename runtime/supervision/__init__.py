"""The processes of a run: start, ready, go, restart and stop; and the registry by which tools find them."""
