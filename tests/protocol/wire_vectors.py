"""The published vectors of the wire, and what each of their type names is here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridge.protocol import codec, commands, shared
from bridge.protocol.codec import reader

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "vectors" / "scv_wire.json").read_text(encoding="utf-8")
)

READERS: dict[str, Callable[[bytes], Any]] = {
    "ClientMessage": codec.read_client_message,
    "ServerEvent": codec.read_server_event,
    "DaemonCommand": reader(commands.Command),
    "PeerInfo": reader(shared.Peer),
    "Usage": reader(shared.Usage),
    "Attachment": reader(shared.Attachment),
    "ReplyAttachment": reader(shared.ReplyAttachment),
    "QueueEntry": reader(shared.QueueEntry),
    "TurnOrigin": reader(shared.Origin),
    "ComponentHealth": reader(shared.ComponentHealth),
    "ComponentState": reader(shared.ComponentState),
    "RemoteTools": reader(shared.RemoteTools),
    "DaemonStatus": reader(shared.DaemonStatus),
    "DelegationSummary": reader(shared.DelegationSummary),
    "DelegationInfo": reader(shared.DelegationInfo),
    "RestartInfo": reader(shared.RestartInfo),
}


def line_of(vector: dict[str, Any]) -> bytes:
    if "wire_hex" in vector:
        return bytes.fromhex(vector["wire_hex"])
    wire: str = vector["wire"]
    return wire.encode()


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [vector for vector in VECTORS["vectors"] if vector["kind"] in kinds]
