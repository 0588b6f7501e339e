"""A model's thoughts are told from its words, however the text arrives."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.llm.thoughts import THOUGHT, WORD, Thoughts


def parted(*texts: str) -> tuple[str, str]:
    """All that was thought, and all that was said."""
    thoughts = Thoughts()
    parts = [part for text in texts for part in thoughts.feed(text)] + thoughts.rest()
    assert all(text for _, text in parts)
    return tuple("".join(text for key, text in parts if key == wanted) for wanted in (THOUGHT, WORD))  # type: ignore[return-value]  # of two


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("plain", "", "plain"),
        ("", "", ""),
        ("  plain", "", "  plain"),
        ("<think>hm</think>\n\nyes", "hm", "yes"),
        ("\n<think>\n</think>yes", "\n", "yes"),
        ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
        ("say <think>x</think>", "", "say <think>x</think>"),
        ("<thin", "", "<thin"),
        ("<think", "", "<think"),
        ("<think>never ended", "never ended", ""),
        ("<think>a < b </thi", "a < b </thi", ""),
        ("<think></think>", "", ""),
        ("</think>x", "", "</think>x"),
    ],
)
@given(data=st.data())
def test_thoughts_do_not_depend_on_how_the_text_arrives(
    text: str, thought: str, said: str, data: st.DataObject
) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    cuts = [0, *places, len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(cuts)]
    found = parted(*pieces)
    assert found[0] == thought
    assert found[1] == said


def test_words_are_passed_on_at_once() -> None:
    thoughts = Thoughts()
    assert thoughts.feed("Hel") == [(WORD, "Hel")]
    assert thoughts.feed("<think>") == [(WORD, "<think>")]
    assert thoughts.rest() == []
