"""Whether a profile's key, endpoint and models are right, without spending.

The list of models is asked for. Where there is none, a request that lacks its messages is sent where turns
are: a server of models refuses it as incomplete, and anything else has no such place.
"""

from collections.abc import Sequence
from difflib import get_close_matches

import httpx2

from bridge.agents.contract import AgentError, Finding
from bridge.agents.llm.endpoint import Endpoint
from bridge.agents.llm.models import ANTHROPIC_VERSION
from bridge.agents.llm.wire import Watch
from bridge.logs import clean

LIMIT_SECONDS = 15.0
_SHOWN = 5
_OK = 200
_MISSING = (404, 405, 501)
_UNLISTED = "it lists no models, so whether {model} is right shows with the first message"
_NOWHERE = "{url} answers {status} as no model's server does, so no message will be answered"
_UNREACHED = "see whether it runs, and whether base_url and the network are right"
_ADDRESS = "mend base_url: most end in /v1; or the name of the model, if that is not known there"
_KEY = "put a good one into credentials/agents/{profile}.json or the variable that is named, and restart"


async def diagnose(endpoint: Endpoint) -> Sequence[Finding]:
    """What there is to say of the key, the endpoint and each model, within 20 s."""
    settings = endpoint.settings
    found = [_key(endpoint)]
    watch = endpoint.watch(LIMIT_SECONDS)
    listed = await watch.limit(_look(endpoint, watch))
    if listed is None:
        text = f"{settings.told_address} did not answer within {LIMIT_SECONDS:g} s"
        return [*found, Finding(text, _UNREACHED)]
    if isinstance(listed, Finding):
        return [*found, listed]
    found.append(Finding(f"{settings.told_address} answers"))
    return [*found, *(_model(name, listed, settings.provider) for name in settings.all_models)]


def _key(endpoint: Endpoint) -> Finding:
    return Finding("there is a key" if endpoint.has_key else "there is no key, and none is needed here")


async def _look(endpoint: Endpoint, watch: Watch) -> list[str] | Finding:
    """The models that the endpoint names, maybe none; or what is wrong. Never raises."""
    try:
        async with endpoint.client(watch) as client:
            return await _asked(endpoint, client)
    except (httpx2.HTTPError, AgentError, ValueError):
        return Finding(f"{endpoint.settings.told_address} cannot be reached", _UNREACHED)


async def _asked(endpoint: Endpoint, client: httpx2.AsyncClient) -> list[str] | Finding:
    settings = endpoint.settings
    base, turns, headers, query = settings.address, "chat/completions", {}, {}
    if settings.provider == "anthropic":
        base, turns = settings.address.removesuffix("/v1") + "/v1", "messages"
        headers, query = {"anthropic-version": ANTHROPIC_VERSION}, {"limit": "1000"}
    answer = await client.get(f"{base}/models", headers=headers, params=query)
    if answer.status_code not in (_OK, *_MISSING):
        return _refusal(answer, endpoint)
    listed = _ids(answer)
    if listed or (listed is not None and settings.provider == "ollama"):  # which tells all it has
        return listed
    place = await client.post(f"{base}/{turns}", headers=headers, json={"model": settings.model})
    return _place(place, f"{settings.told_address}/…/{turns}", endpoint)


def _place(answer: httpx2.Response, url: str, endpoint: Endpoint) -> list[str] | Finding:
    """No models that could be named where ``url``, as it is told, takes turns; or what is wrong."""
    status = answer.status_code
    if status in _MISSING or not isinstance(_json(answer), dict):
        return Finding(_NOWHERE.format(url=url, status=status), _ADDRESS)
    return _refusal(answer, endpoint) if status in (401, 403) or status >= 500 else []


def _refusal(answer: httpx2.Response, endpoint: Endpoint) -> Finding:
    address, status = endpoint.settings.told_address, answer.status_code
    if status in (401, 403):
        says = "refuses the key" if endpoint.has_key else "wants a key"
        return Finding(f"{address} {says} ({status})", _KEY.format(profile=endpoint.profile))
    return Finding(f"{address} answers {status}", "mend base_url, or try again later")


def _ids(answer: httpx2.Response) -> list[str] | None:
    """The names in a list of models; None for what is no such list."""
    body = _json(answer)
    if answer.status_code != _OK or not isinstance(body, dict) or "data" not in body:
        return None
    items = body["data"] or []
    ids = [item.get("id") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [clean(one)[:200] for one in ids if isinstance(one, str)]


def _json(answer: httpx2.Response) -> object:
    """What it holds; None for what is no JSON."""
    try:
        return answer.json()
    except ValueError:
        return None


def _model(name: str, listed: Sequence[str], provider: str) -> Finding:
    if not listed and provider != "ollama":
        return Finding(_UNLISTED.format(model=name))
    if name in listed or f"{name}:latest" in listed:
        return Finding(f"the model {name} is there")
    if provider == "llamacpp":  # answers with its one model, whatever it is called
        return Finding(f"the server has one model, {listed[0]}, and takes {name} for it")
    near = get_close_matches(name, listed, _SHOWN, 0.3) or sorted(listed)[:_SHOWN]
    cures = [f"set another model, such as {', '.join(near)}"] if near else []
    cures += [f"fetch it: ollama pull {name}"] if provider == "ollama" else []
    return Finding(f"there is no model {name}", "; or ".join(cures))
