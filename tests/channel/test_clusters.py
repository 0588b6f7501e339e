"""Where a text may be cut without tearing a character."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.clusters import inside_clusters


@given(
    st.text(
        alphabet=["a", "\u200d", "\u0301", "🇨", "👍", "🏽", "\r", "\n", "\u1100", "\u1161", "가"], max_size=30
    )
)
def test_clusters_tear_nothing_at_the_ends(text: str) -> None:
    torn = inside_clusters(text)
    assert len(torn) == len(text) + 1
    assert not torn[0]
    assert not torn[-1]


def test_an_odd_flag_starts_a_new_cluster() -> None:
    assert [at for at in range(8) if not inside_clusters("🇨🇳🇩🇪🇫a🇫")[at]] == [0, 2, 4, 5, 6, 7]
    assert not inside_clusters("\n\u0301é")[1]
    assert not inside_clusters("\u200d é")[1]
