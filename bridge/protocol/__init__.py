"""Wire protocol v3 between a client and the session server: types, reading, writing, frames. No I/O.

`shared`, `commands`, `messages` and `events` hold the published types, `ours` the set that extends
them; `codec` reads and writes both, `frames` cuts a byte stream into lines, `limits` names the bounds.
"""
