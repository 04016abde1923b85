"""Sotopia episodes; each room stands on the next: runner, results, evaluation, agents, dialogue, scenarios."""
