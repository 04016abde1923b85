"""Behaviour cloning of the scripted policy in simulation; see docs/learned-policy.md."""
