"""``make picture``: a real daemon, the real ``turnbridge chat`` in a terminal, and its screen as a picture.

Writes docs/chat.svg, which the README shows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bridge.cli.chat_show import FRAMES
from bridge.cli.picture import NAME, sunset
from bridge.paths import Home, write_private
from tests.picture.draw import Screen, svg
from tests.picture.pseudo import Pseudo, pseudo

ROOT = Path(__file__).parent.parent.parent
PICTURE = ROOT / "docs" / "chat.svg"
COLUMNS, ROWS = 76, 60
TITLE = "turnbridge chat"
SETTINGS = "[web]\nport = 0\n[channels.console.local]\n"

FIXED = (
    "$ turnbridge chat",
    "Turnbridge · local · main · /help",
    "› 你好，终端！",
    "你说：你好，终端！",
    "› /file 晚霞.png",
    "+ 晚霞.png",
    "› What is this?",
    "image 晚霞.png",
    "› picture 回声.png 480x300",
    "Here is 回声.png.",
    "+ turnbridge-files/回声.png",
    "› slow 60",
    "Stopped.",
    "› progress 9",
    "wait: waited 3 of 9 seconds",
)
"""What the picture shows, whatever else varies."""


def play(chat: Pseudo) -> None:
    """The dialogue: a greeting, a file there, one back, a turn that is stopped, and one that still runs."""
    chat.until("$")
    chat.enter("turnbridge chat")
    chat.until("/help")
    chat.settle()
    say(chat, "你好，终端！", "你说：")
    say(chat, f"/file {NAME}", "goes with")
    say(chat, "What is this?", "pixels")
    say(chat, "picture 回声.png 480x300", "KiB, 480 x 300\n\n›")
    chat.enter("slow 60")
    chat.until("working 1 s")
    chat.type("\x03")
    chat.until("Stopped.")
    chat.settle()
    chat.enter("progress 9")
    chat.until("waited 3 of 9 seconds")


def say(chat: Pseudo, text: str, seen: str) -> None:
    before = chat.text.count(seen)
    chat.enter(text)
    chat.until(lambda now: now.count(seen) > before)
    chat.settle()


@contextmanager
def daemon(home: Home) -> Iterator[None]:
    """One that is ready, and is stopped at the end."""
    command = [
        sys.executable,
        "-c",
        "from bridge.cli.main import main; main()",
        "run",
        "--home",
        str(home.root),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if not any("is running" in line for line in process.stdout):
                raise RuntimeError("the daemon did not start")
            yield
        finally:
            process.terminate()


def rows_of(screen: Any) -> list[Any]:
    """The rows with something in them, a spinner always at the same place."""
    rows = [screen.buffer[number] for number in range(screen.lines)]
    for row in rows:
        for column, char in list(row.items()):
            if char.data and char.data in FRAMES:
                row[column] = char._replace(data=FRAMES[0])
    while rows and not any(row[column].data.strip() for row in rows[-1:] for column in range(screen.columns)):
        rows.pop()
    return rows


def record() -> str:
    """Play the dialogue and draw what is on the screen at its end."""
    folder = Path(tempfile.mkdtemp(prefix="tb-", dir="/tmp"))
    try:
        home, here = Home(folder / "home"), folder / "here"
        home.private_dir(home.root)
        write_private(home.config, SETTINGS.encode())
        here.mkdir()
        (here / NAME).write_bytes(sunset())
        own = Path(sys.executable).parent
        environ = {
            "HOME": str(folder),
            "PATH": f"{own}:{os.environ['PATH']}",
            "PS1": "$ ",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TURNBRIDGE_HOME": str(home.root),
        }
        with daemon(home), pseudo(["sh"], environ, COLUMNS, ROWS, here, Screen(COLUMNS, ROWS)) as chat:
            play(chat)
            return svg(rows_of(chat.screen), COLUMNS, TITLE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    PICTURE.write_text(record(), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)} ({PICTURE.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
