"""`polyrhythm keys`: the keys by which the hosts of a launch know each other."""

from __future__ import annotations

import argparse
import json

from nodes.hosts import keys
from runtime.errors import UserError


def main(argv: list[str]) -> int:
    """Make, list and show keys; 0 where that could be done."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm keys",
        description="The keys by which the hosts of a launch file know each other. Each secret stays on its machine.",
        epilog="example: polyrhythm keys new robot     (then write the line that it prints into [hosts.robot])",
    )
    parts = parser.add_subparsers(dest="do", required=True, metavar="new|list|show")
    new = parts.add_parser(
        "new", help="make a key for a host, on that host", epilog="example: polyrhythm keys new robot"
    )
    new.add_argument("host", help="as in [hosts.NAME]")
    listing = parts.add_parser("list", help="the keys of this machine", epilog="example: polyrhythm keys list --json")
    listing.add_argument("--json", action="store_true", help="as JSON: host and public key")
    show = parts.add_parser("show", help="the public part of a key", epilog="example: polyrhythm keys show robot")
    show.add_argument("host", help="as in [hosts.NAME]")
    arguments = parser.parse_args(argv)
    if arguments.do == "new":
        _print_table(arguments.host, keys.make(_checked(arguments.host)))
        print(f"# The secret part is in {keys.folder()}; it never leaves this machine.")
    elif arguments.do == "show":
        _print_table(arguments.host, keys.public_of(_checked(arguments.host)))
    else:
        found = {name: keys.public_of(name) for name in keys.names()}
        if arguments.json:
            print(json.dumps(found))
        elif not found:
            print(f"no keys in {keys.folder()}; make one with: polyrhythm keys new HOST")
        else:
            for name, public in found.items():
                print(f"{name:<16} {public}")
    return 0


def _print_table(host: str, public: str) -> None:
    print(f'[hosts.{host}]\nkey = "{public}"')


def _checked(host: str) -> str:
    if not host.replace("_", "a").isalnum() or not host.isascii() or not host[0].isalpha() or host != host.lower():
        raise UserError(f"{host!r} is no host name; expected a-z, 0-9 and _, starting with a letter")
    return host
