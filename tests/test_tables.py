"""Settings files and tables: every refusal names the place, and never what stood there."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bridge.errors import ConfigError
from bridge.tables import TableError, parse, validate

SECRET = "hunter2-hunter2"
FILE = Path("settings.toml")


KEYS = 'keys: entry 2: must be a string; entry 3: must have at least 1 character, as in: keys = ["…"]'
Key = Annotated[str, Field(min_length=1, pattern="^[a-z]*$")]


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    keep_days: Annotated[int, Field(ge=1)] = 7


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")
    enabled: bool = True
    port: int = 8470
    wait_seconds: float = 2.5
    name: str = ""
    who: Literal["owner", "anyone"] | tuple[str, ...] = "owner"
    media: Inner = Inner()
    free: dict[str, dict[str, int]] = {}
    app: Annotated[str, Field(pattern="^app_[0-9]{1,9}$")] = "app_1"
    keys: Annotated[tuple[Key, ...], Field(min_length=1, max_length=2)] = ("a",)

    @model_validator(mode="after")
    def _fits(self) -> "Model":
        if self.name == "unfit":
            raise ValueError("name needs a port")
        return self


class Needs(BaseModel):
    token: str


def write(folder: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path = folder / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def refusal(model: type[BaseModel], table: Any, where: str = "") -> list[str]:
    with pytest.raises(TableError) as caught:
        validate(model, table, FILE, where)
    assert SECRET not in str(caught.value)
    return [line.removeprefix(f"{FILE}: ") for line in caught.value.lines]


def test_a_private_file_is_read(tmp_path: Path) -> None:
    assert parse(write(tmp_path, "[web]\nport = 1\n")) == {"web": {"port": 1}}


def test_a_link_is_followed_to_a_private_file_alone(tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(write(tmp_path, "a = 1"))
    assert parse(link) == {"a": 1}
    write(tmp_path, "a = 1", 0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        parse(link)


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        parse(write(tmp_path, "", mode))


def test_a_missing_or_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"is missing: make it: turnbridge init --home {tmp_path}$"):
        parse(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="over 1048576 bytes"):
        parse(write(tmp_path, b"#" * (1 << 20) + b"#"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"a = 1\nb = '{SECRET}\n", r"line 2, column \d+|end of document"),
        (f"a = 1\na = '{SECRET}'\n", r"line 2, column \d+"),
        (f"{SECRET} hunter2\n", r"line 1, column \d+"),
        (f'a = """{SECRET}', "end of document"),
    ],
)
def test_broken_toml_is_told_by_its_place_and_not_by_its_text(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError, match=place) as caught:
        parse(write(tmp_path, text))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1\na = 2\n", "this key is there twice"),
        ("[a]\n[a]\n", "[a] is there twice"),
        ("a = []\n[[a]]\n", "this table is there twice"),
        ("a = {b = 1, b = 2}\n", "this key is there twice"),
        ("a 1\n", "a key needs = and a value"),
        ("a = b\n", "this is no value: a text stands in quotes"),
        ("a = 'b\n", "a quote is not closed"),
        ('a = """b', "a quote is not closed"),
        ("a = [1\n", "a bracket is not closed"),
        ("a = {b = 1\n", "a bracket is not closed"),
        ("[a\n", "a bracket is not closed"),
        ("a = 1 2\n", "something stands behind the value"),
        ("= 1\n", "this is neither a setting nor a table"),
        ('a = "\\q"\n', "this character cannot stand there"),
        ('a = "\x01"\n', "this character cannot stand there"),
        ("\ufeffa = 1\n", "it begins with a byte order mark: save it as UTF-8 without one"),
    ],
)
def test_broken_toml_is_told_with_its_reason(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(write(tmp_path, text))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "# mine\n[daemon]\na = 1\n[web]\n[daemon] # again\n",
            "line 5, column 8: [daemon] is there twice: put all of it into the first, at line 2",
        ),
        ('[a."b c"]\n[a."b c"]\n', "[a.b c] is there twice: put all of it into the first, at line 1"),
        ("a = []\n[b]\n[a]\n", "line 3, column 3: this table is there twice"),
        ("[a]\nb = '[odd'\nx = {y = 1}\n[a.x]\n", "line 4, column 5: this table is there twice"),
        ("a = [\n['x'],\n]\n[b]\n[b]\n", "[b] is there twice: put all of it into the first, at line 4"),
    ],
)
def test_a_table_that_is_there_twice_is_named_with_the_line_of_the_first(
    tmp_path: Path, text: str, place: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(write(tmp_path, text))
    assert place in str(caught.value)


def test_text_that_is_not_utf_8_is_told_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 3 is not UTF-8"):
        parse(write(tmp_path, b"a = 1\nb = 2\nc = '\xff'\n"))


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nested too deeply|not TOML"):
        parse(write(tmp_path, "a = " + "[" * 100_000))


def test_a_good_table_becomes_its_model() -> None:
    table = {"enabled": False, "wait_seconds": 2, "who": ["a", "b"], "media": {"keep_days": 1}}
    model = validate(Model, table, FILE)
    assert (model.enabled, model.wait_seconds, model.who, model.media.keep_days) == (
        False,
        2.0,
        ("a", "b"),
        1,
    )


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"prot": 1}, "prot: no such setting: did you mean port?"),
        ({"na": 1}, "na: no such setting: did you mean name?"),
        ({"deliver_seconds": 1}, "deliver_seconds: no such setting: remove it"),
        ({"zzz": SECRET}, "zzz: no such setting: remove it"),
        ({"media": {"keep_day": 1}}, "media.keep_day: no such setting: did you mean keep_days?"),
        ({"media": {"keep_days": 0}}, "media.keep_days: must be greater than or equal to 1"),
        ({"media": 3}, "media: must be a table, as in: [media]"),
        ({"enabled": "yes"}, "enabled: must be a boolean, as in: enabled = true"),
        ({"port": "80"}, "port: must be a whole number, as in: port = 8470"),
        ({"port": 1.5}, "port: must be a whole number, as in: port = 8470"),
        ({"wait_seconds": "1"}, "wait_seconds: must be a number, as in: wait_seconds = 2.5"),
        ({"name": 5}, 'name: must be a string, as in: name = "…"'),
        ({"who": "nobody"}, "who: must be 'owner' or 'anyone', or a list, as in: who = [\"…\"]"),
        (
            {"who": ["a", 2, 3]},
            'who: entry 2: must be a string; entry 3: must be a string, as in: who = ["…"]',
        ),
        ({"free": {"a": {"b": "c"}}}, "free.a.b: must be a whole number, as in: b = 1"),
        ({"free": {"a": 1}}, "free.a: must be a table, as in: [free.a]"),
        ({"free": {"a b": 1}}, "free.a b: must be a table"),
        ({"keys": []}, "keys: must have at least 1 item"),
        ({"keys": ["a", "b", "c"]}, "keys: must have at most 2 items"),
        ({"keys": [""]}, "keys: entry 1: must have at least 1 character"),
        ({"keys": ["a", "A"]}, "keys: entry 2: must match pattern '^[a-z]*$'"),
        ({"keys": ["a", 1, ""]}, KEYS),
        ({"app": SECRET}, "app: must begin with app_, as the platform gives it"),
        ({"name": "unfit"}, "the whole file: name needs a port"),
        ([], "the whole file: must be a table"),
    ],
)
def test_each_wrong_key_is_named_with_what_it_must_be(table: Any, line: str) -> None:
    assert refusal(Model, table) == [line]


def test_all_problems_are_told_at_once_under_the_tables_own_name() -> None:
    lines = refusal(Model, {"port": "x", "name": 1}, "channels.x.y")
    assert lines == [
        "channels.x.y.port: must be a whole number, as in: port = 8470",
        'channels.x.y.name: must be a string, as in: name = "…"',
    ]
    assert refusal(Model, {"media": 1}, "channels.x.y") == [
        "channels.x.y.media: must be a table, as in: [channels.x.y.media]"
    ]
    assert refusal(Model, {"name": "unfit"}, "channels.x.y") == ["channels.x.y: name needs a port"]


def test_what_comes_as_text_may_be_read_less_strictly() -> None:
    assert validate(Model, {"port": "80"}, FILE, strict=False).port == 80
    assert refusal(Model, {"port": "80"}) == ["port: must be a whole number, as in: port = 8470"]


def test_in_a_file_of_secrets_the_form_is_json() -> None:
    with pytest.raises(TableError) as caught:
        validate(Model, {"keys": [1], "port": "x", "media": 1}, Path("main.json"))
    assert [line.partition(", as in: ")[2] for line in caught.value.lines] == [
        '"port": 1', '"media": {…}', '"keys": ["…"]'
    ]  # fmt: skip


def test_what_is_missing_is_named() -> None:
    assert refusal(Needs, {}) == ["token: missing: set it"]


@pytest.mark.parametrize(
    "text",
    [
        f"port = {'9' * 5000}",
        f"port = 0x{'f' * 8000}",
        f"{'a.' * 3000}a = 1",
        f"[{'a.' * 3000}a]",
        f"free = {'[' * 400}{']' * 400}",
    ],
)
def test_what_no_setting_needs_is_refused_and_ends_nothing(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml: .*(no setting needs that|recursion)"):
        validate(Model, parse(write(tmp_path, text)), tmp_path / "config.toml")


def test_a_file_that_cannot_even_be_looked_at_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        parse(tmp_path / ("a" * 300))


def test_a_ring_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").symlink_to(tmp_path / "other.toml")
    (tmp_path / "other.toml").symlink_to(tmp_path / "settings.toml")
    with pytest.raises(ConfigError, match="is a symbolic link"):
        parse(tmp_path / "settings.toml")
