"""Plays as the published `sotopia` package does: its prompts, read from an installed copy, and its rules."""
