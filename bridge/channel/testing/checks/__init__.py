"""The parts of the contract suite, by ability. ``bridge.channel.testing.suite`` is what one imports."""
