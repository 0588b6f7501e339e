from bridge.channel import Limit, Unit
from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp import FakeWechatMp
from bridge.registry import channels
from channels.wechat_mp import SPEC, OfficialAccount, OfficialAccountWithService, render
from tests.channels.wechat_mp.support import at, client


def test_it_is_registered_under_its_name() -> None:
    assert channels().load("wechat_mp") is SPEC
    assert SPEC.text_limit == Limit(1898, Unit.BYTES)
    assert (SPEC.title(None), SPEC.idempotent_seconds) == ("WeChat", 0)


def test_case_52_what_is_rendered_is_plain_and_has_no_link_but_bare_addresses() -> None:
    said = '**hi** [docs](https://x.example) <A href="weixin://bizmsgmenu?msgmenucontent=yes">yes</A> @all'
    shown = render(said)
    assert shown.startswith("hi docs (https://x.example) <\u200bA href=")
    assert "<A" not in shown
    assert "</A" not in shown
    assert "@all" not in shown
    assert render("<**a** href=x>") == "<\u200ba href=x>"
    assert render(shown) == shown


async def test_what_an_account_can_do_is_what_the_settings_say_it_is() -> None:
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, client(clock) as http:
        with_service, without = at(fake, http), at(fake, http, customer_service=False)
    assert isinstance(with_service, OfficialAccountWithService)
    assert isinstance(without, OfficialAccount)
    assert not isinstance(without, OfficialAccountWithService)
