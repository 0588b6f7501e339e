from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp.world import TOUCHED, WRITTEN, Follower, World


def taken(follower: Follower, now: float, times: int) -> list[int]:
    return [follower.take(now) for _ in range(times)]


def test_nobody_is_written_to_who_did_not_write() -> None:
    assert Follower("o1").take(0.0) == 45015


def test_five_messages_follow_what_was_written_within_48_hours() -> None:
    follower = Follower("o1")
    follower.may_be_sent(WRITTEN, 0.0)
    assert taken(follower, 100.0, 6) == [0, 0, 0, 0, 0, 45047]
    follower.may_be_sent(WRITTEN, 100.0)
    assert follower.take(48 * 3600.0 + 99) == 0
    assert follower.take(48 * 3600.0 + 101) == 45015


def test_a_button_allows_three_within_a_minute_and_does_not_open_the_long_allowance() -> None:
    follower = Follower("o1")
    follower.may_be_sent(TOUCHED, 0.0)
    assert taken(follower, 59.0, 4) == [0, 0, 0, 45047]
    assert follower.take(61.0) == 45015


def test_the_shorter_allowance_is_used_first() -> None:
    follower = Follower("o1")
    follower.may_be_sent(WRITTEN, 0.0)
    follower.may_be_sent(TOUCHED, 0.0)
    assert taken(follower, 1.0, 9) == [0] * 8 + [45047]


def test_who_left_is_not_written_to() -> None:
    follower = Follower("o1", follows=False)
    follower.may_be_sent(WRITTEN, 0.0)
    assert follower.take(1.0) == 45015


async def test_a_file_lives_three_days() -> None:
    clock = FakeClock()
    world = World(clock)
    media = world.add_media("image", "a.png", "image/png", b"x")
    await clock.advance(3 * 86_400 - 1)
    assert world.find_media(media.media_id) is media
    await clock.advance(1)
    assert world.find_media(media.media_id) is None
    assert world.find_media("other") is world.find_media(7) is None


def test_ids_are_numbers_of_64_bits_and_later_runs_give_out_others() -> None:
    world, clock = World(), FakeClock()
    assert int(world.new_id()) + 1 == int(world.new_id()) < 2**63
    clock.jump(1)
    assert World(clock).new_id() != World(FakeClock()).new_id()


def test_a_follower_is_known_once() -> None:
    world = World()
    assert world.follower("o1") is world.follower("o1")
