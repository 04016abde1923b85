"""A running graph on a terminal: its story live, how each node fares, and words that a person types."""
