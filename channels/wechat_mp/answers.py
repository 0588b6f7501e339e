"""What every answer of the platform has in common: an ``errcode`` under status 200. Pure."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bridge.channel import ChannelError, CredentialsError, HttpAnswer, UnreachableError, failure
from channels.wechat_mp import codes


@dataclass(frozen=True, slots=True)
class Result:
    """An answer that is final for its request. ``code`` None: it tells none, as some that succeed."""

    code: int | None
    reason: str
    host: str
    body: dict[str, Any] = field(repr=False)

    def text(self, name: str) -> str:
        found = self.body.get(name)
        return found if isinstance(found, str) else ""

    def failed(self) -> ChannelError:
        """The error that it is for a request that only reads."""
        return ChannelError(f"{self.host}: {self.reason or 'the answer cannot be read'}")


def judge(answer: HttpAnswer, now: datetime) -> Result:
    """Read ``errcode``.

    Raises:
        UnreachableError: not now. CredentialsError: the account is refused.
        ChannelError: any, for an answer that the platform itself did not write.
    """
    if answer.status != 200:
        raise failure(answer)
    body = answer.fields()
    code = body.get("errcode")
    if isinstance(code, bool) or not isinstance(code, int):
        return Result(None, "", answer.host, body)
    message = body.get("errmsg")
    text = message if isinstance(message, str) else ""
    if code in codes.ACCOUNT:
        raise CredentialsError(codes.account_reason(code, text))
    if wait := codes.wait_seconds(code, now):
        raise UnreachableError(f"{answer.host}: not now (code {code})", wait)
    return Result(code, codes.reason(code, text) if code else "", answer.host, body)
