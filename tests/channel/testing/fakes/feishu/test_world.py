import json

from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.feishu.world import (
    UUID_SECONDS,
    Button,
    Message,
    World,
    buttons_of,
    content_text,
)


def message(world: World, message_id: str, upper: str = "") -> Message:
    return world.add(Message(message_id, world.group("oc_g"), "ou_a", "text", "{}", 0, upper=upper))


async def test_a_uuid_stands_for_its_message_for_an_hour() -> None:
    clock = FakeClock()
    world = World(clock)
    world.keep_uuid("u", message(world, "om_1").message_id)
    assert world.first_of("u") is world.messages["om_1"]
    await clock.advance(UUID_SECONDS - 1)
    assert world.first_of("u") is not None
    await clock.advance(1)
    assert world.first_of("u") is None


def test_without_a_uuid_nothing_is_remembered() -> None:
    world = World(FakeClock())
    world.keep_uuid("", message(world, "om_1").message_id)
    assert world.first_of("") is None
    assert world.first_of("never") is None


def test_a_direct_chat_and_a_group_keep_their_ids() -> None:
    world = World()
    assert world.direct("ou_a") is world.direct("ou_a")
    assert "ou_a" in world.people
    assert world.group("oc_g").group
    assert world.new_id("om") != world.new_id("om")
    assert World(FakeClock()).now_ms() == 1767323045000


def test_uploads_of_pictures_have_picture_keys() -> None:
    world = World()
    assert world.upload("image", "a", "image/png", b"x").key.startswith("img_")
    assert world.upload("stream", "a", "", b"x").key.startswith("file_")


def test_everything_inside_a_bundle_is_found_at_any_depth() -> None:
    world = World()
    message(world, "b")
    message(world, "outside")
    for child, upper in (("1", "b"), ("2", "1"), ("3", "b")):
        message(world, child, upper)
    assert [each.message_id for each in world.below("b")] == ["1", "2", "3"]


def test_words_are_found_in_texts_and_posts() -> None:
    assert content_text("text", '{"text": "a"}') == "a"
    link, same = ({"tag": "a", "text": text, "href": "https://x"} for text in ("b", "https://x"))
    rows = [[{"tag": "text", "text": "a "}, link], [{"tag": "hr"}], [same]]
    shown = content_text("post", json.dumps({"zh_cn": {"content": rows}}))
    assert shown == "a b (https://x)\n———\nhttps://x"
    assert content_text("image", "{}") == ""


def test_words_and_buttons_are_found_in_cards() -> None:
    button = {
        "tag": "button",
        "text": {"tag": "plain_text", "content": "Yes"},
        "behaviors": [{"type": "callback", "value": {"v": 1}}],
    }
    words = {"tag": "div", "text": {"tag": "plain_text", "content": "May I?"}}
    content = json.dumps({"body": {"elements": [words, {"tag": "markdown", "content": "please"}, button]}})
    assert content_text("interactive", content) == "May I?\nplease"
    assert buttons_of("interactive", content) == (Button("Yes", {"v": 1}),)
    assert buttons_of("text", '{"text": "x"}') == ()
