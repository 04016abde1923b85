"""The Wizard-of-Oz console: what it shows, what a person's acts become, and who sits where."""
