"""A partner in mind (thesis, chapter 3): predictions of the other, meetings that are remembered, a referential game."""
