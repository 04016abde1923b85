"""A visuomotor policy: from head and wrist images, words and joints to chunks; see docs/visuomotor-policy.md."""
