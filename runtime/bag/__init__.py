"""Recordings in MCAP: files, messages, schemas, the parts of one run, and the journal of handler calls."""
