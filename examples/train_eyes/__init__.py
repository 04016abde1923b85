"""How the kitchen's eyes were trained, and how well they see what they were not trained on; see docs/vlm.md."""
