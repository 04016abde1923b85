"""Studies with people: a protocol from a file, sessions that survive a kill, views for experimenter and participant."""
