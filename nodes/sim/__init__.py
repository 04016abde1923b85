"""Simulated robots on a laptop: a Stretch or one from a file, cameras, a collaborator; and one without physics."""
