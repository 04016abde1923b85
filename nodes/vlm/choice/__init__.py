"""What a robot does next: a table, what it goes by and what became of the deeds before."""
