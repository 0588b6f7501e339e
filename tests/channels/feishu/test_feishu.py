from bridge.channel.split import split_text
from bridge.registry import channels
from channels.feishu import SPEC
from channels.feishu.adapter import create


def test_it_is_registered_under_its_name() -> None:
    assert channels().load("feishu") is SPEC
    assert (SPEC.name, SPEC.create, SPEC.idempotent_seconds) == ("feishu", create, 3600)


def test_case_52_what_is_rendered_notifies_nobody_and_stays_markdown() -> None:
    rendered = SPEC.render('**hi** <AT user_id="all">all</AT>')
    assert rendered == '**hi** <\u200bAT user_id="all">all<\u200b/AT>'
    assert SPEC.render(rendered) == rendered


def test_case_44_a_long_code_block_is_closed_and_opened_again_in_each_part() -> None:
    text = "Here:\n\n```python\n" + "print('你好')\n" * 2000 + "```\nthe end"
    parts = split_text(text, SPEC.text_limit, SPEC.render)
    assert len(parts) > 2
    assert all(part.startswith("```python\n") for part in parts[1:])
    assert all(part.count("```") == 2 for part in parts)
    assert "".join(parts).count("print(") == 2000


def test_case_42_no_part_tears_what_a_reader_sees_as_one_character() -> None:
    family, flag = "👨\u200d👩\u200d👧\u200d👦", "🇨🇳"
    for each in (family, flag):
        parts = split_text("x" * 11_990 + each * 200, SPEC.text_limit, SPEC.render)
        assert "".join(parts).count(each) == sum(part.count(each) for part in parts) == 200
