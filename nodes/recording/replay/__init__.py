"""`polyrhythm replay`: a recording played to its own nodes again, or to a person."""
