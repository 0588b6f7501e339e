"""What the doctor says: a line each, the cure below, and the sum."""

from bridge.cli.findings import fault, good, lines, unknown, warning


def test_a_cure_stands_below_what_it_is_for() -> None:
    found = [
        good("home", "/x"),
        unknown("clock", "nobody tells"),
        warning("disk", "12 % free", "free some space"),
        fault("daemon", "it is not running", "start it"),
    ]
    assert list(lines(found)) == [
        "ok       home         /x",
        "-        clock        nobody tells",
        "warning  disk         12 % free",
        "                      -> free some space",
        "fault    daemon       it is not running",
        "                      -> start it",
        "1 fault, 1 warning",
    ]


def test_the_sum_counts_and_says_when_there_is_nothing() -> None:
    assert list(lines([good("home", "/x")]))[-1] == "all is well"
    assert list(lines([fault("a", "b", "c")] * 2))[-1] == "2 faults, 0 warnings"


def test_for_programs_the_level_is_a_word() -> None:
    assert fault("daemon", "down", "start it").as_json() == {
        "check": "daemon", "level": "fault", "text": "down", "cure": "start it",
    }  # fmt: skip
    assert good("home", "/x").as_json()["level"] == "good"
