"""Explore, be asked, explore again, answer (thesis, 4.1): rooms by seed, questions that need trying, a score."""
