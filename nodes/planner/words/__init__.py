"""What words mean, and how things are named.

`understanding` makes orders of words, by `parser`, `verbs`, `lexicon` and `languages`, once `whose` and `spelled` have
written out owners, names and places; `asked` tells what asks; `referents` binds words to the things of a scene;
`replies` names these; `cues` are classes of words.
"""
