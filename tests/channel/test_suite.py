"""The contract suite, against every channel that is installed here and the one that lies outside of us."""

from bridge.channel.testing.suite import *  # noqa: F403 - collected as an adapter's author does it
