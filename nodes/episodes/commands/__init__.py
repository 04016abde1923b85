"""`polyrhythm episodes run`, `resume`, `score` and `sample`."""
