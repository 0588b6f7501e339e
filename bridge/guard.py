"""Keep requests to addresses that a remote party chose away from inner networks (SSRF).

A name is looked up once, every address of it is judged, and the caller connects to exactly the judged
addresses: a second lookup that differs (DNS rebinding) never happens.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

from yarl import URL

from bridge.errors import UnreachableError

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host name and a port to its addresses as text; raises OSError when there are none."""

_INNER_V4: dict[str, str] = {
    "0.0.0.0/8": "unspecified",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by a carrier",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "metadata",  # of Azure; the others' lie in ranges listed here
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "reserved",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_INNER_V6: dict[str, str] = {
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::ffff:0:0/96": "an embedded IPv4 address",
    "2001::/23": "reserved",  # holds Teredo
    "2001:db8::/32": "documentation",
    "2002::/16": "an embedded IPv4 address",  # 6to4
    "3fff::/20": "documentation",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "fec0::/10": "private",
    "ff00::/8": "multicast",
}
_V4 = [(ipaddress.IPv4Network(net), why) for net, why in _INNER_V4.items()]
_V6 = [(ipaddress.IPv6Network(net), why) for net, why in _INNER_V6.items()]
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
_SECURE = frozenset({"https", "wss"})
_PLAIN = frozenset({"http", "ws"})


def verdict(address: str) -> str | None:
    """Why ``address`` (an IPv4 or IPv6 literal) is not public, or ``None`` when it is.

    Only canonical spellings are addresses: ``0x7f.1``, ``127.1`` and ``017700000001`` are not. The
    well-known NAT64 prefix is judged by the IPv4 address inside, as networks without IPv4 need it.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "not an address"
    if isinstance(parsed, ipaddress.IPv4Address):
        return next((why for net, why in _V4 if parsed in net), None)
    if parsed in _NAT64:
        return verdict(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    inner = next((why for net, why in _V6 if parsed in net), None)
    return inner or (None if parsed in _GLOBAL_V6 else "reserved")


async def system_lookup(host: str, port: int) -> list[str]:
    """The system's addresses of ``host``, in its order of preference."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


class Guard:
    """Decides to which addresses a URL may lead.

    Args:
        allow: ``host`` or ``host:port`` entries, exact, by which the operator lifts every rule.
        lookup: the one source of addresses.
        plain: public addresses pass without encryption, too.
    """

    def __init__(
        self, allow: Iterable[str] = (), lookup: Lookup = system_lookup, *, plain: bool = False
    ) -> None:
        self._allowed = frozenset(entry.strip().lower() for entry in allow)
        self._lookup = lookup
        self._plain = plain

    def allowing(self, allow: Iterable[str]) -> "Guard":
        """This guard with more entries allowed."""
        more = [*allow]
        return Guard([*self._allowed, *more], self._lookup, plain=self._plain) if more else self

    async def addresses(self, url: URL) -> list[str]:
        """The addresses to connect to for ``url``: never empty, all judged, from one lookup.

        Raises:
            UnreachableError: the URL is not allowed, or its name has no address.
        """
        host = (url.raw_host or "").rstrip(".").lower()
        allowed = self._allows(host, url.port)
        if reason := _refusal(url, host, allowed or self._plain):
            raise UnreachableError(f"{host or 'an address'} is not requested: {reason}")
        found = [host] if _is_literal(host) else await self._find(host, url.port or 0)
        for address in [] if allowed else found:
            if reason := verdict(address):
                raise UnreachableError(f"{host} is not requested: its address is {reason}")
        return found

    def _allows(self, host: str, port: int | None) -> bool:
        shown = f"[{host}]" if ":" in host else host
        return not self._allowed.isdisjoint({host, shown, f"{shown}:{port}"})

    async def _find(self, host: str, port: int) -> list[str]:
        try:
            found = list(await self._lookup(host, port))
        except (OSError, UnicodeError) as error:
            raise UnreachableError(f"{host} has no address") from error
        if not found:
            raise UnreachableError(f"{host} has no address")
        return found


def _refusal(url: URL, host: str, plain: bool) -> str | None:
    if not host or url.scheme not in _SECURE | _PLAIN:
        return "it is not a web address"
    if url.raw_user is not None or url.raw_password is not None:
        return "it carries a login"
    if url.scheme in _PLAIN and not plain:
        return "it is not encrypted"
    if ":" not in host and _NUMBER.match(host.rpartition(".")[2]) and not _is_literal(host):
        return "it is an odd spelling of an address"
    return None


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
