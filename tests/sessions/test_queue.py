"""The waiting turns: pure state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.codec import write
from bridge.protocol.limits import PROMPT_BYTES, QUEUE_BYTES, QUEUE_ITEMS
from bridge.protocol.shared import Attachment
from bridge.sessions.errors import RequestError
from bridge.sessions.queue import TurnQueue, check_prompt

FILE = Attachment(kind="image", path="/a.png", size=3)


def filled(count: int) -> TurnQueue:
    queue = TurnQueue()
    for number in range(count):
        queue.add(f"p{number}", f"r{number}", ())
    return queue


def prompts(queue: TurnQueue) -> list[str]:
    return [entry.prompt for entry in queue.entries]


def code(error: pytest.ExceptionInfo[RequestError]) -> str:
    return error.value.code


def test_an_entry_starts_at_revision_1_with_its_zero_based_position() -> None:
    queue = filled(2)
    entry, position = queue.add("more", "r9", (FILE,))
    assert (entry.revision, position, entry.submitter, entry.attachments) == (1, 2, "r9", (FILE,))
    assert queue.take() != queue.take()
    assert queue.take() == entry
    assert queue.take() is None


def test_a_65th_entry_is_refused() -> None:
    queue = filled(QUEUE_ITEMS)
    with pytest.raises(RequestError) as error:
        queue.add("one more", "r", ())
    assert code(error) == "queue_limit"
    assert len(queue.entries) == QUEUE_ITEMS


def test_the_byte_limit_counts_the_encoded_entries() -> None:
    queue = TurnQueue()
    entry, _ = queue.add("\x01" * 1000, "r", ())
    size = len(write(entry))
    assert size > 6000  # a control character takes six bytes
    room = QUEUE_BYTES - size
    base = len(write(entry.model_copy(update={"prompt": ""})))
    for _ in range(15):
        queue.add("x" * PROMPT_BYTES, "r", ())
        room -= base + PROMPT_BYTES
    with pytest.raises(RequestError) as error:
        queue.add("x" * (room - base + 1), "r", ())
    assert code(error) == "queue_limit"
    queue.add("x" * (room - base), "r", ())
    last = queue.entries[-1]
    with pytest.raises(RequestError) as error:
        queue.update(last.queue_id, 1, last.prompt + "x")
    assert code(error) == "queue_limit"
    assert queue.entries[-1] == last


def test_an_update_replaces_the_prompt_and_raises_the_revision() -> None:
    queue = TurnQueue()
    entry, _ = queue.add("old", "r", (FILE,))
    changed = queue.update(entry.queue_id, 1, "")  # blank is allowed beside a file
    assert (changed.prompt, changed.revision, changed.attachments) == ("", 2, (FILE,))
    with pytest.raises(RequestError) as error:
        queue.update(entry.queue_id, 1, "again")
    assert code(error) == "queue_conflict"


@pytest.mark.parametrize("prompt", [" \n", "x" * (PROMPT_BYTES + 1)])
def test_an_update_takes_no_bad_prompt(prompt: str) -> None:
    queue = filled(1)
    with pytest.raises(RequestError) as error:
        queue.update(queue.entries[0].queue_id, 1, prompt)
    assert code(error) == "invalid_request"
    with pytest.raises(RequestError) as error:
        queue.update("nobody", 1, prompt)  # the prompt is judged first
    assert code(error) == "invalid_request"


def test_moving_puts_an_entry_before_another_or_last() -> None:
    queue = filled(4)
    a, b, c, d = queue.entries
    moved, position = queue.move(d.queue_id, 1, b.queue_id)
    assert (moved.revision, position, prompts(queue)) == (2, 1, ["p0", "p3", "p1", "p2"])
    moved, position = queue.move(a.queue_id, 1, None)
    assert (moved.revision, position, prompts(queue)) == (2, 3, ["p3", "p1", "p2", "p0"])
    assert queue.move(b.queue_id, 1, b.queue_id) == (b, 1)  # before itself: nothing changes
    assert queue.move(c.queue_id, 1, None)[1] == 3


def test_a_move_with_an_unknown_target_changes_nothing() -> None:
    queue = filled(2)
    first = queue.entries[0]
    with pytest.raises(RequestError) as error:
        queue.move(first.queue_id, 1, "nobody")
    assert code(error) == "queue_not_found"
    with pytest.raises(RequestError) as error:
        queue.move(first.queue_id, 7, None)
    assert code(error) == "queue_conflict"
    assert queue.entries[0] == first


def test_removing_needs_the_entry_and_its_revision() -> None:
    queue = filled(2)
    first = queue.entries[0]
    for queue_id, revision, expected in (("x", 1, "queue_not_found"), (first.queue_id, 2, "queue_conflict")):
        with pytest.raises(RequestError) as error:
            queue.remove(queue_id, revision)
        assert code(error) == expected
    assert queue.remove(first.queue_id, 1) == first
    assert prompts(queue) == ["p1"]
    queue.clear()
    assert queue.entries == ()


def test_a_prompt_may_have_262144_bytes_and_may_be_blank_beside_a_file() -> None:
    check_prompt("é" * (PROMPT_BYTES // 2), has_attachments=False)
    check_prompt(" ", has_attachments=True)


@given(st.lists(st.tuples(st.sampled_from("arum"), st.integers(0, 9), st.integers(0, 9))))
def test_the_queue_agrees_with_a_plain_list(changes: list[tuple[str, int, int]]) -> None:
    queue, model = TurnQueue(), list[list[object]]()  # of [id, revision]
    for change, one, other in changes:
        if change == "a":
            entry, position = queue.add("p", "r", ())
            assert position == len(model)
            model.append([entry.queue_id, 1])
            continue
        if not model:
            continue
        row = model[one % len(model)]
        queue_id, revision = str(row[0]), int(str(row[1]))
        if change == "r":
            queue.remove(queue_id, revision)
            model.remove(row)
        elif change == "u":
            queue.update(queue_id, revision, "q")
            row[1] = revision + 1
        else:
            target = [*model, None][other % (len(model) + 1)]
            _, position = queue.move(queue_id, revision, str(target[0]) if target else None)
            if target is not row:
                model.remove(row)
                row[1] = revision + 1
                model.insert(model.index(target) if target else len(model), row)
            assert position == model.index(row)
    assert [[entry.queue_id, entry.revision] for entry in queue.entries] == model


def test_a_change_that_could_not_be_told_is_taken_back() -> None:
    queue = filled(2)
    before = queue.entries
    queue.remove(before[0].queue_id, 1)
    queue.restore(before)
    assert queue.entries == before
    assert queue.take() == before[0]
