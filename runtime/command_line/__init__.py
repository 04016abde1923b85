"""What commands are made of: arguments and exit codes, attaching to a running graph, messages as plain text."""
