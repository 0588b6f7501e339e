"""``turnbridge channels login``: asks for what an account needs, checks it, saves it, has it started."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from bridge.cli.account import NotRunningError, named, not_running, ownerless, taken_up, tell
from bridge.cli.common import add_home, home, visible
from bridge.errors import BridgeError, ChannelError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bridge.channel import Scan
    from bridge.cli.common import Commands
    from bridge.paths import Home
    from bridge.signing import Draft, Proof, Signed, Wanted

DEFAULT_ACCOUNT = "main"
TRIES = 3  # of a person who types something wrong
STDIN_CHARACTERS = 1 << 20
HOW = """\
Secrets are never given as arguments. On a terminal they are asked for. Otherwise standard input has a line
KEY=VALUE for each, as a file that is given by < may; or the environment has TURNBRIDGE_CHANNEL_KEY, such as
TURNBRIDGE_FEISHU_APP_SECRET. Settings of the account, such as owner, may be given in the same ways.
"""


def register(actions: Commands) -> None:
    parser = actions.add_parser(
        "login", help="sign an account in: ask for its secrets, check and save them, start it", epilog=HOW
    )
    parser.add_argument(
        "account", metavar="CHANNEL[:ACCOUNT]", help="such as feishu:main (ACCOUNT: main unless it is given)"
    )
    parser.add_argument("--scan", action="store_true", help="have a bot made by scanning a QR code")
    parser.add_argument("--no-check", action="store_true", help="do not ask the platform before saving")
    add_home(parser, is_action=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when it is saved and, where a daemon runs, connected; 1 when it is not; 2 when it is wrong."""
    channel, account = named(args, DEFAULT_ACCOUNT)
    return sign_in(home(args), channel, account, wants_scan=args.scan, checks=not args.no_check)


def sign_in(where: Home, channel: str, account: str, *, wants_scan: bool = False, checks: bool = True) -> int:
    """The whole of it, for whoever has channel and account already; exit codes as ``run``."""
    import asyncio

    from bridge import signing

    draft = signing.draft_of(where, channel, account, os.environ)
    if draft.damage:
        print(f"What is saved is not used, and will be replaced: {visible(draft.damage)}")
    given = {**_from_environment(draft), **_from_input(draft)}
    if wants_scan or _would_scan(draft, given):
        given |= asyncio.run(signing.scanned(draft, _show, given))
    signed = _completed(draft, given)
    signing.refuse_another_bot(signed)
    proof = _checked(signed, asks=checks)
    signing.save_signed(signed)
    return _start(signed, proof)


# --- what is given --------------------------------------------------------------------------------


def _from_environment(draft: Draft) -> dict[str, str]:
    start = f"TURNBRIDGE_{draft.spec.name}_".upper().replace("-", "_")
    keys = {**draft.spec.settings.model_fields, **draft.spec.credentials.model_fields}
    return {key: os.environ[start + key.upper()] for key in keys if os.environ.get(start + key.upper())}


def _from_input(draft: Draft) -> dict[str, str]:
    """The lines ``KEY=VALUE`` of standard input, unless a person sits there.

    Raises:
        ConfigError: a line is none, or names what the channel does not have. No value is shown.
    """
    if sys.stdin.isatty():
        return {}
    text = sys.stdin.read(STDIN_CHARACTERS)
    keys = {**draft.spec.settings.model_fields, **draft.spec.credentials.model_fields}
    given = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or key.strip().partition(".")[0] not in keys:
            known = ", ".join(sorted(draft.spec.credentials.model_fields))
            raise ConfigError(
                f"line {number} of standard input sets nothing that {draft.spec.name} has: write KEY=VALUE; "
                f"its secrets are {known or 'none'}"
            )
        given[key.strip()] = value.strip()
    return given


def _would_scan(draft: Draft, given: Mapping[str, str]) -> bool:
    """Whether a person who has given nothing yet would rather scan."""
    if draft.spec.sign_in is None or draft.saved or draft.table or given or not sys.stdin.isatty():
        return False
    title = draft.spec.name.capitalize()
    return _ask(f"Have a new bot made by scanning a QR code with the {title} app? [Y/n] ").lower() != "n"


def _show(scan: Scan) -> None:
    from bridge.cli import qr

    print("Scan this with the app, or open it in a browser where you are signed in:\n")
    qr.show(scan.address)
    print(f"    {visible(scan.address)}\n")
    print(f"It is good for {max(1, round(scan.good_seconds / 60))} minutes; then another one is shown.")
    sys.stdout.flush()


# --- what is asked for ----------------------------------------------------------------------------


def _completed(draft: Draft, given: dict[str, str]) -> Signed:
    """The account with what is given, and with what a person adds where there is one.

    Raises:
        ConfigError: something is missing or wrong, and nobody there corrects it.
    """
    from bridge.signing import with_given

    made = (
        {}
        if draft.saved
        else {key: value for key, value in draft.spec.fresh().items() if key not in draft.environ}
    )
    if not sys.stdin.isatty():
        try:
            return with_given(draft, {**made, **given})
        except ConfigError as error:
            raise ConfigError(f"{error} (how to give it: turnbridge channels login --help)") from error
    for left in reversed(range(TRIES)):
        answers = _asked(draft, given, made)
        try:
            return with_given(draft, {**made, **given, **answers})
        except ConfigError as error:
            if not left:
                raise
            print(f"{visible(str(error))}\nOnce more:")
    raise AssertionError("the last try returns or raises")


def _asked(draft: Draft, given: Mapping[str, str], made: Mapping[str, str]) -> dict[str, str]:
    answers = {}
    for wanted in draft.wanted():
        if wanted.key not in given and (answer := _answer(wanted, is_made=wanted.key in made)):
            answers[wanted.key] = answer
    return answers


def _answer(wanted: Wanted, *, is_made: bool) -> str:
    """What a person types for it; "" keeps what is there, or leaves it out."""
    if wanted.is_there:
        enter = "Enter: as it is"
    elif is_made:
        enter = "Enter: a new one is made"
    else:
        enter = "" if wanted.is_required else "Enter: none"
    notes = "; ".join(filter(None, [wanted.hint, enter]))
    while True:
        answer = _ask(wanted.key + (f" ({notes}): " if notes else ": "), is_secret=wanted.is_secret)
        if answer or enter:
            return answer


def _ask(prompt: str, *, is_secret: bool = False) -> str:
    """Raises ConfigError when nobody answers."""
    from getpass import getpass

    try:
        return (getpass(prompt) if is_secret else input(prompt)).strip()
    except EOFError:
        raise ConfigError("nothing was signed in: the input ended") from None


# --- checking and starting ------------------------------------------------------------------------


def _checked(signed: Signed, *, asks: bool) -> Proof:
    """Raises BridgeError, saying that nothing was saved, unless the platform takes it or cannot be asked."""
    import asyncio

    from bridge.signing import proven

    try:
        proof = asyncio.run(proven(signed, asks=asks))
    except ConfigError:
        raise
    except ChannelError as error:
        raise BridgeError(f"nothing was saved: {error} (to save it all the same: --no-check)") from error
    if proof.identity is not None:
        name = visible(proof.identity.name or proof.identity.bot_id)
        print(f"The platform knows the bot: {name}")
    return proof


def _start(signed: Signed, proof: Proof) -> int:
    from bridge.signing import route_of

    draft = signed.draft
    where, id_ = draft.home, draft.id
    print(
        f"{id_} is signed in: its secrets are in {where.credentials(draft.spec.name, draft.account)}"
        if draft.spec.credentials.model_fields
        else f"{id_} is signed in: it needs no secrets"
    )
    if proof.is_pushed and draft.spec.credentials.model_fields:
        print(f"Have the platform send to: {route_of(signed)}")
    try:
        found = taken_up(where, draft.spec.name, draft.account, enabled=draft.is_on)
    except NotRunningError:
        not_running(where, f"{id_} is saved")
        if not signed.settings.owner:
            senders = signed.settings.senders
            print(ownerless(where, id_, senders if isinstance(senders, str) else "list", wants_tools=False))
        return 0
    if found is None:
        raise BridgeError(f"{id_} is gone: somebody else changed the settings meanwhile")
    return tell(where, found, wants_tools=signed.settings.remote_tools == "owner")
