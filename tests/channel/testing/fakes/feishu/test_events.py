import json

from bridge.channel.testing.fakes.feishu.events import FakeFile, Note, recalled, received, write
from bridge.channel.testing.fakes.feishu.world import World

PNG = FakeFile("a.png", "image/png", b"x")


def content(note: Note) -> tuple[str, object]:
    message = write(World(), note)
    return message.kind, json.loads(message.content)


def test_words_are_a_text() -> None:
    assert content(Note("hi")) == ("text", {"text": "hi"})
    assert content(Note("hi", group=True)) == ("text", {"text": "@_user_1 hi"})
    assert content(Note("hi", group=True, mention=False)) == ("text", {"text": "hi"})


def test_a_file_alone_is_a_message_of_its_kind() -> None:
    kinds = {
        "image/png": "image",
        "audio/ogg": "audio",
        "video/mp4": "media",
        "text/plain": "file",
    }
    for mime, kind in kinds.items():
        assert content(Note(files=(FakeFile("a", mime, b"x"),)))[0] == kind


def test_words_with_files_are_a_post() -> None:
    kind, post = content(Note("look", files=(PNG, FakeFile("a.mp4", "video/mp4", b"x")), group=True))
    assert isinstance(post, dict)
    assert (kind, [[each["tag"] for each in row] for row in post["content"]]) == (
        "post",
        [["at", "text"], ["img"], ["media"]],
    )


def test_any_content_can_be_sent_as_it_is() -> None:
    assert write(World(), Note(kind="sticker", content="{}")).kind == "sticker"


def test_a_message_is_told_in_the_platforms_envelope() -> None:
    world = World()
    message = write(
        world, Note("hi", group=True, parent="om_0", thread="omt_1", message_id="om_1", create_ms=5)
    )
    event = received(message, "ev", "cli", "token")
    assert event["header"]["event_type"] == "im.message.receive_v1"
    body = event["event"]["message"]
    assert (body["message_id"], body["create_time"], body["chat_type"]) == ("om_1", "5", "group")
    assert (body["parent_id"], body["root_id"], body["thread_id"]) == ("om_0", "om_0", "omt_1")
    assert body["mentions"][0]["id"]["open_id"] == "ou_fake_bot"
    plain = received(write(world, Note("hi")), "ev", "cli", "token")["event"]["message"]
    assert not {"mentions", "parent_id", "thread_id"} & set(plain)


def test_a_recall_names_its_message() -> None:
    event = recalled(write(World(), Note("hi", message_id="om_1")), "ev", "cli", "token", 7)
    assert (event["header"]["event_type"], event["event"]["message_id"]) == ("im.message.recalled_v1", "om_1")


def test_a_direct_chat_may_have_an_id_of_its_own() -> None:
    world = World()
    assert write(world, Note("hi", chat="oc_x")).chat.chat_id == "oc_x"
    assert write(world, Note("hi", chat="oc_x")).chat is world.chats["oc_x"]
    assert write(world, Note("hi")).chat.chat_id == "oc_direct_fake_owner"
