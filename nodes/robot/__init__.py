"""Any robot: the protocol and the limits of one, the node that drives it, and the tests that it must pass."""
