"""An operator with nothing but the commands of the README, from the first settings to a mended fault."""

import asyncio
import io
import json
import re
import sys
from pathlib import Path

import pytest

from bridge.channel.testing.fakes.feishu import OWNER, FakeFeishu, Refusal
from bridge.cli import account, service, service_unit
from bridge.cli.main import main
from bridge.cli.service_unit import unit_of
from bridge.paths import Home, write_private
from tests.cli.fake_systemd import FakeSystemd, with_systemd
from tests.daemons import daemon, free_port, short_home


class Operator:
    """Types commands for one home; what is typed for secrets comes on standard input."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch, said: pytest.CaptureFixture[str]) -> None:
        self._home, self._monkeypatch, self._said = home, monkeypatch, said

    async def types(self, *words: str, stdin: str = "") -> tuple[int, str]:
        """The exit code, and what was printed."""
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        self._said.readouterr()
        code = await asyncio.to_thread(main, [*words, "--home", str(self._home.root)])
        return code, self._said.readouterr().out

    async def pairs(self, fake: FakeFeishu) -> int:
        """Have the code shown, and send it to the bot as its owner."""
        pairing = asyncio.get_running_loop().run_in_executor(
            None, main, ["pair", "feishu:main", "--home", str(self._home.root)]
        )
        shown = ""
        async with asyncio.timeout(20):
            while not (code := re.search(r"\d{4}-\d{4}", shown)):
                await asyncio.sleep(0.01)
                shown += self._said.readouterr().out
        await fake.say(code[0], sender=OWNER)
        return await pairing

    async def sees(self, state: str) -> None:
        """Look at the status until the bot is so."""
        async with asyncio.timeout(20):
            while await self._state() != state:
                await asyncio.sleep(0.01)

    async def _state(self) -> str:
        _, said = await self.types("status", "--json")
        states = {one["id"]: one["state"] for one in json.loads(said)["components"]}
        return str(states["feishu:main"])

    async def finds(self) -> list[str]:
        """What the doctor calls a fault."""
        code, said = await self.types("doctor", "--json")
        found = json.loads(said)
        faults = [each for each in found["findings"] if each["level"] == "fault"]
        assert (code == 0) is (faults == []) is found["ok"]
        assert all(each["cure"] for each in faults)
        return [each["check"] for each in faults]


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    monkeypatch.setattr(service_unit, "TEMPORARY", ())
    monkeypatch.setattr(account, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(service, "PAUSE_SECONDS", 0.01)
    return with_systemd(tmp_path, monkeypatch)


async def test_from_nothing_to_a_bot_that_answers_its_owner_and_back_from_wrong_credentials(
    systemd: FakeSystemd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        home.config.unlink()
        home.credentials("webhook", "demo").unlink()
        operator = Operator(home, monkeypatch, capsys)
        async with FakeFeishu() as fake:
            port = free_port()
            secrets = f"app_secret={fake.app_secret}\nencrypt_key={fake.encrypt_key}\n"
            secrets += f"verification_token={fake.token}\n"
            answers = f"channel=feishu\napp_id={fake.app_id}\nbase={fake.base}\n"
            answers += f"port={port}\npublic_url=http://127.0.0.1:{port}\n"
            assert (await operator.types("init", stdin=answers + secrets))[0] == 0
            async with daemon(home):
                fake.pusher.to = f"http://127.0.0.1:{port}/channels/feishu/main"
                assert (await operator.types("service", "install"))[0] == 0
                assert systemd.asked[-1] == f"restart {unit_of(home).name}"
                assert await operator.pairs(fake) == 0
                assert await operator.finds() == []
                await fake.say("hello", sender=OWNER)
                assert any("You said: hello" in sent.text for sent in await fake.wait_sent(2))

                path = home.credentials("feishu", "main")
                write_private(path, json.dumps({"app_secret": "wrong", "encrypt_key": "x"}).encode())
                assert (await operator.types("reload"))[0] == 0
                await operator.sees("failed")
                assert await operator.finds() == ["credentials", "account"]
                assert (await operator.types("channels", "login", "feishu:main", stdin=secrets))[0] == 0
                assert await operator.finds() == []

                fake.next(Refusal(230034))
                assert (await operator.types("send", "feishu:main", OWNER, "The build is green"))[0] == 0
                async with asyncio.timeout(20):
                    while (listed := await operator.types("dead", "list", "--json"))[0] == 0:
                        await asyncio.sleep(0.01)
                (letter,) = json.loads(listed[1])
                assert (await operator.types("dead", "retry", str(letter["id"])))[0] == 0
                sent = await fake.wait_sent(3)
                assert "The build is green" in sent[-1].text
                assert (await operator.types("dead", "list"))[0] == 0
                assert (await operator.types("status"))[0] == 0
