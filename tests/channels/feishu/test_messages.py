"""What people do with messages; how they are read is tested with the requests that bring them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import Answer, Edited, Identity, Ignored, Inbound, Recalled, Unreadable
from channels.feishu import messages
from channels.feishu.references import Link
from tests.channels.feishu.support import BOT, bot_mention, inbound, item, message_event, read

CHANGED = 1700000060456


def edit(message: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    changed = {"update_time": str(CHANGED)} | (message or {})
    return message_event(changed, event_type="im.message.updated_v1", **changes)


def recall(**fields: Any) -> dict[str, Any]:
    event = {
        "message_id": "om_1",
        "chat_id": "oc_1",
        "recall_time": "1700000000",
        "recall_type": "message_owner",
    }
    header = {"event_type": "im.message.recalled_v1", "token": "verify-token-1", "app_id": "cli_app"}
    return {"schema": "2.0", "header": header, "event": event | fields}


def test_case_14_a_recall_names_the_message_and_its_chat() -> None:
    assert item(recall()) == Recalled("om_1", chat="oc_1")
    assert item(recall(chat_id=None)) == Recalled("om_1")


@pytest.mark.parametrize("message_id", ["", None, 7, "x" * 300, "a\nb"])
def test_a_recall_of_nothing_is_unreadable(message_id: Any) -> None:
    assert item(recall(message_id=message_id)) == Unreadable("a recall names no message")
    assert messages.recalled(None) == Unreadable("a recall names no message")


def test_an_edit_is_the_whole_message_with_the_time_of_its_change() -> None:
    content = json.dumps({"text": "better"})
    assert item(edit({"content": content})) == Edited(inbound({"content": content}), CHANGED)


def test_later_edits_have_higher_revisions_whichever_stamp_tells_them() -> None:
    first, second = item(edit({"update_time": ""}, create_time="1700000070000")), item(edit())
    assert isinstance(first, Edited)
    assert isinstance(second, Edited)
    assert first.revision == 1700000070000 > second.revision
    assert item(edit({"update_time": "soon"})) == Unreadable("an edit does not say when it was made")


def test_an_edit_that_is_not_answered_leaves_no_id_behind() -> None:
    """Stored under the message's id, it would make of the message itself a duplicate."""
    assert item(edit({"chat_type": "group"})) == Ignored("not_mentioned")
    assert item(edit(sender={"sender_id": {"open_id": "ou_2"}, "sender_type": "app"})) == Ignored("bot")
    assert item(edit({"chat_id": ""})) == Unreadable("a message event lacks what every message has")


def test_an_edit_that_mentions_the_bot_is_for_it() -> None:
    found = item(edit({"chat_type": "group", "mentions": [bot_mention()]}))
    assert isinstance(found, Edited)
    assert found.message.group
    assert isinstance(read(edit({"chat_type": "group", "mentions": [bot_mention()]}), Identity()), Answer)


def test_in_a_thread_the_first_message_is_no_quote() -> None:
    thread = {"thread_id": "omt_1", "root_id": "om_0"}
    to_root, to_other = inbound(thread | {"parent_id": "om_0"}), inbound(thread | {"parent_id": "om_5"})
    assert Link.decode(to_root.reference, "om_1") == Link(root="om_0", listener="omt_1 ou_1")
    assert Link.decode(to_other.reference, "om_1") == Link(False, "om_5", "om_0", "omt_1 ou_1")
    assert inbound({"thread_id": "omt_1", "root_id": "om_1"}).reference == ""
    assert inbound({"root_id": "om_0", "parent_id": "om_5"}).reference == "om_5"


def test_cases_1_and_2_a_bundle_that_comes_again_under_a_new_id_refers_to_the_same() -> None:
    bundle = {"message_type": "merge_forward", "content": "Merged and Forwarded Message"}
    first, again = inbound(bundle), inbound(bundle | {"message_id": "om_2"})
    assert (first.reference, first.stamp) == (again.reference, again.stamp)
    assert Link.decode(again.reference, "om_2").own


def test_a_card_that_bots_are_not_shown_is_to_be_looked_up_and_any_other_not() -> None:
    digest = {"title": None, "elements": [[{"tag": "text", "text": "请升级至最新版本客户端，以查看内容"}]]}
    withheld = inbound({"message_type": "interactive", "content": json.dumps(digest)})
    assert (withheld.text, Link.decode(withheld.reference, "om_1")) == ("", Link(own=True))
    shown = inbound({"message_type": "interactive", "content": json.dumps({"title": "T"})})
    assert (shown.text, shown.reference) == ("[Card: T]", "")


def test_case_48_a_mention_within_code_is_none() -> None:
    rows = [
        [{"tag": "code_block", "language": "SHELL", "text": "@_user_1 rm"}, {"tag": "text", "text": "`@Bot`"}]
    ]
    content = json.dumps({"title": "", "content": rows})
    event = message_event({"chat_type": "group", "message_type": "post", "content": content, "mentions": []})
    assert item(event) == Ignored("not_mentioned", "om_1")


def old(**event: Any) -> Any:
    return {"open_message_id": "om_1", "chat_type": "private", "open_id": "ou_1", "msg_type": "text"} | event


def test_old_messages_follow_the_same_rules() -> None:
    assert messages.old(old(open_id="ou_bot"), BOT, "") == Ignored("own", "om_1")
    assert messages.old(old(open_id=""), BOT, "") == Unreadable("a message event names no sender", "om_1")
    assert messages.old(old(chat_type="group"), BOT, "") == Ignored("not_mentioned", "om_1")
    nowhere = messages.old(old(chat_type="group", is_mention=True), BOT, "")
    assert nowhere == Unreadable("a message event names no chat", "om_1")
    lacking = messages.old({"open_message_id": "om_1"}, BOT, "")
    assert lacking == Unreadable("a message event lacks what every message has", "om_1")


def test_old_messages_bring_words_files_and_bundles() -> None:
    text = messages.old(old(text="hi", parent_id="om_0"), BOT, "1502199207.7171419")
    assert isinstance(text, Inbound)
    assert (text.text, text.reference, text.to, text.stamp) == ("hi", "om_0", "p2p:ou_1", "")
    image = messages.old(old(msg_type="image", image_key="img_1"), BOT, "")
    assert isinstance(image, Inbound)
    assert [json.loads(file.key) for file in image.files] == [["om_1", "img_1", "image"]]
    bundle = messages.old(old(msg_type="merge_forward"), BOT, "")
    assert isinstance(bundle, Inbound)
    assert (bundle.text, Link.decode(bundle.reference, "om_1")) == ("", Link(own=True))


def test_nobody_but_people_is_read() -> None:
    for sender, reason in (({"open_id": "ou_bot"}, "own"), ({"open_id": "ou_2"}, "bot")):
        event = message_event(sender={"sender_id": sender, "sender_type": "app"})["event"]
        assert messages.received(event, BOT) == Ignored(reason, "om_1")
    event = message_event(sender={"sender_type": "user"})["event"]
    assert messages.received(event, BOT) == Unreadable("a message event names no sender", "om_1")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["message", "sender", "sender_id", "open_id", "message_id", "chat_id", "mentions"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_event_makes_it_fail(event: Any) -> None:
    kinds = Edited | Ignored | Inbound | Recalled | Unreadable
    assert isinstance(messages.received(event, BOT), kinds | None)
    assert isinstance(messages.edited(event, BOT, "1"), kinds | None)
    assert isinstance(messages.recalled(event), kinds)
    assert isinstance(messages.old(event, BOT, "1"), kinds)


@pytest.mark.parametrize("parent", ["[" * 5000, "..", "a" * 300, "x\ud800"])
def test_what_is_no_id_is_not_looked_up(parent: str) -> None:
    assert inbound({"parent_id": parent}).reference == ""
    threaded = {"parent_id": "om_9", "root_id": parent, "thread_id": "omt_1"}
    assert inbound(threaded).reference == "om_9"
