"""From sound to words: devices and files, where speech begins and ends, who recognises it, what is an echo."""
