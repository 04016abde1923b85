"""The suite of the nine skills: scenarios in the kitchen, wordings of the count, and the table."""
