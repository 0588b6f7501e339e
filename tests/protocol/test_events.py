"""What events add to plain fields."""

from bridge.protocol.codec import write
from bridge.protocol.events import ToolProposed


def test_free_form_keys_are_written_in_order_at_every_level() -> None:
    event = ToolProposed(
        request_id="r",
        session_id="s",
        turn_id="t",
        seq=1,
        call_id="c",
        name="n",
        arguments={"z": [{"y": 1, "é": 2, "x": 3}], "a": ("tuple", {"c": 1, "b": 2})},
    )
    assert write(event).endswith(
        '"arguments":{"a":["tuple",{"b":2,"c":1}],"z":[{"x":3,"y":1,"é":2}]}}'.encode()
    )
