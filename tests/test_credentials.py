import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from bridge.channel.spec import ChannelCredentials
from bridge.credentials import remove, save, save_texts
from bridge.errors import ConfigError
from bridge.logs import clean
from bridge.paths import Home


class Inner(ChannelCredentials):
    secret: SecretStr
    until: datetime | None = None


class Credentials(ChannelCredentials):
    token: SecretStr
    other: SecretStr = SecretStr("")
    keys: tuple[Inner, ...] = ()


class ByName(ChannelCredentials):
    since: int = 0
    by_name: dict[str, SecretStr]


GIVEN = Credentials(
    token=SecretStr("tok-4711-ß"),
    keys=(Inner(secret=SecretStr("key-0815"), until=datetime(2030, 1, 2, tzinfo=UTC)),),
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_secrets_are_saved_for_the_owner_alone_and_read_back_as_they_were(home: Home) -> None:
    save(home, "feishu", "main", GIVEN)
    path = home.credentials("feishu", "main")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path.parent.parent)} == {0o700}
    written = json.loads(path.read_text())
    assert set(written) == {"token", "keys"}
    assert Credentials.model_validate(written) == GIVEN


def test_a_table_of_secrets_and_what_is_none_are_saved_too(home: Home) -> None:
    save(home, "feishu", "main", ByName(since=7, by_name={"a": SecretStr("one"), "b": SecretStr("two")}))
    written = json.loads(home.credentials("feishu", "main").read_text())
    assert written == {"since": 7, "by_name": {"a": "one", "b": "two"}}


def test_what_is_kept_in_the_environment_is_not_written(home: Home) -> None:
    save(home, "feishu", "main", GIVEN, elsewhere=["token"])
    assert json.loads(home.credentials("feishu", "main").read_text()).keys() == {"keys"}


def test_a_part_of_the_secrets_can_be_saved_too(home: Home) -> None:
    save_texts(home, "feishu", "main", {"other": "só"})
    assert json.loads(home.credentials("feishu", "main").read_text()) == {"other": "só"}


def test_what_was_saved_is_in_no_log(home: Home) -> None:
    save(home, "feishu", "main", GIVEN)
    assert "tok-4711" not in clean("it said tok-4711-ß")
    assert "key-0815" not in clean("it said key-0815")


def test_saving_again_replaces_and_removing_twice_is_well(home: Home) -> None:
    save(home, "feishu", "main", GIVEN)
    save(home, "feishu", "main", Credentials(token=SecretStr("second")))
    path = home.credentials("feishu", "main")
    assert json.loads(path.read_text()) == {"token": "second"}
    remove(home, "feishu", "main")
    remove(home, "feishu", "main")
    assert list(path.parent.iterdir()) == []


def test_what_a_killed_writer_left_of_the_secrets_goes_too(home: Home) -> None:
    save(home, "feishu", "main", GIVEN)
    save(home, "feishu", "main2", GIVEN)
    path = home.credentials("feishu", "main")
    path.rename(path.with_name(".main.json.0a1b2c3d"))
    remove(home, "feishu", "main")
    assert [found.name for found in path.parent.iterdir()] == ["main2.json"]


def test_a_link_in_the_file_s_place_goes_and_what_it_led_to_stays(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("x")
    path = home.credentials("feishu", "main")
    home.private_dir(path.parent)
    path.symlink_to(real)
    remove(home, "feishu", "main")
    assert not path.is_symlink()
    path.symlink_to(real)
    save(home, "feishu", "main", GIVEN)
    assert not path.is_symlink()
    assert real.read_text() == "x"


def test_a_name_that_is_none_and_a_file_that_stays_are_told(home: Home) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        remove(home, "feishu", "../x")
    remove(home, "feishu", "main")  # no secrets of the channel were ever kept: there is nothing to remove
    home.private_dir(home.credentials("feishu", "main"))  # a folder in its place
    with pytest.raises(ConfigError, match="cannot remove"):
        remove(home, "feishu", "main")
