"""A scenario, its people, and a node that measures their talk."""
