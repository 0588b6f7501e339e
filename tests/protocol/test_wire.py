"""What every wire type shares: how it is written, and which fields are left out."""

from bridge.protocol.wire import Items, Maybe, Text, Wire, write


class Box(Wire):
    name: str
    note: Maybe[str] = None
    plain: str | None = None
    items: Items[int] = ()
    text: Text = ""


def test_it_is_written_compactly_in_the_order_of_its_fields() -> None:
    full = Box(name="箱/\n", note="", plain="p", items=(1, 2), text="t")
    assert write(full) == '{"name":"箱/\\n","note":"","plain":"p","items":[1,2],"text":"t"}'.encode()


def test_what_is_absent_or_empty_is_left_out_but_for_a_plain_null() -> None:
    assert write(Box(name="x")) == b'{"name":"x","plain":null}'
