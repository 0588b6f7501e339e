"""A small MCP server without the SDK, so that it starts at once: its tools stand in the file NOTES.tools.

A name there that begins with ``die`` ends it when it is called, one with ``wait`` never answers.
"""

import json
import os
import sys

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        info = {"name": "simple", "version": "1"}
        answer["result"] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    elif asked["method"] == "tools/list":
        with open(os.environ["NOTES"] + ".tools") as file:
            names = file.read().split()
        if names == ["refuse"]:
            answer["error"] = {"code": -32603, "message": "no"}
        else:
            answer["result"] = {
                "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            }
    elif asked["method"] == "tools/call":
        name = asked["params"]["name"]
        if name.startswith("die"):
            sys.exit(4)
        if name.startswith("wait"):
            token = asked["params"]["_meta"]["progressToken"]
            shown = {"progressToken": token, "progress": 1, "total": 4, "message": "on it"}
            told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": shown}
            print(json.dumps(told), flush=True)
            continue
        answer["result"] = {"content": [{"type": "text", "text": f"did {name}"}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
