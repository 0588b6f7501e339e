"""The helpers against the published vectors."""

import json
from typing import Any

import pytest

from bridge.protocol.codec import read_client_message, read_server_event, write
from bridge.protocol.helpers import (
    JobUpdate,
    background_job_update,
    reply_attachment,
    request_id,
    turn_request_id,
)
from tests.protocol.wire_vectors import VECTORS


def run(helper: str, given: Any) -> Any:
    match helper:
        case "background_job_update":
            update = background_job_update(given)
            return {"started": list(update.started), "settled": list(update.settled)}
        case "reply_attachment":
            found = reply_attachment(**given)
            return found and json.loads(write(found))
        case "turn_request_id":
            return turn_request_id(read_server_event(given.encode()))
        case "request_id":
            return request_id(read_client_message(given.encode()))


@pytest.mark.parametrize("vector", VECTORS["helpers"], ids=[vector["id"] for vector in VECTORS["helpers"]])
def test_a_helper_answers_as_published(vector: dict[str, Any]) -> None:
    assert run(vector["helper"], vector["input"]) == vector["expected"]


def test_every_helper_vector_is_run() -> None:
    assert len(VECTORS["helpers"]) == 106


@pytest.mark.parametrize(
    "output", ["\ud800", "[" * 100_000, '{"jobs":NaN}', '{"job":"a","status":"\\ud800"}']
)
def test_output_that_is_not_the_protocols_json_reports_nothing(output: str) -> None:
    assert background_job_update(output) == JobUpdate()
    assert reply_attachment("chat_attach", True, output) is None


def test_an_attachment_of_minus_zero_bytes_is_none() -> None:
    output = '{"attached":{"path":"/o/1","name":"f","size":-0}}'
    assert reply_attachment("chat_attach", True, output) is None
