import pytest

from bridge.config import SessionsTable
from bridge.protocol import ours
from bridge.sessions.context import SessionSettings

CHAT = ours.Chat(channel="feishu", account="main", conversation="c1")


def test_settings_come_from_the_start_with_its_defaults() -> None:
    assert SessionSettings.of(ours.SessionStart(request_id="r", cwd="/")) == SessionSettings()
    full = ours.SessionStart(
        request_id="r",
        cwd="/",
        no_tools=True,
        channel=" Feishu ",
        auto_approve=True,
        delegation_depth=2,
        chat=CHAT,
    )
    assert SessionSettings.of(full) == SessionSettings(True, "Feishu", True, 2, CHAT)


@pytest.mark.parametrize(
    "settings",
    [
        SessionSettings(),
        SessionSettings(True, "微信", True, 3, CHAT),
        SessionSettings(channel="Feishu", keep_asking_seconds=600),
    ],
)
def test_settings_are_stored_and_read_back(settings: SessionSettings) -> None:
    assert SessionSettings.decode(settings.encode()) == settings


def test_a_chat_asks_for_every_call_whatever_the_table_says() -> None:
    assert SessionsTable().approval_policy == "on-risk"
    assert SessionSettings(channel="Feishu").policy(SessionsTable(approval_policy="never")) == "always"
    assert SessionSettings().policy(SessionsTable(approval_policy="never")) == "never"
