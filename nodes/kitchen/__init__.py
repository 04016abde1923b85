"""A scripted robot for a kitchen with a person in it: what it sees, decides and does there."""
