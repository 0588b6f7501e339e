"""A whole daemon that has voice transcribed: it becomes a turn, for strangers too, or the fixed reply."""

import asyncio

from bridge.cli.webhook_client import File
from bridge.paths import Home
from tests.daemons import Running, daemon, short_home, write_settings
from tests.media.transcriptions import FakeTranscriptions

SETTINGS = '[channels.webhook.demo]\nowner = "you"\nremote_tools = "owner"\nsenders = "anyone"\n'
VOICE = '[voice]\nbase_url = "{}"\n'


async def say(running: Running, sender: str, text: str = "") -> str:
    client = running.client()
    client.conversation = f"with {sender}"
    voice = File("voice.ogg", "audio/ogg", b"OggS" + bytes(200))
    sent = await asyncio.to_thread(client.send, sender, text, [voice])
    parts = await asyncio.to_thread(lambda: list(client.replies(sent, 20.0)))
    return "\n".join(part["text"] for part in parts)


async def test_case_26_voice_alone_is_understood_or_answered_by_the_fixed_reply_and_never_an_empty_turn() -> (
    None
):
    where: Home
    async with FakeTranscriptions().serving() as fake:
        with short_home("") as where:
            write_settings(where, VOICE.format(fake.base) + SETTINGS)
            async with daemon(where) as running:
                for sender in ("you", "stranger"):
                    assert "Turn the heating on." in await say(running, sender)
                fake.status = 500
                for sender in ("you", "stranger"):
                    assert await say(running, sender) == (
                        "I cannot listen to voice messages. Please write it as text."
                    )
                beside = await say(running, "you", "what did I say?")
                assert "could not be written down" in beside
                assert "what did I say?" in beside
