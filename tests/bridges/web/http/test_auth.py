"""Who may come in: tokens, names, pace, and where the console may listen."""

from __future__ import annotations

import pytest

from bridges.web.http.auth import ROLES, AllowedOrigins, TokenBucket, Tokens, check_bind
from bridges.web.http.server import Capacity
from runtime.errors import ParameterError
from tests.support.sentences import pattern


def role_of(tokens: Tokens, given: str) -> str:
    """The role in which a code lets somebody in; "" where it lets nobody in."""
    opened = tokens.open(given)
    return "" if opened is None else opened.role


def test_each_role_has_a_token_of_128_bits_of_its_own() -> None:
    one, other = Tokens({}).with_roles(ROLES), Tokens({}).with_roles(ROLES)
    tokens = [*one.by_role.values(), *other.by_role.values()]
    assert len(set(tokens)) == 6
    assert all(len(bytes.fromhex(token)) == 16 for token in tokens)
    assert {role: role_of(one, token) for role, token in one.by_role.items()} == {role: role for role in one.by_role}


@pytest.mark.parametrize("token", ["", "0" * 32, "é", "\ud800", "operator"])
def test_any_other_token_is_nobody(token: str) -> None:
    assert role_of(Tokens({}).with_roles(ROLES), token) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "robot.local", ""])
def test_a_bind_outside_loopback_without_tls_is_refused(host: str) -> None:
    with pytest.raises(ParameterError, match=pattern("bridges.no_tls")):
        check_bind(host, "", "")
    check_bind(host, "cert.pem", "key.pem")


def test_half_a_tls_configuration_is_refused() -> None:
    with pytest.raises(ParameterError, match="come together"):
        check_bind("127.0.0.1", "cert.pem", "")


def test_host_and_origin_are_exact() -> None:
    door = AllowedOrigins.of("127.0.0.1", 8420, has_tls=False)
    assert door.admits_origin("127.0.0.1:8420", "http://127.0.0.1:8420")
    assert door.admits_origin("localhost:8420", "http://localhost:8420")
    for host, origin in (
        ("127.0.0.1:8420", "http://localhost:8420"),
        ("127.0.0.1:8420", "https://127.0.0.1:8420"),
        ("127.0.0.1:8420", "http://127.0.0.1:8421"),
        ("127.0.0.1:8420", "http://127.0.0.1:8420.evil.example"),
        ("127.0.0.1:8420", None),
        ("127.0.0.1:8420", "null"),
        ("evil.example:8420", "http://evil.example:8420"),
        ("127.0.0.1", "http://127.0.0.1"),
        (None, "http://127.0.0.1:8420"),
    ):
        assert not door.admits_origin(host, origin)


def test_pace_allows_a_burst_and_then_the_rate() -> None:
    pace = TokenBucket(per_s=10.0, burst=3.0)
    assert [pace.allows(0) for _ in range(4)] == [True, True, True, False]
    assert pace.allows(100_000_000)
    assert not pace.allows(100_000_000)


def test_behind_a_tunnel_only_the_named_origin_leads_here() -> None:
    door = AllowedOrigins.of("127.0.0.1", 8420, has_tls=False, also=["http://localhost:9000"])
    assert door.admits_origin("localhost:9000", "http://localhost:9000")
    assert not door.admits_origin("localhost:9000", "https://localhost:9000")
    assert not door.admits_origin("localhost:9000", "http://localhost:8420")
    assert not door.admits_origin("localhost:9001", "http://localhost:9001")
    assert door.admits_origin("localhost:8420", "http://localhost:8420")


def test_no_role_takes_the_places_that_are_kept_for_others() -> None:
    roles = ("operator", "viewer", "participant")
    for greedy, most in (("viewer", 8), ("operator", 12), ("participant", 12)):
        places = Capacity()
        while not places.refusal(greedy, roles):
            places.take(greedy)
            most -= 1
        assert most == 0
        needed = [role for role in ("operator", "participant") if role != greedy]
        assert [places.refusal(role, roles) for role in needed] == [""] * len(needed)


def test_a_place_is_free_again_once_somebody_has_left() -> None:
    places = Capacity(2)
    for _ in range(2):
        places.take("ada")
    assert "all 2 places are taken" in places.refusal("ada", ("ada",))
    places.leave("ada")
    assert places.refusal("ada", ("ada",)) == ""


def test_many_raters_do_not_keep_each_other_out() -> None:
    names = [f"rater-{number}" for number in range(40)]
    places = Capacity()
    for name in names[:16]:
        assert places.refusal(name, (*names, "viewer")) == ""
        places.take(name)


def test_a_token_that_was_taken_back_is_good_for_nothing_and_known_as_such() -> None:
    first = Tokens({}).with_roles(ROLES)
    old = first.by_role["participant"]
    then = first.renewed("participant").with_roles(("rater",))
    new = then.by_role["participant"]
    assert (role_of(then, old), role_of(then, new)) == ("", "participant")
    assert (then.was_taken_back(old), then.was_taken_back(new), then.was_taken_back("")) == (True, False, False)
    assert role_of(then, first.by_role["operator"]) == "operator"


def test_each_person_invited_has_a_token_and_a_name_of_their_own_until_it_is_revoked() -> None:
    tokens, ada = Tokens({}).with_roles(ROLES).inviting("operator", "Ada", "operator")
    tokens, ben = tokens.inviting("viewer", "Ben", "Ada")
    assert (role_of(tokens, ada), role_of(tokens, ben)) == ("operator", "viewer")
    assert tokens.name_for(ada, "Somebody", "operator") == "Ada"
    assert tokens.name_for(tokens.by_role["operator"], "Ada", "operator") == "operator"  # that is somebody else
    assert tokens.name_for(tokens.by_role["operator"], "Cleo", "operator") == "Cleo"
    without = tokens.revoking(1)
    assert (role_of(without, ada), role_of(without, ben), without.was_taken_back(ada)) == ("", "viewer", True)
    for role, name in (("operator", "Ben"), ("operator", ""), ("viewer", "operator"), ("boss", "Dora")):
        with pytest.raises(ValueError, match=r"is taken, or none|there is no role 'boss'"):
            without.inviting(role, name, "Ada")
