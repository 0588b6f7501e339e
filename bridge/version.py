"""The version, here and in ``pyproject.toml``; a test holds them together. A constant costs nothing."""

VERSION = "0.1.0"
