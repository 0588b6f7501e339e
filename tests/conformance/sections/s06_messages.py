"""Section 6: the client's messages and commands, read or refused as the published vectors say."""

import json
from pathlib import Path
from typing import Any

from tests.conformance.client import Client
from tests.conformance.faults import BrokenError, brief, check
from tests.conformance.rules import rule
from tests.conformance.target import Target

VECTORS = Path(__file__).parents[2] / "vectors" / "scv_wire.json"


def vectors(*kinds: str) -> list[bytes]:
    """The lines of the vectors of client messages of ``kinds``."""
    whole: dict[str, Any] = json.loads(VECTORS.read_text(encoding="utf-8"))
    found = [one for one in whole["vectors"] if one["type"] == "ClientMessage" and one["kind"] in kinds]
    lines = [bytes.fromhex(one["wire_hex"]) if "wire_hex" in one else one["wire"].encode() for one in found]
    return [line for line in lines if b"\n" not in line]


@rule("6.1-read", broken_by="minds-null minds-unknown-keys")
async def read(to: Target) -> None:
    """Every message in every form of the vectors is read."""
    client = await to.connect()
    for line in vectors("roundtrip", "parse"):
        if b'"initialize"' in line:
            client = await to.connect()
        client.line(line)
        code = (await client.event()).get("code")
        check(code != "invalid_json", f"{brief(line)} is not read")


@rule("6.2-refused", broken_by="last-key-wins coerces")
async def refused(to: Target) -> None:
    """Every line that the vectors refuse is ``invalid_json``."""
    client = await to.client()
    for line in vectors("reject"):
        await client.refused(line)
    await _still_there(client)


async def _still_there(client: Client) -> None:
    if await client.others():
        raise BrokenError("something came for a line that is no message")
