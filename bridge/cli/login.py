"""``turnbridge channels login``: asks for what an account needs, checks it, saves it, has it started."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING

from bridge.cli.account import NotRunningError, named, not_running, ownerless, taken_up, tell
from bridge.cli.common import add_home, home, visible
from bridge.errors import BridgeError, ChannelError, ConfigError, CredentialsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bridge.channel import ChannelSpec, Scan
    from bridge.cli.common import Commands
    from bridge.paths import Home
    from bridge.signing import Draft, Proof, Signed, Wanted
    from bridge.tables import TableError

DEFAULT_ACCOUNT = "main"
NOTHING: Mapping[str, str] = {}
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


def sign_in(
    where: Home,
    channel: str,
    account: str,
    *,
    wants_scan: bool = False,
    checks: bool = True,
    more: Mapping[str, str] = NOTHING,
    fresh: Callable[[], str] = str,
) -> int:
    """The whole of it, for whoever has channel and account already; exit codes as ``run``.

    ``more`` are settings for a new account, unless others are given; ``fresh`` gives those before it, where
    there are none yet when it is saved.
    """
    import asyncio

    from bridge import signing

    draft = signing.draft_of(where, channel, account, os.environ, fresh)
    if draft.damage:
        print(f"What is saved is not used, and will be replaced: {visible(draft.damage)}")
    given = {**_from_environment(draft), **_from_input(draft)}
    if wants_scan or _would_scan(draft, given):
        given |= asyncio.run(signing.scanned(draft, _show, given))
    given = {**more, **given}
    made = _made(draft, given)
    signed, proof = (_by_person if sys.stdin.isatty() else _as_given)(draft, given, made, asks=checks)
    signing.save_signed(signed)
    return _start(signed, proof, made)


# --- what is given --------------------------------------------------------------------------------


def _from_environment(draft: Draft) -> dict[str, str]:
    start = f"TURNBRIDGE_{draft.spec.name}_".upper().replace("-", "_")
    keys = {**draft.spec.settings.model_fields, **draft.spec.credentials.model_fields}
    return {key: os.environ[start + key.upper()] for key in keys if os.environ.get(start + key.upper())}


def _from_input(draft: Draft) -> dict[str, str]:
    """The lines of standard input, unless a person sits there; raises as ``read_lines``."""
    return {} if sys.stdin.isatty() else read_lines(sys.stdin.read(STDIN_CHARACTERS), draft.spec)


def read_lines(text: str, spec: ChannelSpec, others: Iterable[str] = ()) -> dict[str, str]:
    """The lines ``KEY=VALUE`` of ``text``. ``others`` are names that may be meant, too.

    Raises:
        ConfigError: a line is none, or names what the channel does not have. No value is shown.
    """
    from bridge.tables import nearest

    keys = {**spec.settings.model_fields, **spec.credentials.model_fields}
    given = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or key.strip().partition(".")[0] not in keys:
            known = ", ".join(sorted(spec.credentials.model_fields)) or "none"
            meant = nearest(key.strip(), [*keys, *others]) if equals else ""
            raise ConfigError(
                f"line {number} of standard input sets nothing that {spec.name} has: "
                + (meant or f"write KEY=VALUE; its secrets are {known}")
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


def _as_given(
    draft: Draft, given: Mapping[str, str], made: Mapping[str, str], *, asks: bool
) -> tuple[Signed, Proof]:
    """The account with what is given, once the platform takes it.

    Raises:
        ConfigError: something is missing or wrong.
        BridgeError: the platform does not take it, or gives no answer.
    """
    from bridge.signing import with_given

    try:
        signed = with_given(draft, {**made, **given})
    except ConfigError as error:
        raise ConfigError(f"{error} (how to give it: turnbridge channels login --help)") from error
    try:
        return signed, _checked(signed, asks=asks)
    except ChannelError as error:
        raise _unsaved(error) from error


def _by_person(
    draft: Draft, given: Mapping[str, str], made: Mapping[str, str], *, asks: bool
) -> tuple[Signed, Proof]:
    """As ``_as_given``, with what a person adds, who is asked again for what is wrong and for nothing else.

    Raises:
        ConfigError: something is wrong that is not asked for, or the person ended it.
        BridgeError: the platform gives no answer, and the person gave up.
    """
    from bridge.signing import with_given
    from bridge.tables import TableError

    wanted = draft.wanted()
    answers = {each.key: _answer(each, made) for each in wanted if each.key not in given}
    while True:
        known = {**made, **given, **{key: text for key, text in answers.items() if text}}
        try:
            signed = with_given(draft, known)
            return signed, _checked(signed, asks=asks)
        except TableError as error:
            named = _named(error)
            if not (wrong := [each for each in wanted if each.key in named]):
                raise
            print(f"{visible(str(error))}\nOnce more:")
            given = {key: text for key, text in given.items() if key not in named}
            answers |= {each.key: _answer(each, made) for each in wrong}
        except CredentialsError as error:
            print(f"{visible(str(error))}\nOnce more:")
            answers |= {each.key: _answer(each, made, known) for each in wanted}
        except ChannelError as error:
            asks = _asks_again(error)


def _made(draft: Draft, given: Mapping[str, str]) -> dict[str, str]:
    """Secrets that this side makes, for those that are nowhere yet."""
    fresh = draft.spec.fresh({**draft.table, **given})
    return {key: text for key, text in fresh.items() if key not in draft.saved and key not in draft.environ}


def _named(error: TableError) -> set[str]:
    """All words of what it says of keys, without the file's path."""
    return {word for line in error.lines for word in re.findall(r"\w+", line.partition(": ")[2])}


def _asks_again(error: ChannelError) -> bool:
    """Whether the platform, which gave no answer, is to be asked again; False: it is saved as it is.

    Raises:
        BridgeError: neither.
    """
    print(visible(str(error)))
    answer = _ask("Enter: ask the platform again; save: save it unchecked; any other word: give up: ").lower()
    if answer not in ("", "save"):
        raise _unsaved(error) from error
    return not answer


def _unsaved(error: ChannelError) -> BridgeError:
    return BridgeError(f"nothing was saved: {error} (to save it all the same: --no-check)")


def _answer(wanted: Wanted, made: Mapping[str, str], typed: Mapping[str, str] | None = None) -> str:
    """What a person types for it; "" keeps what is there, or leaves it out.

    ``typed`` is what was typed before and may be right.
    """
    before = (typed or {}).get(wanted.key, "")
    if before and before != made.get(wanted.key):
        enter = "Enter: as it was typed"
    elif wanted.is_there:
        enter = "Enter: as it is"
    elif wanted.key in made:
        enter = "Enter: a new one is made"
    else:
        enter = "" if wanted.is_required else "Enter: none"
    notes = "; ".join(filter(None, [wanted.hint, enter]))
    while True:
        answer = _ask(wanted.key + (f" ({notes}): " if notes else ": "), is_secret=wanted.is_secret)
        if answer or enter:
            return answer or before


def _ask(prompt: str, *, is_secret: bool = False) -> str:
    """Raises ConfigError when nobody answers."""
    from getpass import getpass

    try:
        return (getpass(prompt) if is_secret else input(prompt)).strip()
    except EOFError:
        raise ConfigError("nothing was signed in: the input ended") from None


# --- checking and starting ------------------------------------------------------------------------


def _checked(signed: Signed, *, asks: bool) -> Proof:
    """Raises ConfigError for another bot; ChannelError unless the platform takes it or cannot be asked."""
    import asyncio

    from bridge import signing

    signing.refuse_another_bot(signed)
    proof = asyncio.run(signing.proven(signed, asks=asks))
    if proof.identity is not None:
        name = visible(proof.identity.name or proof.identity.bot_id)
        print(f"The platform knows the bot: {name}")
    return proof


def _start(signed: Signed, proof: Proof, made: Mapping[str, str]) -> int:
    from bridge.accounts import secrets_of
    from bridge.signing import route_of

    draft = signed.draft
    where, id_ = draft.home, draft.id
    print(
        f"{id_} is signed in: its secrets are in {where.credentials(draft.spec.name, draft.account)}"
        if draft.spec.credentials.model_fields
        else f"{id_} is signed in: it needs no secrets"
    )
    texts = {*secrets_of(signed.credentials)}
    if used := [key for key, text in made.items() if text in texts]:
        print(f"Made for it: {', '.join(used)}: give the other side the same")
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
