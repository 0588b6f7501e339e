"""A real MCP server over standard input and output, written with the SDK's own server side, with faults.

``python stdio_server.py FAULT``; without one it is well.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
