"""What `check` finds before a start: in a node's class, in who owns its attributes, in ways through the graph."""
