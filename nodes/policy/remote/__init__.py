"""A policy's model on another machine: openpi's and GR00T's servers, and Polyrhythm's own."""
