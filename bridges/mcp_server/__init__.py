"""An MCP server: an assistant looks at graphs and recordings, and never moves a robot."""
