"""The Wizard-of-Oz console: a page from which a person sees, speaks, drives, stops and sits in for a policy."""
