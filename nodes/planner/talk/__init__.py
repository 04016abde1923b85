"""The dialogue by rules: what is said back, asked and begun.

`dialogue` with `questions`, `answers`, `beside_stop`, `turns` and `brewing`; `household` is what worlds differ in; what
the grammar leaves unread `gist` takes apart, and `proposals` answers.
"""
