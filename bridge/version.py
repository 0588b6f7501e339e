"""The version, here and in ``pyproject.toml``; a test holds them together. A constant, so that it costs nothing."""

VERSION = "0.1.0"
