import json

from bridge.channel.testing.fakes.feishu.events import (
    FakeFile,
    Note,
    edit,
    forward,
    recalled,
    received,
    write,
)
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


def test_a_reply_to_a_reply_has_both_and_the_first_as_its_root() -> None:
    world = World()
    first = write(world, Note("1"))
    second = write(world, Note("2", parent=first.message_id))
    third = write(world, Note("3", parent=second.message_id))
    assert (second.parent, second.root) == (first.message_id, first.message_id)
    assert (third.parent, third.root) == (second.message_id, first.message_id)


def test_in_a_thread_every_message_replies_to_its_first_one() -> None:
    message = write(World(), Note("hi", root="om_0", thread="omt_1"))
    assert (message.parent, message.root, message.thread) == ("om_0", "om_0", "omt_1")


def test_a_bundle_has_all_that_is_in_it_under_new_ids() -> None:
    world = World()
    head = forward(world, [Note("a", sender="ou_a"), [Note("b"), [Note("c")]]], Note(group=True))
    inside = world.below(head.message_id)
    assert [(each.kind, each.upper == head.message_id) for each in inside] == [
        ("text", True),
        ("merge_forward", True),
        ("text", False),
        ("merge_forward", False),
        ("text", False),
    ]
    assert (head.content, inside[0].sender, inside[0].mentions) == (
        "Merged and Forwarded Message",
        "ou_a",
        [],
    )
    assert inside[2].upper == inside[1].message_id


def test_an_edit_changes_the_words_and_the_time_but_no_mention() -> None:
    message = write(World(), Note("hi", group=True, create_ms=5))
    edit(message, "hello", 5)
    edit(message, "hello!", 4)
    event = received(message, "ev", "cli", "token", "im.message.updated_v1")
    body = event["event"]["message"]
    assert json.loads(body["content"]) == {"text": "@_user_1 hello!"}
    assert (body["create_time"], body["update_time"], event["header"]["create_time"]) == ("5", "7", "7")
    direct = write(World(), Note("hi"))
    edit(direct, "you", 0)
    assert json.loads(direct.content) == {"text": "you"}
