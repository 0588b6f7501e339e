"""An agent that speaks the protocol by hand, and breaks it as its prompt says. A program of its own.

What it is asked and told is appended to the file ``LOG``, line by line, as JSON. ``FAULT`` names what goes
wrong before any prompt. A prompt's words are done one after the other; see ``Words``. Sessions are kept in
the folder ``STATE``.
"""

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

FAULT = os.environ.get("FAULT", "")
STATE = os.environ.get("STATE", "")
CAPABILITIES: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "embeddedContext": True},
}
if "CAPABILITIES" in os.environ:
    CAPABILITIES = json.loads(os.environ["CAPABILITIES"])
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "slowly", "name": "Slowly", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
BANNER = b"""npm warn

{"half":
[1]
7
{"id":true,"result":1}
{"id":[1],"result":1}
{"id":9.5,"result":1}
{"id":0,"error":"x"}
{"method":7}
{"id":77,"result":"of nobody"}
"""
MODELS = {"availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "big", "name": "Big"}],
          "currentModelId": "small"}  # fmt: skip
MODES = {
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}],
    "currentModeId": "ask",
}


def note(**event: Any) -> None:
    if path := os.environ.get("LOG"):
        with open(path, "a") as log:
            log.write(json.dumps(event) + "\n")


class RefusedError(Exception):
    def __init__(self, code: int, message: str = "no") -> None:
        super().__init__(message)
        self.code = code


class Agent:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.answers: dict[int, Any] = {}
        self.arrived = threading.Condition()
        self.cancelled: set[str] = set()
        self.asked = 1000

    def send(self, message: dict[str, Any]) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        with self.lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def update(self, session: str, what: str, /, **fields: Any) -> None:
        self.send(
            {
                "method": "session/update",
                "params": {"sessionId": session, "update": {"sessionUpdate": what, **fields}},
            }
        )

    def say(self, session: str, text: str) -> None:
        self.update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """A request to the client; its result."""
        self.asked += 1
        number = self.asked
        self.send({"id": number, "method": method, "params": params})
        with self.arrived:
            self.arrived.wait_for(lambda: number in self.answers)
            answer = self.answers.pop(number)
        note(answer=answer.get("result", answer.get("error")), to=method)
        return answer.get("result") or {}

    def permission(self, session: str, call: str, **fields: Any) -> str:
        asked = {"sessionId": session, "toolCall": {"toolCallId": call, **fields}, "options": OPTIONS}
        outcome = self.ask("session/request_permission", asked).get("outcome", {})
        return str(outcome.get("optionId", outcome.get("outcome")))

    def run(self) -> None:
        if FAULT == "exit":
            print("Error: cannot read the settings", file=sys.stderr)
            raise SystemExit(3)
        if FAULT == "garbage":
            self.raw(b"hello\n" * 2000)
        if FAULT == "banner":
            self.raw(BANNER)
        if FAULT == "flood":
            threading.Thread(target=lambda: sys.stderr.write("x" * 5_000_000), daemon=True).start()
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                with self.arrived:
                    self.answers[message["id"]] = message
                    self.arrived.notify_all()
                continue
            note(method=message["method"], params=message.get("params"))
            threading.Thread(target=self.handle, args=(message,), daemon=True).start()

    def handle(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params") or {}
        if "id" not in message:
            if method == "session/cancel":
                self.cancelled.add(params["sessionId"])
            return
        try:
            result = getattr(self, method.replace("/", "_"))(params)
        except RefusedError as error:
            self.send({"id": message["id"], "error": {"code": error.code, "message": str(error)}})
        else:
            self.send({"id": message["id"], "result": result})

    def initialize(self, params: dict[str, Any]) -> Any:
        if FAULT == "mute":
            time.sleep(3600)
        if FAULT == "refuse":
            raise RefusedError(-32603, "no licence")
        if FAULT == "nonsense":
            return {"protocolVersion": "new"}
        version = 2 if FAULT == "version" else 1
        return {"protocolVersion": version, "agentCapabilities": CAPABILITIES,
                "agentInfo": {"name": "scripted", "version": "1.0"}}  # fmt: skip

    def session_new(self, params: dict[str, Any]) -> Any:
        if FAULT == "auth":
            raise RefusedError(-32000, "Authentication required")
        if FAULT == "no-session":
            time.sleep(3600)
        if FAULT == "no-id":
            return {"sessionId": ""}
        session = f"s-{uuid.uuid4().hex[:8]}"
        open(os.path.join(STATE, session), "w").close() if STATE else None
        return {"sessionId": session, "models": MODELS, "modes": MODES}

    def session_load(self, params: dict[str, Any]) -> Any:
        session = params["sessionId"]
        if FAULT.startswith("load"):
            raise RefusedError(int(FAULT.removeprefix("load")), "no conversation found")
        if STATE and not os.path.exists(os.path.join(STATE, session)):
            raise RefusedError(-32002, "unknown")
        self.say(session, "what was said in the past")
        return {"models": MODELS}

    session_resume = session_load

    def session_close(self, params: dict[str, Any]) -> Any:
        return {}

    def session_set_mode(self, params: dict[str, Any]) -> Any:
        return {}

    def session_set_model(self, params: dict[str, Any]) -> Any:
        if FAULT == "model":
            raise RefusedError(-32603, "not in your plan")
        return {}

    def session_set_config_option(self, params: dict[str, Any]) -> Any:
        return {"configOptions": []}

    def session_prompt(self, params: dict[str, Any]) -> Any:
        session = params["sessionId"]
        self.cancelled.discard(session)
        text = next((one["text"] for one in params["prompt"] if one["type"] == "text"), "")
        stop = "end_turn"
        for word in text.split("[Now:]")[-1].split():
            name, _, value = word.partition("=")
            act = getattr(Words, name.replace("-", "_"), None)
            if act is None:
                self.say(session, f"{word} ")
            else:
                stop = act(self, session, value) or stop
        return {"stopReason": stop, "usage": {"totalTokens": 30, "inputTokens": 10, "outputTokens": 20}}


class Words:
    """What a prompt's words do; each may return a reason to stop."""

    @staticmethod
    def shell(agent: Agent, session: str, value: str) -> None:
        """Ask, then run, as most agents do."""
        agent.update(session, "tool_call", toolCallId="c1", title="Run it", kind="execute", status="pending")
        chosen = agent.permission(session, "c1", rawInput={"command": value or "ls"})
        if chosen in ("once", "slowly"):
            output = {"type": "content", "content": {"type": "text", "text": "one\n"}}
            agent.update(session, "tool_call_update", toolCallId="c1", status="in_progress", content=[output])
            agent.update(
                session, "tool_call_update", toolCallId="c1", status="completed", rawOutput="one\ntwo"
            )
        else:
            agent.update(session, "tool_call_update", toolCallId="c1", status="failed")
        agent.say(session, f"{chosen} ")

    @staticmethod
    def unasked(agent: Agent, session: str, value: str) -> None:
        agent.update(session, "tool_call", toolCallId="u1", title="edit", kind="edit", status="in_progress",
                     locations=[{"path": "/w/a.txt"}])  # fmt: skip
        diff = {"type": "diff", "path": "/w/a.txt", "oldText": "a", "newText": "b"}
        agent.update(session, "tool_call_update", toolCallId="u1", status="completed", content=[diff])

    @staticmethod
    def unknown(agent: Agent, session: str, value: str) -> None:
        """A question about a call that was never told of."""
        agent.say(session, agent.permission(session, "never-told", title="Secret thing"))

    @staticmethod
    def twice(agent: Agent, session: str, value: str) -> None:
        """A call that runs is asked about, and once more."""
        agent.update(session, "tool_call", toolCallId="t1", title="read", kind="read", status="in_progress")
        for _ in range(2):
            agent.say(session, agent.permission(session, "t1") + " ")
        agent.update(session, "tool_call_update", toolCallId="t1", status="completed")

    @staticmethod
    def both(agent: Agent, session: str, value: str) -> None:
        """Two questions about one call at the same time."""
        chosen: list[str] = []
        asks = [
            threading.Thread(target=lambda: chosen.append(agent.permission(session, "b1"))) for _ in range(2)
        ]
        for one in asks:
            one.start()
        for one in asks:
            one.join()
        agent.say(session, " ".join(chosen))

    @staticmethod
    def gives_up(agent: Agent, session: str, value: str) -> None:
        """It asks, and goes on without the answer."""
        threading.Thread(target=lambda: agent.permission(session, "g1"), daemon=True).start()
        time.sleep(0.05)
        agent.update(session, "tool_call_update", toolCallId="g1", status="failed")
        agent.say(session, "gave up")

    @staticmethod
    def defies(agent: Agent, session: str, value: str) -> None:
        """It does what was denied."""
        agent.permission(session, "d1", title="rm", kind="execute")
        agent.update(session, "tool_call_update", toolCallId="d1", status="in_progress")
        agent.update(session, "tool_call_update", toolCallId="d1", status="completed", rawOutput={"done": 1})

    @staticmethod
    def plan(agent: Agent, session: str, value: str) -> None:
        for status in ("pending", "completed"):
            agent.update(
                session, "plan", entries=[{"content": "think", "priority": "high", "status": status}]
            )

    @staticmethod
    def think(agent: Agent, session: str, value: str) -> None:
        agent.update(session, "agent_thought_chunk", content={"type": "text", "text": "secretly"})

    @staticmethod
    def link(agent: Agent, session: str, value: str) -> None:
        agent.update(session, "agent_message_chunk",
                     content={"type": "resource_link", "name": "a", "uri": "file:///a"})  # fmt: skip
        agent.update(
            session, "agent_message_chunk", content={"type": "image", "data": "", "mimeType": "image/png"}
        )

    @staticmethod
    def odd(agent: Agent, session: str, value: str) -> None:
        """Everything that nobody asked for."""
        agent.update("s-of-nobody", "agent_message_chunk", content={"type": "text", "text": "stray"})
        agent.update(session, "nothing_known", a=1)
        agent.update(session, "current_mode_update", currentModeId="plan")
        agent.update(session, "usage_update", used=1, size=2, cost={"amount": 0.0125, "currency": "USD"})
        agent.send({"method": "session/update", "params": 7})
        agent.send({"method": "$/odd", "params": {}})
        note(odd=agent.ask("fs/read_text_file", {"sessionId": session, "path": "/etc/passwd"}))
        agent.ask("session/request_permission", {"sessionId": session})
        asked = {"sessionId": "s-of-nobody", "toolCall": {"toolCallId": "x"}, "options": OPTIONS}
        agent.ask("session/request_permission", asked)

    @staticmethod
    def huge(agent: Agent, session: str, value: str) -> None:
        agent.raw(b'{"jsonrpc":"2.0","method":"x","params":"' + b"x" * 9_000_000 + b'"}\n')

    @staticmethod
    def many(agent: Agent, session: str, value: str) -> None:
        for _ in range(int(value)):
            agent.say(session, "x")

    @staticmethod
    def floods(agent: Agent, session: str, value: str) -> None:
        """It asks about a call, and tells of it on and on."""
        threading.Thread(target=lambda: agent.permission(session, "f1"), daemon=True).start()
        time.sleep(0.05)
        for _ in range(int(value)):
            agent.update(session, "tool_call_update", toolCallId="f1", status="in_progress")

    @staticmethod
    def pending(agent: Agent, session: str, value: str) -> None:
        """Calls that never come to anything."""
        for number in range(int(value)):
            agent.update(session, "tool_call", toolCallId=f"p{number}", title="x", status="pending")

    @staticmethod
    def silent(agent: Agent, session: str, value: str) -> None:
        time.sleep(3600)

    @staticmethod
    def runs(agent: Agent, session: str, value: str) -> None:
        """A call that runs silently for a while."""
        agent.update(
            session, "tool_call", toolCallId="r1", title="build", kind="execute", status="in_progress"
        )
        time.sleep(float(value))
        agent.update(session, "tool_call_update", toolCallId="r1", status="completed")

    @staticmethod
    def wait(agent: Agent, session: str, value: str) -> str | None:
        """Until it is cancelled."""
        agent.say(session, "waiting")
        while session not in agent.cancelled:
            time.sleep(0.005)
        agent.say(session, "cancelled")
        return "cancelled"

    @staticmethod
    def deaf(agent: Agent, session: str, value: str) -> None:
        """Not even a cancel ends it. It has a child, which would outlive it."""
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True
        )
        note(pids=[os.getpid(), child.pid])
        agent.say(session, "deaf")
        time.sleep(3600)

    @staticmethod
    def die(agent: Agent, session: str, value: str) -> None:
        os._exit(9)

    @staticmethod
    def fail(agent: Agent, session: str, value: str) -> None:
        raise RefusedError(int(value), "model trouble")

    @staticmethod
    def nonsense(agent: Agent, session: str, value: str) -> str:
        return "no reason known"

    @staticmethod
    def stop(agent: Agent, session: str, value: str) -> str:
        return value

    @staticmethod
    def after(agent: Agent, session: str, value: str) -> None:
        """News, and a second answer, after the end."""

        def late() -> None:
            time.sleep(0.05)
            agent.say(session, "too late")
            agent.send({"id": 2, "result": {"stopReason": "end_turn"}})
            agent.permission(session, "late")

        threading.Thread(target=late, daemon=True).start()

    @staticmethod
    def tool(agent: Agent, session: str, value: str) -> None:
        """Use the server of tools that the session was given, through its own program."""
        with open(os.environ["LOG"]) as log:
            told = [json.loads(line) for line in log]
        new = [one for one in told if one.get("method") in ("session/new", "session/load")][-1]
        server = next(one for one in new["params"]["mcpServers"] if one["name"] == "turnbridge")
        name, _, path = value.partition(":")
        answer = use(server, name, {"path": path})
        agent.say(session, f"isError={answer['result']['isError']}")


def use(server: dict[str, Any], name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool of a server that the session was given, through its own program; the answer."""
    env = {**os.environ, **{one["name"]: one["value"] for one in server["env"]}}
    answer: dict[str, Any] = {}
    with subprocess.Popen([server["command"], *server["args"]], stdin=-1, stdout=-1, env=env) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for number, (method, params) in enumerate(
            [("initialize", {"protocolVersion": "2025-06-18"}), ("tools/list", {}),
             ("tools/call", {"name": name, "arguments": arguments})]
        ):  # fmt: skip
            line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            program.stdin.write(line.encode() + b"\n")
            program.stdin.flush()
            answer = json.loads(program.stdout.readline())
            note(tool=answer)
        program.stdin.close()
    return answer


if __name__ == "__main__":
    Agent().run()
