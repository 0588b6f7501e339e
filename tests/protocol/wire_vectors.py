"""The published vectors of the wire, and what each of their type names is here."""

import json
from pathlib import Path
from typing import Any

from bridge.protocol import codec, commands, shared
from bridge.protocol.codec import Reader

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "vectors" / "scv_wire.json").read_text(encoding="utf-8")
)

READERS: dict[str, Reader[Any]] = {
    "ClientMessage": codec.read_client_message,
    "ServerEvent": codec.read_server_event,
    "DaemonCommand": Reader(commands.Command),
    "PeerInfo": Reader(shared.Peer),
    "Usage": Reader(shared.Usage),
    "Attachment": Reader(shared.Attachment),
    "ReplyAttachment": Reader(shared.ReplyAttachment),
    "QueueEntry": Reader(shared.QueueEntry),
    "TurnOrigin": Reader(shared.Origin),
    "ComponentHealth": Reader(shared.ComponentHealth),
    "ComponentState": Reader(shared.ComponentState),
    "RemoteTools": Reader(shared.RemoteTools),
    "DaemonStatus": Reader(shared.DaemonStatus),
    "DelegationSummary": Reader(shared.DelegationSummary),
    "DelegationInfo": Reader(shared.DelegationInfo),
    "RestartInfo": Reader(shared.RestartInfo),
}


def line_of(vector: dict[str, Any]) -> bytes:
    if "wire_hex" in vector:
        return bytes.fromhex(vector["wire_hex"])
    wire: str = vector["wire"]
    return wire.encode()


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [vector for vector in VECTORS["vectors"] if vector["kind"] in kinds]
