"""From words to sound: sentences, who makes sound of them, whose turn it is, devices."""
