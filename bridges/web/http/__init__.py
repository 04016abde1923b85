"""The web server that all pages share: access, sessions, static files, messages to and from browsers."""
