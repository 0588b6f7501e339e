from pathlib import Path

import pytest

from bridge.config import load
from bridge.errors import ConfigError
from bridge.paths import Home, write_private
from bridge.setting_words import checked, with_keys
from bridge.tables import TableError

SETTINGS = b"""\
[channels.feishu.main]
app_id = "cli_1"
enabled = false

[channels.feishu.broken]
app_id = "wrong"

[channels.webhook.shop]
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    for account in ("main", "broken"):
        home.private_dir(home.credentials("feishu", account).parent)
        write_private(home.credentials("feishu", account), b'{"app_secret": "s", "encrypt_key": "k"}')
    home.private_dir(home.credentials("webhook", "shop").parent)
    write_private(
        home.credentials("webhook", "shop"), b'{"secrets": ["whsec_QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJD"]}'
    )
    write_private(home.config, SETTINGS)
    return home


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("owner=ou_1", "ou_1"),
        ("owner=3", "3"),
        ("owner=a=b", "a=b"),
        ("owner=", None),
        ("enabled=true", True),
        ("senders=anyone", "anyone"),
        ('senders=["ou_1", "ou_2"]', ["ou_1", "ou_2"]),
        ("remote_tools=owner", "owner"),
        ("media.keep_days=3", 3),
        ("expect_every_seconds=60", 60),
    ],
)
def test_a_word_is_read_as_its_setting_takes_it(home: Home, word: str, value: object) -> None:
    keys, _ = checked(home, "webhook", "shop", [word])
    assert keys == {word.partition("=")[0]: value}


def test_several_are_checked_together_and_whether_it_is_on_is_told(home: Home) -> None:
    assert checked(home, "feishu", "main", ["owner=ou_1", "language=zh"]) == (
        {"owner": "ou_1", "language": "zh"},
        False,
    )
    assert checked(home, "feishu", "main", ["enabled="])[1]
    assert load(home.config).channels["feishu"]["main"] == {"app_id": "cli_1", "enabled": False}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("owner", "write KEY=VALUE"),
        ("ownr=x", "did you mean owner?"),
        (
            "deliver_seconds=60",
            r"no such setting: deliver_seconds: it is none .* in \[limits\] of config.toml",
        ),
        ("limits.deliver_seconds=60", r"\[limits\] of config.toml"),
        ("zzzzzz=x", "no such setting: zzzzzz$"),
        ("owner.x=1", "owner has no parts"),
        ("media.keep=1", "no such setting: keep: did you mean keep_days"),
        ("app_secret=x", "has no place in a command"),
        ("enabled=maybe", "true or false|boolean"),
        ("media.keep_days=0", "greater than or equal to 1"),
        ("senders=bob", "senders"),
        ("senders=[x", "senders"),
        ("workspace=/does/not/exist", "existing directory"),
        ("app_id=", "missing: set it"),
        ("owner=Alice", "must be ids"),
    ],
)
def test_what_would_be_wrong_is_refused(home: Home, word: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        checked(home, "feishu", "main", [word])


@pytest.mark.parametrize(
    ("word", "example"),
    [
        ("senders=ou_a,ou_b", """'senders=["…"]'"""),
        ("media.keep_days=soon", "media.keep_days=7"),
        ("enabled=maybe", "enabled=true"),
    ],
)
def test_the_example_is_a_word_that_a_shell_passes_on(home: Home, word: str, example: str) -> None:
    with pytest.raises(TableError) as caught:
        checked(home, "feishu", "main", [word])
    assert str(caught.value).endswith(f", as in: {example}")


def test_an_account_that_is_broken_already_may_be_mended_and_set(home: Home) -> None:
    assert checked(home, "feishu", "broken", ["app_id=cli_2"])[0] == {"app_id": "cli_2"}
    assert checked(home, "feishu", "broken", ["owner=ou_1"])[0] == {"owner": "ou_1"}


def test_an_account_that_is_not_there_cannot_be_set(home: Home) -> None:
    with pytest.raises(ConfigError, match="turnbridge channels login "):
        checked(home, "feishu", "none", ["owner=u"])
    with pytest.raises(ConfigError, match="no channel called"):
        checked(home, "pigeon", "main", ["owner=u"])


def test_keys_are_set_in_a_copy() -> None:
    table = {"a": 1, "media": {"x": 1}}
    assert with_keys(table, {"a": None, "b": None, "media.y": 2, "c.d": 3}) == {
        "media": {"x": 1, "y": 2},
        "c": {"d": 3},
    }
    assert table == {"a": 1, "media": {"x": 1}}
