"""What the hosts of a launch file lack on this machine: keys, addresses, and whether the other end lets this one in."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping

from nodes.hosts import keys
from nodes.hosts.probe import ProbeIdentity, knock
from runtime.errors import UserError
from runtime.hosts.address import written
from runtime.hosts.hosts_table import Host, HostPair, check_pair, meetings
from runtime.supervision.diagnostics import Finding

REACH_S = 2.0


def examine_hosts(hosts: Mapping[str, Host], here: str = "", *, moves: bool = False) -> list[Finding]:
    """`here`: the host that this machine is to be; "": any whose key it has. `moves`: the graph moves a robot."""
    if not hosts:
        return []
    try:
        pairs = meetings(hosts)
        for meeting in pairs:
            check_pair(meeting, moves=moves)
            meeting.place()  # a name that is not known
    except UserError as problem:
        return [Finding("hosts", "problem", str(problem))]
    findings = [_key(host, is_needed=host.name == here) for host in hosts.values() if host.key]
    own = [here] if here else [name for name in hosts if any(_is_ok(finding, name) for finding in findings)]
    if findings and not own:
        first = next(iter(hosts))
        findings.append(
            Finding(
                "hosts",
                "problem",
                f"this machine has the key of none of them; run `polyrhythm keys new {first}`, or "
                f"the name of the host that it is, and write the public part into the launch file",
            )
        )
    for meeting in pairs:
        for name in own:
            if name == meeting.server.name:
                findings.append(_place(meeting))
            elif name == meeting.client.name:
                findings.append(_reach(meeting))
    return findings


def _is_ok(finding: Finding, name: str) -> bool:
    return finding.subject == f"host {name}" and finding.level == "ok"


def _key(host: Host, *, is_needed: bool) -> Finding:
    subject = f"host {host.name}"
    if host.name not in keys.names():
        text = f"its secret key is not in {keys.folder()}"
        if is_needed:
            return Finding(subject, "problem", f"{text}; run `polyrhythm keys new {host.name}` here")
        return Finding(subject, "note", f"{text}: this machine cannot be {host.name}")
    try:
        keys.secret_for(host.name, host.key)
    except UserError as problem:
        return Finding(subject, "problem", str(problem))
    return Finding(subject, "ok", f"its key is here: `polyrhythm run FILE --host {host.name}`")


def _place(meeting: HostPair) -> Finding:
    """Whether this machine has the address at which it is to wait."""
    subject, where = f"host {meeting.server.name}", f"{meeting.server.address}, ports {meeting.port} and the next"
    for step in (0, 1):
        place = meeting.place(step)
        try:
            with socket.socket(socket.AF_INET6 if place.is_ipv6 else socket.AF_INET) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(socket.getaddrinfo(place.ip, place.port, type=socket.SOCK_STREAM)[0][4])
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                return Finding(subject, "note", f"{where}: in use now; by a run of its own?")
            text = f"{where}: this machine cannot wait there ({problem.strerror}); is that its address?"
            return Finding(subject, "problem", text)
    return Finding(subject, "ok", f"{where}: free to wait there for {meeting.client.name}")


def _reach(meeting: HostPair) -> Finding:
    """Whether the one who waits can be reached, and lets this host in."""
    subject = f"host {meeting.client.name}"
    where = f"{meeting.server.name} at {written(meeting.server.address, meeting.port)}"
    if meeting.place().is_any:
        text = f"{where} stands for any address, and cannot be called; write the one that the others reach it at"
        return Finding(subject, "problem", text)
    secret = ""
    if meeting.is_encrypted:
        try:
            secret = keys.secret_for(meeting.client.name, meeting.client.key)
        except UserError:
            return Finding(subject, "note", f"{where} is not asked without the right key")
    server, client = meeting.server, meeting.client
    caller = ProbeIdentity(client.name, client.key, secret)
    match knock(meeting.place().endpoint, server.key, caller, REACH_S):
        case "in":
            return Finding(subject, "ok", f"{where} lets it in")
        case "refused":
            text = f"{where} did not let it in; is [hosts.{meeting.client.name}] key the same in the launch file there?"
            return Finding(subject, "problem", text)
        case "closed":
            if why := why_closed(meeting):
                return Finding(subject, "problem", f"{where} cannot be reached: {why}; is the address right?")
            return Finding(subject, "note", f"{where} can be reached, but does not wait there now")
        case "silent":
            text = f"{where} cannot be reached: no answer; is the address right, and the way there open?"
            return Finding(subject, "problem", text)


def why_closed(meeting: HostPair) -> str:
    """What the network says; "" where only nobody waits there."""
    try:
        socket.create_connection((meeting.place().ip, meeting.port), timeout=REACH_S).close()
    except ConnectionRefusedError:
        return ""
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""
