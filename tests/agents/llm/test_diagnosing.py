"""Whether a profile works, without spending."""

import asyncio
import json
from typing import Any

import pytest

from bridge.agents.contract import Finding
from bridge.channel.testing.clock import until
from tests.agents.llm.playing import playing
from tests.agents.llm.server import JSON, ModelServer, Reply, Stall, refuses


def listing(*names: Any) -> Reply:
    return Reply([json.dumps({"data": [{"id": name} for name in names]}).encode()], headers=JSON)


INCOMPLETE = refuses(400, {"message": "you must provide messages", "code": None})


async def found(listed: Reply, *more: Reply, **given: Any) -> list[Finding]:
    """What is found at an endpoint that answers the question for its models with ``listed``.

    ``more`` answers a request without messages, where there is one.
    """
    async with playing(*more, **given) as player:
        player.server.models = listed
        findings = list(await player.agent.diagnose())
        asked = [(one.path, one.body) for one in player.server.asked]
    sent = [("/v1/chat/completions", {"model": given.get("model", "small")})] * len(more)
    assert asked == [("/v1/models", None), *sent]
    return findings


async def test_all_is_well() -> None:
    findings = await found(listing("small", "large"), models=("large",))
    assert [one.cure for one in findings] == [""] * 4
    said = [one.text for one in findings]
    assert said[0] == "there is a key"
    assert said[2:] == ["the model small is there", "the model large is there"]


async def test_no_key_where_none_is_needed_is_well() -> None:
    (key, *_) = await found(listing("small"), key="")
    assert key == Finding("there is no key, and none is needed here")


async def test_anthropic_is_asked_as_it_wants_to_be() -> None:
    async with playing(provider="anthropic") as player:
        findings = await player.agent.diagnose()
        (asked,) = player.server.asked
    assert findings[-1] == Finding("the model small is there")
    assert asked.path == "/v1/models?limit=1000"
    assert asked.headers["x-api-key"]
    assert asked.headers["anthropic-version"]


async def test_a_model_that_is_not_there_is_told_with_others_like_it() -> None:
    *_, model = await found(listing("gpt-5", "gpt-5-mini", "tts"), model="gpt-5-minni")
    assert model.text == "there is no model gpt-5-minni"
    assert model.cure.startswith("set another model, such as gpt-5-mini, ")


async def test_nothing_like_it_shows_what_there_is() -> None:
    *_, model = await found(listing(*"zyxwvu"), model="1234567")
    assert model.cure == "set another model, such as u, v, w, x, y"


async def test_ollama_has_names_of_its_own() -> None:
    *_, model = await found(listing("small:latest"), provider="ollama")
    assert model == Finding("the model small is there")
    *_, model = await found(listing("other"), provider="ollama")
    assert model.cure.endswith("; or fetch it: ollama pull small")


async def test_llama_cpp_takes_every_name_for_its_own_model() -> None:
    *_, model = await found(listing("/m/gemma.gguf"), provider="llamacpp")
    assert model == Finding("the server has one model, /m/gemma.gguf, and takes small for it")


@pytest.mark.parametrize(
    "models",
    [
        refuses(404, "none"),
        Reply([b"<html>"], headers=JSON),
        Reply([b'{"data": {"id": "x"}}'], headers=JSON),
        Reply([b"[1]"], headers=JSON),
        listing(None, 5),
        listing(),
    ],
)
async def test_an_endpoint_that_lists_nothing_and_takes_turns_may_have_the_model(models: Reply) -> None:
    *_, model = await found(models, INCOMPLETE)
    assert model.cure == ""
    assert model.text == "it lists no models, so whether small is right shows with the first message"


@pytest.mark.parametrize(
    "elsewhere",
    [
        refuses(404, "Not Found"),
        refuses(405, "Method Not Allowed"),
        Reply([b"<html>Welcome</html>"], headers={"content-type": "text/html"}),
    ],
)
async def test_an_address_without_its_v1_is_told_as_turns_go_nowhere_there(elsewhere: Reply) -> None:
    *_, nowhere = await found(refuses(404, "Not Found"), elsewhere)
    assert nowhere.text.endswith(
        f"/chat/completions answers {elsewhere.status} as no model's server does, "
        "so no message will be answered"
    )
    assert nowhere.cure.startswith("mend base_url: most end in /v1; or the name of the model")


async def test_a_website_in_place_of_the_endpoint_is_told() -> None:
    page = Reply([b"<html>Models</html>"], headers={"content-type": "text/html"})
    *_, nowhere = await found(page, page)
    assert nowhere.cure.startswith("mend base_url")


async def test_anthropic_without_a_list_is_asked_where_its_turns_are() -> None:
    async with playing(refuses(404, "none"), provider="anthropic") as player:
        player.server.models = refuses(404, "none")
        *_, nowhere = await player.agent.diagnose()
        assert player.server.asked[-1].path == "/v1/messages"
        assert player.server.asked[-1].headers["anthropic-version"]
    assert "/…/messages answers 404" in nowhere.text


async def test_a_key_that_is_asked_for_with_turns_alone_is_told() -> None:
    *_, refused = await found(refuses(404, "none"), refuses(401, "key"))
    assert "refuses the key (401)" in refused.text


async def test_an_endpoint_that_fails_with_turns_alone_is_told() -> None:
    *_, odd = await found(refuses(404, "none"), refuses(500, "x"))
    assert odd.text.endswith("answers 500")


@pytest.mark.parametrize("body", [b'{"object": "list", "data": null}', b'{"data": []}'])
async def test_an_ollama_without_a_model_is_told_how_to_get_one(body: bytes) -> None:
    *_, model = await found(Reply([body], headers=JSON), provider="ollama")
    assert model == Finding("there is no model small", "fetch it: ollama pull small")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_refused_is_told(status: int) -> None:
    _, refused = await found(refuses(status, {"message": "sk-very-secret-0123456789"}))
    assert f"refuses the key ({status})" in refused.text
    assert refused.cure.startswith("put a good one into credentials/agents/fast.json")


async def test_an_endpoint_that_wants_a_key_is_told_where_none_is_given() -> None:
    _, wants = await found(refuses(401, "none"), key="")
    assert "wants a key (401)" in wants.text


async def test_another_answer_is_told() -> None:
    _, odd = await found(refuses(500, "x"))
    assert odd.text.endswith("answers 500")


async def test_an_endpoint_that_is_not_there_is_told() -> None:
    async with playing(base_url="http://127.0.0.1:9/v1") as player:
        _, gone = await player.agent.diagnose()
    assert gone == Finding(
        "http://127.0.0.1:9 cannot be reached",
        "see whether it runs, and whether base_url and the network are right",
    )


async def test_a_list_over_its_limit_is_no_list() -> None:
    _, odd = await found(Reply([b" " * 1_048_576] * 5, headers=JSON))
    assert odd.text.endswith("cannot be reached")


async def test_an_endpoint_that_keeps_silent_is_left_in_time() -> None:
    async with playing() as player:
        player.server.models = Reply([Stall()])
        async with asyncio.TaskGroup() as tasks:
            diagnosing = tasks.create_task(_findings(player.agent))
            await until(lambda: player.server.stalled == 1)
            await player.clock.advance(15)
            _, silent = await diagnosing
    assert "did not answer within 15 s" in silent.text


async def _findings(agent: Any) -> list[Finding]:
    return list(await agent.diagnose())


@pytest.mark.parametrize("status", [200, 401, 404, 500])
async def test_a_secret_in_the_path_of_the_address_is_not_told(status: int) -> None:
    reply = Reply([b"{}"], status=status, headers=JSON)
    async with (
        ModelServer([reply]).serving() as server,
        playing(base_url=f"{server.address}/s3cr3t/v1") as player,
    ):
        server.models = reply
        found = await player.agent.diagnose()
        assert "/s3cr3t/v1/" in server.asked[-1].path
    assert server.address in repr(found)
    assert "s3cr3t" not in repr(found)
