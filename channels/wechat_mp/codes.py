"""What WeChat's error codes mean for us. Pure.

Source: https://developers.weixin.qq.com/doc/offiaccount/Getting_Started/Global_Return_Code.html
"""

import re
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from typing import Final

BUSY: Final = -1
TOO_FAST: Final = 45011
QUOTA: Final = 45009
NOT_GRANTED: Final = 48001
TOKEN = frozenset({40001, 40014, 42001})
TOKEN_SECONDS: Final = 30.0  # another token is not made sooner
WRONG_SECRET: Final = 40001  # as the token call itself says; elsewhere it is about the token
ACCOUNT: dict[int, str] = {
    40013: "the app id is not valid: correct app_id",
    40125: "the app secret is not valid: correct app_secret",
    40164: "it takes no calls from this machine's address{address}: put that on the account's IP whitelist",
    40243: "the app secret is frozen: unfreeze it in the console",
    50004: "the account may not ask for access tokens: look into the console",
    50007: "the account is frozen: look into the console",
    89501: "an administrator must first confirm this machine's address: look into WeChat",
    89503: "an administrator must first confirm this machine's address: look into WeChat",
}

_BEIJING = timezone(timedelta(hours=8))
_BUSY_SECONDS = 2.0
_TOO_FAST_SECONDS = 60.0
_REASONS: dict[int, str] = {
    40003: "the recipient's openid is not one of this account",
    40007: "the file is not on the platform any more",
    43004: "the recipient does not follow the account",
    45002: "it is too long",
    45015: "the recipient wrote too long ago, or does not follow the account any more",
    45047: "too many messages since the recipient last wrote",
    45080: "the recipient already sees that work is under way",
    48001: "the account may not use this: it needs a verified account",
    48004: "the platform has forbidden this to the account",
    50005: "the recipient does not follow the account",
}
_RID = re.compile(r"\brid: ?([0-9A-Za-z-]{1,64})")
_ADDRESS = re.compile(r"[0-9a-fA-F.:]{7,45}")


def reason(code: int, message: str) -> str:
    """Why, in our words, as theirs may hold content; only the number of the request is theirs."""
    rid = _RID.search(message)
    shown = f"code {code}, rid {rid[1]}" if rid else f"code {code}"
    return f"{_REASONS.get(code, 'refused')} ({shown})"


def account_reason(code: int, message: str) -> str:
    """What the operator must do about a code of ``ACCOUNT``."""
    address = next((each for each in _ADDRESS.findall(message) if _is_address(each)), "")
    told = ACCOUNT.get(code, ACCOUNT[40125]).format(address=f" {address}" if address else "")
    return f"WeChat refuses the account: {told}, then run turnbridge reload (code {code})"


def wait_seconds(code: int, now: datetime) -> float:
    """How long a code for "not now" asks to wait, 0 for any other code; less than a day."""
    if code == QUOTA:
        return seconds_to_midnight(now)
    return {BUSY: _BUSY_SECONDS, TOO_FAST: _TOO_FAST_SECONDS}.get(code, 0.0)


def seconds_to_midnight(now: datetime) -> float:
    """Until the day ends in Beijing, when quotas are renewed: over 0 and at most a day."""
    here = now.astimezone(_BEIJING)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return (midnight - here).total_seconds()


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False
