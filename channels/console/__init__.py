"""The console: whoever owns the daemon talks to it from a terminal of the same machine.

An account like any other, but for its door: it is served on the Unix socket ``<home>/state/console.sock``
alone, which only the daemon's own user can open. So there is no secret, and whoever writes is the owner.
"""

from bridge.channel import ChannelCredentials, ChannelSpec, Http, Limit, Place, Unit
from bridge.channel.text import defuse_mentions
from channels.console.adapter import Console
from channels.console.settings import ConsoleSettings


def create(settings: ConsoleSettings, credentials: ChannelCredentials, http: Http, place: Place) -> Console:
    return Console(settings.owner)


SPEC = ChannelSpec(
    name="console",
    title=lambda settings: "Console",
    chinese={"Console": "终端"},
    settings=ConsoleSettings,
    credentials=ChannelCredentials,
    create=create,
    identity=lambda settings, credentials: (),  # it is this machine's, whatever its owner is called
    text_limit=Limit(65_536, Unit.BYTES),
    render=defuse_mentions,  # a terminal reads markdown; what is copied from it may end up in a chat
    body_limit_bytes=1_048_576,
)
