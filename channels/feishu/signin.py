"""Signing a bot in by a scan: Feishu makes a new app for whoever scans, and gives out its id and secret.

The device flow of its open SDKs. What of it is not in any document was read there (2026-11-30).
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from bridge.channel import ChannelError, Http, OutcomeUnknownError, Scan, SignedIn, UnreachableError
from channels.feishu.settings import private_base
from channels.feishu.wire import text_of

ACCOUNTS = "https://accounts.feishu.cn"
LARK_ACCOUNTS = "https://accounts.larksuite.com"
LARK_BASE = "https://open.larksuite.com"
MOST_CODES = 5
_PATH = "/oauth/v1/app/registration"
_METHOD = "client_secret"
_SECONDS = 5.0  # between two looks, where the platform names no time
_MOST_SECONDS = 60.0
_SLOWER_SECONDS = 5.0
_GOOD_SECONDS = 600.0


async def sign_in(settings: Mapping[str, Any], http: Http) -> AsyncIterator[Scan | SignedIn]:
    """An app of its own, which knows nobody but the one who scanned: so that is its owner.

    Raises:
        ChannelError: the platform does not offer it, it was declined, or nobody scanned.
    """
    try:
        accounts = private_base(str(settings.get("accounts_base") or ACCOUNTS))
    except ValueError as error:
        raise ChannelError(f"accounts_base {error}") from None
    registration = Registration(http, accounts)
    await registration.begin_all()
    for _ in range(MOST_CODES):
        scan = await registration.begin()
        yield scan
        if (found := await registration.scanned(scan.good_seconds)) is not None:
            yield found
            return
    raise ChannelError("nobody scanned the code in time: start again")


class Registration:
    """One sign-in. It moves to Lark's side when the one who scans belongs there."""

    def __init__(self, http: Http, accounts: str) -> None:
        self._http, self._accounts = http, accounts
        self._side = accounts
        self._device = ""
        self._pause_seconds = _SECONDS

    async def begin_all(self) -> None:
        """Raises ChannelError when the platform gives out no secrets this way."""
        offered = await self._ask(action="init")
        methods = offered.get("supported_auth_methods")
        if not isinstance(methods, list) or _METHOD not in methods:
            raise ChannelError("the platform offers no sign-in by a scan: make an app in its console")

    async def begin(self) -> Scan:
        """A new code."""
        self._side = self._accounts
        begun = await self._ask(
            action="begin",
            archetype="PersonalAgent",
            auth_method=_METHOD,
            request_user_info="open_id tenant_brand",
        )
        self._device, address = text_of(begun, "device_code"), text_of(begun, "verification_uri_complete")
        if not self._device or not address.startswith(("https://", "http://")):
            raise ChannelError("the platform gave no code to scan: try again later")
        self._pause_seconds = _seconds(begun.get("interval"), _SECONDS, _MOST_SECONDS)
        return Scan(address, _seconds(begun.get("expires_in"), _GOOD_SECONDS, 3600.0))

    async def scanned(self, good_seconds: float) -> SignedIn | None:
        """What came of the code; None: it has expired.

        Raises:
            ChannelError: it was declined.
        """
        clock = self._http.clock
        until = clock.monotonic() + good_seconds
        while clock.monotonic() < until:
            found = await self._look()
            if isinstance(found, SignedIn):
                return found
            if found == "expired":
                return None
            if found == "pending":
                await clock.sleep(self._pause_seconds)
        return None

    async def _look(self) -> SignedIn | Literal["pending", "expired", "moved"]:
        try:
            answer = await self._ask(action="poll", device_code=self._device)
        except (UnreachableError, OutcomeUnknownError):  # the code may still be good
            return "pending"
        match answer.get("error"):
            case "authorization_pending":
                return "pending"
            case "slow_down":
                self._pause_seconds = min(self._pause_seconds + _SLOWER_SECONDS, _MOST_SECONDS)
                return "pending"
            case "expired_token":
                return "expired"
            case "access_denied":
                raise ChannelError("the sign-in was declined on the phone: start again to try once more")
        user = answer.get("user_info")
        brand = text_of(user, "tenant_brand") if isinstance(user, dict) else ""
        if brand == "lark" and self._side == ACCOUNTS:
            self._side = LARK_ACCOUNTS  # it is told there alone
            return "moved"
        return _signed_in(answer, user if isinstance(user, dict) else {}, is_lark=brand == "lark")

    async def _ask(self, **fields: str) -> dict[str, Any]:
        """The answer's object; what is no error that we know rides on any status."""
        answer = await self._http.at(self._side).post_form(_PATH, fields)
        if answer.status >= 500 or answer.status == 429:
            raise UnreachableError(f"{answer.host}: status {answer.status}", answer.retry_after_seconds)
        return answer.fields()


def _signed_in(answer: dict[str, Any], user: dict[str, Any], *, is_lark: bool) -> SignedIn:
    app_id, secret, owner = (
        text_of(answer, "client_id"), text_of(answer, "client_secret"), text_of(user, "open_id"),
    )  # fmt: skip
    if not app_id or not secret:
        raise ChannelError("the platform gave no app: make one in its console")
    settings = {"app_id": app_id} | ({"owner": owner} if owner else {})
    return SignedIn(settings | ({"base": LARK_BASE} if is_lark else {}), {"app_secret": secret})


def _seconds(value: object, usual: float, most: float) -> float:
    """``value`` where it is a sensible time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return usual
    return min(float(value), most)
