"""Learning from episodes (SOTOPIA-pi): new tasks, filters, training data, rounds, fine-tuning and serving."""
