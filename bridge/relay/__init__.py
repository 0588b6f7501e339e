"""The message's way: intake, turn, outbox, delivery; a client of the session server like any other."""
