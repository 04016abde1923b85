"""What a server refuses says how it is asked next, and when nothing is left to try."""

from __future__ import annotations

from nodes.models.dialect import Dialect

SENT = ("model", "messages", "response_format", "max_tokens", "max_completion_tokens")


def asked(*refusals: str, begin: Dialect | None = None) -> list[tuple[str, str]]:
    """In which formats and under which names one question is asked, refused in these words, the last for ever."""
    dialect: Dialect | None = begin or Dialect()
    words, seen = list(refusals), list[tuple[str, str]]()
    while dialect is not None:
        seen.append((dialect.format, dialect.limit))
        assert len(seen) < 10, "it never ends"
        dialect = dialect.after(words.pop(0) if len(words) > 1 else words[0], SENT)
    return seen


def test_a_refusal_that_names_nothing_weakens_the_format_alone() -> None:
    assert asked("no") == [("json_schema", "both"), ("tools", "both"), ("json_object", "both"), ("text", "both")]


def test_a_refusal_that_names_the_limit_is_tried_once_under_the_other_name() -> None:
    assert asked("unknown: max_completion_tokens", "no response_format") == [
        ("json_schema", "both"),
        ("json_schema", "max_tokens"),
        ("tools", "max_tokens"),
        ("json_object", "max_tokens"),
        ("text", "max_tokens"),
    ]


def test_a_server_that_always_names_both_is_left_alone_in_the_end() -> None:
    assert asked("max_tokens, max_completion_tokens") == [
        ("json_schema", "both"),
        ("json_schema", "max_completion_tokens"),
        ("json_schema", "max_tokens"),
        ("tools", "both"),
        ("json_object", "both"),
        ("text", "both"),
    ]


def test_what_is_remembered_may_be_refused_anew() -> None:
    old = Dialect().after("max_completion_tokens", SENT)
    assert old is not None
    assert asked("max_tokens is unknown, see max_completion_tokens", "no", begin=old.remembered)[:2] == [
        ("json_schema", "max_tokens"),
        ("json_schema", "max_completion_tokens"),
    ]
