"""Pages for people in a browser: the Wizard-of-Oz console, studies, text episodes, ratings of recordings."""
