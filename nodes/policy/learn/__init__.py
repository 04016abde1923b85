"""How a state policy learns: rows of what was felt and wanted, the network, and `polyrhythm learn` from recordings."""
