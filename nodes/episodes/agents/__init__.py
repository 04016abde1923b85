"""What plays a seat: rules, scripts, people at the terminal, models behind an endpoint."""
