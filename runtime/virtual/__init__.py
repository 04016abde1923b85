"""Virtual time: one scheduler for all nodes, the simulation on it, and the guard against what escapes it."""
