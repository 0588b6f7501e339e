from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.store.binding import bound_to
from bridge.store.contract import Bind, Forget, Hold, MessageState, PartState
from bridge.store.sqlite import open_store
from tests.store.values import ACCOUNT, OTHER, claim, message, post, reply


async def test_nobody_is_bound_where_nothing_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "state" / "turnbridge.db"
    assert bound_to(path, ACCOUNT) == ""
    async with open_store(path) as store:
        await store.do(Bind(ACCOUNT, "one"))
        await store.do(Bind(OTHER, "two"))
        await store.do(claim(account=OTHER))
        assert bound_to(path, ACCOUNT) == ""


@pytest.mark.parametrize("kept", ["checkpoint", "seen", "part", "held"])
async def test_whatever_is_stored_depends_on_whose_it_is(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "state" / "turnbridge.db"
    async with open_store(path) as store:
        await store.do(Bind(ACCOUNT, "one"))
        match kept:
            case "checkpoint" | "seen":
                state = message(state=MessageState.SEEN)
                await store.do(claim(state, checkpoint="x" if kept == "checkpoint" else None))
            case _:
                ids = await post(store, reply())
                if kept == "held":
                    await store.do(Hold(ids[0], PartState.REFUSED, "lost", 3000))
        assert bound_to(path, ACCOUNT) == "one"
        after: int | None = 0
        while after is not None:
            after = (await store.do(Forget(ACCOUNT, after))).after
        assert bound_to(path, ACCOUNT) == ""


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "turnbridge.db"
    path.write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot read"):
        bound_to(path, ACCOUNT)
    path.write_bytes(b"nonsense" * 1000)
    with pytest.raises(ConfigError):
        bound_to(path, ACCOUNT)
