"""People speak at a page: sound from a browser, and when to recognise it."""
