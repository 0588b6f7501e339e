"""What the chat says itself, in English and Chinese, by the terminal's locale."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Word(StrEnum):
    HELLO = "hello"
    HELP = "help"
    AWAY = "away"
    WORKING = "working"
    STOPPING = "stopping"
    ASKED = "asked"
    KEYS = "keys"
    QUEUED = "queued"
    STOPPED = "stopped"
    ALL_STOPPED = "all_stopped"
    LEFT = "left"
    UNSENT = "unsent"
    NOTHING = "nothing"
    BUSY = "busy"
    GONE = "gone"
    BACK = "back"
    LEAVE = "leave"
    OFFER = "offer"
    ATTACHED = "attached"
    NO_FILE = "no_file"
    NO_HISTORY = "no_history"
    HISTORY = "history"
    IDLE = "idle"
    UNTIL_LATER = "until_later"


_EN = {
    Word.HELLO: "Turnbridge · {account} · {conversation} · /help",
    Word.HELP: """\
Write, and press Enter. For several lines: paste them, end each with a \\, or put \"\"\" around them.

/file PATH ...    send files with your next message; Tab completes, or drag a file in
/stop             stop what is running; so does Ctrl-C
/history [N]      what was said before
/status           how the daemon and its accounts are
/new              start afresh: the agent forgets what was said here
/agent, /model, /mode [NAME]
                  who answers, and how; alone they list what there is
/dir [FOLDER]     where the agent works
/compact          have what was said summed up
/approve, /deny   your answer when you are asked whether a tool may run
/quit             leave; so does Ctrl-D. What is answered later waits for you

Any other line goes to the agent, also one with a /; //file sends /file.
The arrow keys and Ctrl-R find what you wrote before.""",
    Word.AWAY: "While you were away:",
    Word.WORKING: "working",
    Word.STOPPING: "stopping",
    Word.ASKED: "waiting for your answer",
    Word.KEYS: "Ctrl-C stops",
    Word.QUEUED: "{count} waiting",
    Word.STOPPED: "Stopped.",
    Word.ALL_STOPPED: "Stopped, all {count} messages.",
    Word.LEFT: "It is being stopped, and nothing more comes of it.",
    Word.UNSENT: "Not sent.",
    Word.NOTHING: "It ended without an answer.",
    Word.BUSY: "Too many messages are waiting: send this again in a little while.",
    Word.GONE: "The daemon is gone. Waiting for it ...",
    Word.BACK: "It is back.",
    Word.LEAVE: "Ctrl-C once more, or Ctrl-D, leaves.",
    Word.OFFER: "Send as a file? [Y/n] ",
    Word.ATTACHED: "goes with your next message; Enter alone sends it",
    Word.NO_FILE: "Name the files: /file PATH ...",
    Word.NO_HISTORY: "Nothing was said here yet.",
    Word.HISTORY: "How many lines? /history, or /history N with N from 1 on",
    Word.IDLE: "Nothing is running.",
    Word.UNTIL_LATER: "The answer waits for you. To see it: {again}",
}
_ZH = {
    Word.HELLO: "Turnbridge · {account} · {conversation} · /help 查看帮助",
    Word.HELP: """\
输入文字，按回车发送。行末加 \\，或用 \"\"\" 括起来，可以写多行；粘贴多行也可以。

/file 路径 ...    随下一条消息发送文件；Tab 补全，也可以把文件拖进来
/stop             停止正在进行的一轮；Ctrl-C 也可以
/history [N]      之前的对话
/status           守护进程和各账号的状态
/new              从头开始，忘掉这里之前的内容
/agent、/model、/mode [名称]
                  由谁回答、怎样工作；单独输入会列出可选项
/dir [目录]       智能体在哪里工作
/compact          把之前的对话压缩成摘要
/approve、/deny   被问到能否使用工具时，同意或拒绝
/quit             离开；Ctrl-D 也可以。之后的回答会等着你

其他内容都发给智能体，包括以 / 开头的；//file 会发送 /file。
方向键和 Ctrl-R 可以找回之前输入的内容。""",
    Word.AWAY: "你不在的时候：",
    Word.WORKING: "正在处理",
    Word.STOPPING: "正在停止",
    Word.ASKED: "等待你的回答",
    Word.KEYS: "Ctrl-C 停止",
    Word.QUEUED: "还有 {count} 条在等",
    Word.STOPPED: "已停止。",
    Word.ALL_STOPPED: "{count} 条消息都已停止。",
    Word.LEFT: "正在停止，不会再有回答。",
    Word.UNSENT: "没有发送。",
    Word.NOTHING: "结束了，没有回答。",
    Word.BUSY: "等待处理的消息太多，请稍后再发一次。",
    Word.GONE: "守护进程不见了，正在等它回来……",
    Word.BACK: "它回来了。",
    Word.LEAVE: "再按一次 Ctrl-C，或按 Ctrl-D 离开。",
    Word.OFFER: "作为文件发送？[Y/n] ",
    Word.ATTACHED: "随下一条消息发送；直接按回车单独发送",
    Word.NO_FILE: "请写出文件：/file 路径 ...",
    Word.NO_HISTORY: "这里还没有对话。",
    Word.HISTORY: "要看多少条？/history，或 /history N，N 从 1 起",
    Word.IDLE: "现在没有在运行的。",
    Word.UNTIL_LATER: "回答会等着你，查看：{again}",
}


class Words:
    """The texts of one language."""

    def __init__(self, chinese: bool) -> None:
        self._texts = _ZH if chinese else _EN

    def say(self, word: Word, **values: object) -> str:
        return self._texts[word].format(**values) if values else self._texts[word]


def words_for(environ: Mapping[str, str]) -> Words:
    """Of the locale that messages are in: Chinese, or else English."""
    named = (environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return Words((next(filter(None, named), "")).lower().startswith("zh"))
