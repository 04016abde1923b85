"""How the shipped policy was learned: behaviour cloning of the scripted one; see docs/learned-policy.md."""
