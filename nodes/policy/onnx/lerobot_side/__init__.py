"""Programs for the Python that LeRobot is installed for; they import nothing of ours, and we import nothing of them."""
