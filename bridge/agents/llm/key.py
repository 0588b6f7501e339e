"""The key of an llm profile: from the environment, or from a private file."""

from collections.abc import Mapping

from bridge.accounts import saved_secrets
from bridge.agents.contract import AgentPlace
from bridge.agents.llm.settings import LlmSettings, is_near
from bridge.errors import ConfigError
from bridge.logs import register_secret


def find_key(settings: LlmSettings, place: AgentPlace, environ: Mapping[str, str]) -> str:
    """The profile's key, "" where it needs none; no log shows it from now on. Reads a file, so blocking.

    The variable that the profile names comes first, then ``<home>/credentials/agents/<profile>.json``, then
    the variable that the provider's key is usually in.

    Raises:
        ConfigError: there is none where one is needed; the file is none of ours; or the key would travel
            openly to another network.
    """
    key = _named(settings, place, environ) or _saved(place) or environ.get(settings.usual_env, "").strip()
    register_secret(key)
    if not key and settings.usual_env:
        raise ConfigError(
            f"[agents.{place.name}] has no key: set the variable {settings.usual_env} before the start, "
            f'or put {{"api_key": "..."}} into {place.home.credentials("agents", place.name)} (mode 0600)'
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"the key of [agents.{place.name}] has characters that no key has: copy it again")
    if key and settings.address.startswith("http:") and not is_near(settings.address):
        raise ConfigError(f"[agents.{place.name}] would send its key openly: use an https address")
    return key


def _named(settings: LlmSettings, place: AgentPlace, environ: Mapping[str, str]) -> str:
    name = settings.api_key.env
    if name and not environ.get(name, "").strip():
        raise ConfigError(
            f"[agents.{place.name}] api_key: the environment has no {name}: set it before the start"
        )
    return environ[name].strip() if name else ""


def _saved(place: AgentPlace) -> str:
    path = place.home.credentials("agents", place.name)
    if not path.exists():
        return ""
    key = saved_secrets(path).get("api_key")
    if not isinstance(key, str) or not key.strip():
        raise ConfigError(f'{path} holds no key: write {{"api_key": "..."}}')
    return key.strip()
