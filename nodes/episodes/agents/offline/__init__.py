"""The offline agent: plays by rules, listens by patterns. No model, no key; it tests the machinery."""
