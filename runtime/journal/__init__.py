"""The journal of handler calls: what each read, waited for and published, with the answers of the world outside."""
