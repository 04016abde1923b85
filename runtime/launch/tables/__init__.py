"""The tables of a launch file, a file for each: read into types, with each mistake as a sentence."""
