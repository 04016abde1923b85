"""What an episode was worth: checks and scores, by rules or by a model."""
