"""Whether a profile's key, endpoint and models are right: only the list of models is asked for."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import httpx2

from bridge.agents.contract import AgentError, Finding
from bridge.agents.llm.endpoint import Endpoint
from bridge.agents.llm.models import ANTHROPIC_VERSION
from bridge.logs import clean

LIMIT_SECONDS = 15.0
_SHOWN = 5
_UNLISTED = (
    "it lists no models, so whether base_url (often ending in /v1) and {model} are right "
    "shows with the first message"
)
_KEY = "put a good one into credentials/agents/{profile}.json or the variable that is named, and restart"


async def diagnose(endpoint: Endpoint) -> Sequence[Finding]:
    """What there is to say of the key, the endpoint and each model, within 20 s."""
    settings = endpoint.settings
    found = [_key(endpoint)]
    watch = endpoint.watch(LIMIT_SECONDS)
    listed = await watch.limit(_list(endpoint, watch))
    if listed is None:
        cure = "see whether it is running, and whether base_url and the network are right"
        return [*found, Finding(f"{settings.address} did not answer within {LIMIT_SECONDS:g} s", cure)]
    if isinstance(listed, Finding):
        return [*found, listed]
    found.append(Finding(f"{settings.address} answers"))
    return [*found, *(_model(name, listed, settings.provider) for name in settings.all_models)]


def _key(endpoint: Endpoint) -> Finding:
    return Finding("there is a key" if endpoint.has_key else "there is no key, and none is needed here")


async def _list(endpoint: Endpoint, watch: Any) -> list[str] | Finding:
    """The models that the endpoint names, maybe none; or what is wrong. Never raises."""
    settings = endpoint.settings
    base, headers, query = settings.address, {}, {}
    if settings.provider == "anthropic":
        base = settings.address.removesuffix("/v1") + "/v1"
        headers, query = {"anthropic-version": ANTHROPIC_VERSION}, {"limit": "1000"}
    try:
        async with endpoint.client(watch) as client:
            answer = await client.get(f"{base}/models", headers=headers, params=query)
            return _read(answer, endpoint)
    except (httpx2.HTTPError, AgentError, ValueError):
        return Finding(f"{settings.address} cannot be reached", "is it running, and is base_url right?")


def _read(answer: httpx2.Response, endpoint: Endpoint) -> list[str] | Finding:
    address = endpoint.settings.address
    match answer.status_code:
        case 200:
            return _ids(answer)
        case 401 | 403:
            says = "refuses the key" if endpoint.has_key else "wants a key"
            return Finding(f"{address} {says} ({answer.status_code})", _KEY.format(profile=endpoint.profile))
        case 404 | 405 | 501:
            return []
    return Finding(f"{address} answers {answer.status_code}", "mend base_url, or try again later")


def _ids(answer: httpx2.Response) -> list[str]:
    try:
        body = answer.json()
    except ValueError:
        return []
    items = body.get("data") if isinstance(body, dict) else None
    ids = (
        [item.get("id") for item in items or [] if isinstance(item, dict)] if isinstance(items, list) else []
    )
    return [clean(one)[:200] for one in ids if isinstance(one, str)]


def _model(name: str, listed: Sequence[str], provider: str) -> Finding:
    if not listed:
        return Finding(_UNLISTED.format(model=name))
    if name in listed or f"{name}:latest" in listed:
        return Finding(f"the model {name} is there")
    if provider == "llamacpp":  # answers with its one model, whatever it is called
        return Finding(f"the server has one model, {listed[0]}, and takes {name} for it")
    near = get_close_matches(name, listed, _SHOWN, 0.3) or sorted(listed)[:_SHOWN]
    cure = f"set another model, such as {', '.join(near)}"
    return Finding(
        f"there is no model {name}",
        f"{cure}; or fetch it: ollama pull {name}" if provider == "ollama" else cure,
    )
