from channels.webhook.breaker import OPENS_AFTER, PROBE_SECONDS, Breaker


def test_it_opens_after_so_many_failures_in_a_row_and_not_before() -> None:
    breaker = Breaker()
    for _ in range(OPENS_AFTER):
        assert breaker.admits(0.0)
        breaker.failed(0.0)
    assert not breaker.admits(0.0)


def test_a_success_between_starts_the_count_again() -> None:
    breaker = Breaker()
    for _ in range(3):
        for _ in range(OPENS_AFTER - 1):
            breaker.failed(0.0)
        breaker.answered()
    assert breaker.admits(0.0)


def test_open_it_admits_one_a_minute_until_one_is_answered() -> None:
    breaker = Breaker()
    for _ in range(OPENS_AFTER):
        breaker.failed(100.0)
    assert not breaker.admits(100.0 + PROBE_SECONDS - 0.1)
    for minute in range(1, 4):
        now = 100.0 + minute * PROBE_SECONDS
        assert [breaker.admits(now) for _ in range(3)] == [True, False, False]
        breaker.failed(now)
    assert breaker.admits(400.0)
    breaker.answered()
    assert [breaker.admits(400.0) for _ in range(3)] == [True] * 3
