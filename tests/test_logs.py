import io
import json
import logging
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bridge import logs
from bridge.errors import ConfigError
from bridge.logs import (
    HIDDEN,
    clean,
    configure,
    describe,
    get_logger,
    redact,
    register_borne,
    register_passing,
    register_secret,
    without,
)

WORD = st.text("abcäöü中文0123=/+-_.")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the process's logging as it was found."""
    monkeypatch.setattr(logs, "_lasting", set())
    monkeypatch.setattr(logs, "_passing", OrderedDict())
    monkeypatch.setattr(logs, "_by_start", {})
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    yield
    structlog.configure(**before)
    logging.getLogger().handlers = handlers


def test_logging_loads_nothing_to_draw_with_and_hinders_nobody_else() -> None:
    code = (
        "import sys, bridge.logs; assert not any(name.startswith('rich') for name in sys.modules);"
        "import rich.table; assert rich.table.Table()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    subprocess.run(
        [sys.executable, "-c", "import sys, rich, bridge.logs; assert sys.modules['rich'] is rich"],
        check=True,
    )


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def redacted(**values: object) -> dict[str, Any]:
    return dict(redact(None, "info", dict(values)))


def test_the_keys_of_a_line_have_one_order_whatever_was_bound_when() -> None:
    out = io.StringIO()
    configure(stream=out, as_json=True)
    get_logger("bridge.relay").bind(part=3, account="feishu:main").info("delivery.refused", zone=1, code="x")
    get_logger("bridge.relay").info("daemon.ready")
    orders = [list(line) for line in lines(out)]
    assert orders == [
        ["time", "level", "event", "account", "module", "part", "zone", "code"],
        ["time", "level", "event", "module"],
    ]
    out.truncate(0)
    configure(stream=out, as_json=False)
    get_logger("bridge.relay").bind(part=3, account="feishu:main").info("delivery.refused")
    assert out.getvalue().strip().endswith("info delivery.refused account=feishu:main part=3")


def test_a_line_is_one_json_object_with_event_keys_level_module_and_time() -> None:
    out = io.StringIO()
    configure(stream=out)
    get_logger("bridge.relay").bind(account="feishu:main").info("delivery.refused", part=3)
    (line,) = lines(out)
    assert datetime.fromisoformat(line.pop("time")).utcoffset() is not None
    assert line == {
        "account": "feishu:main",
        "event": "delivery.refused",
        "level": "info",
        "module": "bridge.relay",
        "part": 3,
    }


def test_lines_below_the_level_are_not_written() -> None:
    out = io.StringIO()
    configure("warning", stream=out)
    get_logger("x").info("not.seen")
    get_logger("x").warning("seen")
    assert [line["event"] for line in lines(out)] == ["seen"]


def test_a_person_at_a_terminal_gets_text_and_nobody_else_does() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), Terminal()
    configure(stream=terminal)
    get_logger("x").info("account.connected", token="hunter2")
    assert "account.connected" in terminal.getvalue()
    assert "hunter2" not in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")
    configure(stream=pipe, as_json=True)
    get_logger("x").info("account.connected")
    assert lines(pipe)[0]["event"] == "account.connected"


def test_without_a_stream_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    get_logger("x").info("seen")
    captured = capsys.readouterr()
    assert (captured.out, json.loads(captured.err)["event"]) == ("", "seen")


def test_a_stream_that_is_gone_stops_nothing() -> None:
    out = io.StringIO()
    configure(stream=out)
    out.close()
    get_logger("x").info("lost")


@pytest.mark.parametrize(
    "key",
    "token access_token accessToken app_secret clientSecret authorization Authorization password "
    "signature webhook-signature key conversation_key text content text_bytes apikey "
    "secretary body sender owner".split(),
)
def test_a_value_under_a_telling_key_is_left_out_at_any_depth(key: str) -> None:
    assert redacted(**{key: "hunter2"}) == {key: HIDDEN}
    assert redacted(outer=[{"inner": {key: ["hunter2"]}}]) == {"outer": [{"inner": {key: HIDDEN}}]}


def test_counts_flags_and_plain_keys_stay_readable() -> None:
    kept = {"text_bytes": 5, "input_tokens": 7, "owner": True, "token": None, "keyboard": "qwerty", "": 1}
    assert redacted(**kept) == kept
    assert redacted(key=5) == {"key": HIDDEN}


def test_a_registered_secret_is_left_out_of_every_string() -> None:
    register_secret("s3cr/et")
    register_secret("s3cr/et-longer")
    register_secret("abc")
    said = redacted(event="login s3cr/et", at="https://x/s3cr%2Fet/y", k={"s3cr/et": Path("/a/s3cr/et")})
    assert said == {
        "event": f"login {HIDDEN}",
        "at": f"https://x/{HIDDEN}/y",
        "k": {HIDDEN: f"/a/{HIDDEN}"},
    }
    assert clean("s3cr/et-longer abc") == f"{HIDDEN} abc"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {HIDDEN}"),
        ("basic dXNlcjpwYXNz, then", f"basic {HIDDEN}, then"),
        ("wss://user:pass@host/path", "wss://host/path"),
        ("https://us@er:p@host:1/p?a=b#c rest", f"https://host:1/p?{HIDDEN} rest"),
        ("see https://host/p#frag", f"see https://host/p?{HIDDEN}"),
        ("GET /p?x=1&access_token=abc&y=2", f"GET /p?x=1&access_token={HIDDEN}&y=2"),
        ("two\nlines\x1b[31m", "two lines [31m"),
        ("nothing to hide: https://host/p", "nothing to hide: https://host/p"),
    ],
)
def test_tokens_private_parts_of_addresses_and_control_characters_are_left_out(text: str, said: str) -> None:
    assert clean(text) == said


@given(WORD, WORD.filter(lambda secret: len(secret) >= 4 and secret not in HIDDEN), WORD)
def test_no_text_around_a_registered_secret_brings_it_out(before: str, secret: str, after: str) -> None:
    logs._by_start.clear()
    register_secret(secret)
    assert secret not in clean(before + secret + after)


def test_what_is_no_plain_value_is_only_named() -> None:
    class State(StrEnum):
        UP = "up"

    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    said = redacted(
        a=SecretStr("hunter2"), b=b"hunter2", c=State.UP, d=at, e=(1.5, {"x"}), f=ValueError("hunter2")
    )
    assert said == {
        "a": "<SecretStr>",
        "b": "<bytes>",
        "c": "up",
        "d": "2026-01-02T03:04:00+00:00",
        "e": [1.5, ["x"]],
        "f": "ValueError at an unknown place",
    }


def test_what_is_nested_too_deeply_is_only_named() -> None:
    deep: list[object] = []
    deep.append(deep)
    assert "<list>" in json.dumps(redacted(deep=deep))


def caught(call: Any) -> BaseException:
    with pytest.raises(BaseException) as raised:
        call()
    return raised.value


def fail_with_a_foreign_error() -> None:
    json.loads("hunter2")


def fail_with_our_error() -> None:
    try:
        fail_with_a_foreign_error()
    except ValueError as error:
        raise ConfigError("the file has no JSON: mend it") from error


def test_of_a_foreign_error_only_its_class_and_place_are_told() -> None:
    said = describe(caught(fail_with_a_foreign_error))
    assert said.startswith("JSONDecodeError at json.decoder:")
    assert "tests.test_logs:" not in said.partition(" < ")[0]
    assert "hunter2" not in said


def test_of_our_error_its_text_is_told_and_its_cause() -> None:
    said = describe(caught(fail_with_our_error))
    assert said.startswith("ConfigError: the file has no JSON: mend it from JSONDecodeError at json.decoder:")


def test_each_error_of_a_group_is_told_and_a_circle_of_causes_ends() -> None:
    group = ExceptionGroup("hunter2", [ConfigError("one"), ExceptionGroup("", [ValueError("hunter2")])])
    assert describe(group) == "ConfigError: one; ValueError at an unknown place"
    circle = ConfigError("round")
    circle.__cause__ = circle
    assert describe(circle).count("round") == 4


def test_a_logged_exception_brings_no_traceback_and_no_foreign_text() -> None:
    out = io.StringIO()
    configure(stream=out)
    log = get_logger("x")
    error = caught(fail_with_a_foreign_error)
    try:
        raise error
    except ValueError:
        log.exception("in.handler")
    log.error("given", exc_info=error)
    log.error("triple", exc_info=(type(error), error, error.__traceback__))
    log.error("none", exc_info=True, stack_info=True)  # noqa: LOG014 - there is none to tell of
    assert "hunter2" not in out.getvalue()
    assert [line.get("error", "")[:15] for line in lines(out)] == ["JSONDecodeError"] * 3 + [""]
    assert all({"exc_info", "exception", "stack_info"}.isdisjoint(line) for line in lines(out))


def test_a_library_s_message_is_told_without_its_words() -> None:
    out = io.StringIO()
    configure(stream=out)
    configure(stream=out)
    foreign = logging.getLogger("aiohttp.server")
    foreign.info("hunter2")
    foreign.warning("hunter2 %s", "hunter2")
    try:
        fail_with_a_foreign_error()
    except ValueError:
        foreign.exception("hunter2")
    assert "hunter2" not in out.getvalue()
    told = [(line["event"], line["level"], line["module"]) for line in lines(out)]
    assert told == [
        ("library.message", "warning", "aiohttp.server"),
        ("library.message", "error", "aiohttp.server"),
    ]
    assert lines(out)[0]["where"].startswith("test_logs:")
    assert "JSONDecodeError" in lines(out)[1]["error"]


def test_a_terminal_gets_short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    configure("info", stream=out)
    get_logger("m").info("health.changed", account="webhook:demo", state="connected", empty="", count=3)
    get_logger("m").warning("health.changed", reason="it is gone")
    plain, coloured = out.getvalue().splitlines()
    assert plain[2::3][:2] == "::"
    assert plain[8:] == ' info health.changed account=webhook:demo state=connected empty="" count=3'
    assert coloured.startswith("\x1b[33m")
    assert coloured.endswith('warning health.changed\x1b[0m reason="it is gone"')


# --- secrets that come and go


def test_a_passing_secret_is_left_out_as_any_other_and_the_newest_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "PASSING_KEPT", 2)
    register_secret("lasting-1")
    for token in ("token/1", "token/2", "token/1", "token/3", "abc"):
        register_passing(token)
    told = clean("lasting-1 token/1 token/2 token/3 token%2F1 abc")
    assert told == f"{HIDDEN} {HIDDEN} token/2 {HIDDEN} {HIDDEN} abc"
    register_passing("another-1")
    register_passing("another-2")
    assert set(logs._by_start) == {"last", "anot"}


def test_a_passing_secret_that_is_a_lasting_one_too_is_never_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "PASSING_KEPT", 1)
    register_passing("both-of-them")
    register_secret("both-of-them")
    register_passing("both-of-them")
    register_passing("another-one")
    assert clean("both-of-them") == HIDDEN


def test_what_a_request_bears_under_a_telling_name_is_a_secret_from_then_on() -> None:
    register_borne(
        {
            "Authorization": "Bearer borne-no-1",
            "X-Api-Key": "borne-no-2",
            "access_token": "borne-no-3",
            "OPENAI_API_KEY": "borne-no-4",
            "X-Short-Token": "1234567",
            "Content-Type": "application/json",
            "webhook-signature": "v1,signed",
            "Idempotency-Key": "client-id",
        }.items()
    )
    told = clean("borne-no-1 borne-no-2 borne-no-3 borne-no-4 1234567 application/json v1,signed client-id")
    assert told == f"{HIDDEN} {HIDDEN} {HIDDEN} {HIDDEN} 1234567 application/json v1,signed client-id"


def test_a_secret_is_found_whatever_other_secrets_begin_like_it() -> None:
    for secret in ("same-start", "same-start-longer", "same"):
        register_secret(secret)
    assert clean("same-start-longer same-start same sam") == f"{HIDDEN} {HIDDEN} {HIDDEN} sam"


@pytest.mark.parametrize("key", "recipient chat conversation group thread user nickname filename to".split())
def test_who_wrote_where_is_left_out_as_what_was_written(key: str) -> None:
    assert redacted(**{key: "ou_stranger"}) == {key: HIDDEN}


def test_what_somebody_else_worded_does_not_repeat_what_it_was_told() -> None:
    told = without("no user ou_123 in chat ou_123/c: hello", "ou_123", "ou_123/c", "hello", "")
    assert told == f"no user {HIDDEN} in chat {HIDDEN}: hello"
