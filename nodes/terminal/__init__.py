"""A run shown live on a terminal."""
