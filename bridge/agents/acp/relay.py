"""Carries a program's stdin to the daemon's private socket, and back: how an agent reaches our own tools.

A small program of its own, started by the agent as ``python -I -S relay.py SOCKET``, with its secret in the
environment; it imports nothing of ours.
"""

import os
import select
import socket
import sys

SECRET = "TURNBRIDGE_TOOLS_SECRET"  # noqa: S105 - its name


def main(path: str) -> None:
    """Until either side ends."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        server.sendall(os.environ.get(SECRET, "").encode() + b"\n")
        while True:
            ready, _, _ = select.select([0, server.fileno()], [], [])
            if 0 in ready:
                data = os.read(0, 65_536)
                if not data:
                    return
                server.sendall(data)
            if server.fileno() in ready:
                data = server.recv(65_536)
                if not data:
                    return
                _write(data)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
