"""All that an adapter's author needs to write in a test file of their own."""

from bridge.channel.testing.suite import *  # noqa: F403 - this is how the suite is collected
