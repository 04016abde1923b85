"""Recordings as MCAP files: reading and writing, the schema of each message, the parts of one run."""
