"""`polyrhythm bag export`: a recording for other tools, a file for each format."""
