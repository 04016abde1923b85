"""Runs the handlers of nodes in real time: executor, lanes, threads, failures and health reports."""
