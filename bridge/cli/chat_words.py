"""What the chat says itself, in English and Chinese, by the terminal's locale."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from bridge.errors import BridgeError


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
    FILE_MISSING = "file_missing"
    FILE_DENIED = "file_denied"
    FILE_UNREAD = "file_unread"
    FILE_NAME = "file_name"
    FILE_UTF8 = "file_utf8"
    FILE_IRREGULAR = "file_irregular"
    FILE_LARGE = "file_large"
    FILE_QUOTE = "file_quote"


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
    Word.FILE_MISSING: "{name}: No such file or directory",
    Word.FILE_DENIED: "{name}: Permission denied",
    Word.FILE_UNREAD: "{name}: {reason}",
    Word.FILE_NAME: "{name} cannot be a file's name",
    Word.FILE_UTF8: "a file's name is not UTF-8: rename it",
    Word.FILE_IRREGULAR: "{name} is no regular file",
    Word.FILE_LARGE: "{name} has {size}, and the account takes {most} at most: "
    "choose a smaller one, or raise its owner_max_mib",
    Word.FILE_QUOTE: "a quote has no end: close it, or write a \\ before it",
}
_ZH = {
    Word.HELLO: "Turnbridge · {account} · {conversation} · /help 查看帮助",
    Word.HELP: """\
输入文字，按回车发送。行末加 \\，或用 \"\"\" 括起来，可以写多行；粘贴多行也可以。

/file 路径 ...    随下一条消息发送文件；Tab 补全，也可以把文件拖进来
/stop             停止正在进行的一轮；Ctrl-C 也可以
/history [N]      之前的对话
/status           守护进程和各账号的状态
/新会话（/new）   从头开始，忘掉这里之前的内容
/智能体（/agent）、/模型（/model）、/模式（/mode）[名称]
                  由谁回答、怎样工作；单独输入会列出可选项
/目录（/dir）[目录]
                  智能体在哪里工作
/压缩（/compact） 把之前的对话压缩成摘要
/批准（/approve）、/拒绝（/deny）
                  被问到能否使用工具时，同意或拒绝
/quit             离开；Ctrl-D 也可以。之后的回答会等着你

用中文写的命令，答复也是中文；账号设为 language = "zh"，答复就总是中文。
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
    Word.FILE_MISSING: "{name}：没有这个文件或目录",
    Word.FILE_DENIED: "{name}：没有权限",
    Word.FILE_UNREAD: "{name}：{reason}",
    Word.FILE_NAME: "{name} 不能作为文件名",
    Word.FILE_UTF8: "文件名不是 UTF-8 编码，请重命名",
    Word.FILE_IRREGULAR: "{name} 不是普通文件",
    Word.FILE_LARGE: "{name} 有 {size}，账号最多接收 {most}：请换小一点的文件，或调大账号的 owner_max_mib",
    Word.FILE_QUOTE: "引号没有结束：请补上，或在它前面写 \\",
}


class Words:
    """The texts of one language."""

    def __init__(self, chinese: bool) -> None:
        self._texts = _ZH if chinese else _EN

    def say(self, word: Word, **values: object) -> str:
        return self._texts[word].format(**values) if values else self._texts[word]

    def told(self, error: BridgeError) -> str:
        """What ``error`` says: in this language, where it is one of ours."""
        return self.say(error.word, **error.values) if isinstance(error, WordError) else str(error)


class WordError(BridgeError):
    """One that a chat tells in the person's language; its text is the English one."""

    def __init__(self, word: Word, **values: object) -> None:
        super().__init__(Words(chinese=False).say(word, **values))
        self.word, self.values = word, values


def words_for(environ: Mapping[str, str]) -> Words:
    """Of the locale that messages are in: Chinese, or else English."""
    named = (environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return Words((next(filter(None, named), "")).lower().startswith("zh"))
