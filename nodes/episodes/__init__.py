"""Sotopia episodes. Rooms, each on those after it: commands, play, results, judging, minds, talk, people."""
