from bridge.registry import channels
from channels.feishu import SPEC, Feishu, render


def test_it_is_registered_under_its_name() -> None:
    assert channels().load("feishu") is SPEC
    assert (SPEC.name, SPEC.create, SPEC.idempotent_seconds) == ("feishu", Feishu, 3600)


def test_case_52_what_is_rendered_notifies_nobody_and_is_plain() -> None:
    assert render('**hi** <AT user_id="all">all</AT>') == 'hi <\u200bAT user_id="all">all<\u200b/AT>'
    assert render(render("<at>")) == render("<at>")
