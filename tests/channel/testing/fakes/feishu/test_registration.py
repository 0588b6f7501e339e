"""The fake of a sign-in by a scan speaks the platform's device flow."""

import aiohttp
import pytest

from bridge.channel.testing.fakes.feishu.registration import PATH, FakeRegistration


async def ask(fake: FakeRegistration, **form: str) -> tuple[int, object]:
    async with aiohttp.ClientSession() as client, client.post(fake.base + PATH, data=form) as answer:
        return answer.status, await answer.json() if "json" in answer.content_type else await answer.read()


async def test_a_code_is_pending_until_it_is_scanned() -> None:
    async with FakeRegistration() as fake:
        assert await ask(fake, action="init") == (
            200, {"supported_auth_methods": ["client_secret", "private_key_jwt"]},
        )  # fmt: skip
        status, begun = await ask(fake, action="begin")
        assert status == 200
        assert isinstance(begun, dict)
        code = begun["device_code"]
        assert begun["verification_uri_complete"] == f"{fake.base}/verify/{code}"
        status, polled = await ask(fake, action="poll", device_code=code)
        assert (status, isinstance(polled, dict) and polled["error"]) == (400, "authorization_pending")
        fake.scan("ou_me")
        status, polled = await ask(fake, action="poll", device_code=code)
        assert status == 200
        assert polled == {
            "client_id": "cli_scanned0001", "client_secret": "scanned-app-secret",
            "user_info": {"open_id": "ou_me", "tenant_brand": "feishu"},
        }  # fmt: skip


@pytest.mark.parametrize(("does", "error"), [("decline", "access_denied"), ("expire", "expired_token")])
async def test_a_code_may_be_declined_or_expire(does: str, error: str) -> None:
    async with FakeRegistration() as fake:
        await ask(fake, action="begin")
        getattr(fake, does)()
        status, polled = await ask(fake, action="poll", device_code=fake.codes[0].code)
        assert (status, isinstance(polled, dict) and polled["error"]) == (400, error)
        assert (await ask(fake, action="poll", device_code="none"))[0] == 400


async def test_opening_a_code_s_address_scans_it() -> None:
    async with FakeRegistration() as fake, aiohttp.ClientSession() as browser:
        await ask(fake, action="begin")
        assert (await browser.get(f"{fake.base}/verify/none")).status == 404
        assert (await browser.get(f"{fake.base}/verify/{fake.codes[0].code}")).status == 200
        assert fake.codes[0].owner == "ou_scanner"


async def test_it_fails_as_it_is_told_and_refuses_what_is_no_request() -> None:
    async with FakeRegistration() as fake:
        fake.faults.extend([503, b"odd"])
        assert (await ask(fake, action="init"))[0] == 503
        async with aiohttp.ClientSession() as client, client.post(fake.base + PATH) as answer:
            assert await answer.read() == b"odd"
        assert (await ask(fake, action="nonsense"))[0] == 400
        assert fake.forms == [{"action": "init"}, {}, {"action": "nonsense"}]
