"""What a person looks at after a run: summary, contact sheet, timeline."""
