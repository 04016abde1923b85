"""Explore, be asked, explore again, answer (thesis, 4.1): a simulated robot in rooms made by seed, and a score."""
