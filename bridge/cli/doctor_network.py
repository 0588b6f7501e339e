"""Whether an address can be reached from here, and which step of the way fails: name, connection, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bridge.channel import Fault
    from bridge.channel.spec import ChannelSettings

CONNECT_SECONDS = 5.0
PORTS = {"http": 80, "https": 443}

Place = tuple[str, str, int]
"""Scheme, host and port."""


def place(address: str) -> Place | None:
    """Where a web address leads; None for anything else."""
    try:
        url = urlsplit(address)
        port = url.port or PORTS.get(url.scheme)
    except ValueError:
        return None
    return (url.scheme, url.hostname, port) if port and url.hostname and url.scheme in PORTS else None


def places(settings: ChannelSettings) -> set[Place]:
    """Where the addresses among an account's settings lead."""
    values = (getattr(settings, name) for name in type(settings).model_fields)
    return {found for value in values if isinstance(value, str) and (found := place(value))}


async def reached(where: Iterable[Place], trust: ssl.SSLContext | None = None) -> dict[Place, Fault | None]:
    """Each place with what keeps it from being reached; all at once. ``trust``: the system's, by default."""
    async with asyncio.TaskGroup() as tasks:
        trying = {each: tasks.create_task(reach(each, trust)) for each in where}
    return {each: task.result() for each, task in trying.items()}


async def reach(where: Place, trust: ssl.SSLContext | None = None) -> Fault | None:
    """Connect and hang up."""
    from bridge.channel import Fault

    scheme, host, port = where
    tls = (trust or ssl.create_default_context()) if scheme == "https" else None
    there = f"{host}:{port}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=tls)
    except socket.gaierror:
        return Fault(
            f"the name {host} is not known here", "correct it, or mend this machine's DNS (/etc/resolv.conf)"
        )
    except TimeoutError:
        return Fault(f"{there} does not answer", "look at the network and at firewalls on the way")
    except ssl.SSLCertVerificationError as error:
        return Fault(
            f"{there}: its certificate is not trusted: {error.verify_message}",
            "set this machine's clock, install ca-certificates, or renew the certificate there",
        )
    except ssl.SSLError:
        return Fault(f"{there} speaks no TLS", "correct the address's port, or its https://")
    except OSError as error:
        return Fault(
            f"{there} takes no connection: {_why(error)}", "see whether it runs, and what is in between"
        )
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
    return None


def _why(error: OSError) -> str:
    """The system's words; of several addresses that failed there are none."""
    import os

    return os.strerror(error.errno) if error.errno else "none of its addresses"
