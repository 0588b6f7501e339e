"""What an account is made of, handed to it by whoever builds the daemon."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random

from bridge.channel import ChannelSettings, ChannelSpec, Http, Place, RemoteTools
from bridge.clock import Clock
from bridge.config import Config
from bridge.ids import AccountId, ConversationKey
from bridge.logs import Logger, get_logger
from bridge.media.disk import Disk
from bridge.media.limits import MediaLimits
from bridge.media.shelf import Shelf
from bridge.media.voice import Transcriber
from bridge.meter import AccountMeter
from bridge.paths import Home
from bridge.relay import outbox, payload, received
from bridge.relay.ahead import NOBODY, Ahead
from bridge.relay.intake import Policy
from bridge.store.contract import Store

MIB = 1_048_576


@dataclass(frozen=True)
class Setup:
    """What an account is made of; what most accounts never need is made when it is asked for.

    ``disk`` is what received files are saved on. ``version`` is ours, as told to the session
    server. ``ahead_of`` tells who answers messages for the daemon, before the account itself does.
    """

    name: AccountId
    spec: ChannelSpec
    settings: ChannelSettings
    credentials: object
    config: Config
    home: Home
    workspace: Path
    http: Http
    store: Store
    disk: Disk
    clock: Clock
    rng: Random
    version: str
    meter_of: Callable[[AccountId], AccountMeter] = lambda _: AccountMeter()
    ahead_of: Callable[[AccountId, ChannelSettings], Ahead] = lambda _, __: NOBODY

    @property
    def channel_name(self) -> str:
        return self.name.partition(":")[0]

    @property
    def account_name(self) -> str:
        return self.name.partition(":")[2]

    @cached_property
    def meter(self) -> AccountMeter:
        return self.meter_of(self.name)

    @cached_property
    def ahead(self) -> Ahead:
        return self.ahead_of(self.name, self.settings)

    @cached_property
    def log(self) -> Logger:
        return get_logger("bridge.relay").bind(account=self.name)

    @cached_property
    def policy(self) -> Policy:
        settings = self.settings
        tools, listens = settings.remote_tools is RemoteTools.OWNER, bool(self.config.voice.base_url)
        return Policy(settings.owner, settings.senders, tools, listens)

    @property
    def place(self) -> Place:
        base = self.config.web.public_url.rstrip("/")
        address = f"{base}/channels/{self.channel_name}/{self.account_name}" if base else ""
        return Place(self.name, address)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.spec, self.settings, self.credentials)

    @property
    def caps(self) -> outbox.Caps:
        limits = self.config.limits
        return outbox.Caps(limits.reply_bytes, limits.part_bytes, limits.reply_files)

    @property
    def inbox(self) -> Path:
        """Where the account's received files are kept, a folder per conversation."""
        return self.home.inbox(self.channel_name, self.account_name, "any").parent

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self.inbox, self.config.media.quota_mib * MIB, self.disk)

    def media(self, conversation: ConversationKey) -> received.Terms:
        """How files of this conversation are taken in, and where to."""
        own, media, voice = self.settings.media, self.config.media, self.config.voice
        folder = self.home.inbox(self.channel_name, self.account_name, payload.digest_of(conversation))
        limits = MediaLimits(
            owner_max_bytes=own.owner_max_mib * MIB,
            others_image_max_bytes=own.others_image_max_mib * MIB,
            others_voice_max_bytes=voice.max_mib * MIB if voice.base_url else 0,
            max_files=media.max_files,
            max_pixels=media.max_pixels,
        )
        seconds = (media.download_seconds, media.resolve_seconds)
        listener = Transcriber(voice, self.home, os.environ) if voice.base_url else None
        return received.Terms(folder, self.shelf, limits, *seconds, listener)


def fingerprint_of(spec: ChannelSpec, settings: ChannelSettings, credentials: object) -> str:
    """What identifies an account, never what may rotate."""
    identity = (spec.name, *spec.identity(settings, credentials))
    return sha256("\0".join(identity).encode()).hexdigest()
