"""What the bridge itself says in a chat, in English and Chinese."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Literal


class Language(StrEnum):
    EN = "en"
    ZH = "zh"


class Text(StrEnum):
    BUSY = "busy"
    TOO_FAST = "too_fast"
    TOO_MANY_TODAY = "too_many_today"
    TOO_MUCH_TODAY = "too_much_today"
    USED_UP_TODAY = "used_up_today"
    ACCOUNT_USED_UP = "account_used_up"
    VOICE = "voice"
    BLANK = "blank"
    UNREADABLE_TYPE = "unreadable_type"
    UNREADABLE_SIZE = "unreadable_size"
    UNREADABLE_DOWNLOAD = "unreadable_download"
    UNREADABLE_DISK = "unreadable_disk"
    WORKING = "working"
    WORKING_ON = "working_on"
    WORKED = "worked"
    WORK_OVER = "work_over"
    FAILURE = "failure"
    SETUP = "setup"
    INTERRUPTED = "interrupted"
    MISSED = "missed"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    FILES_DROPPED = "files_dropped"
    FILE_REFUSED = "file_refused"
    REPEAT = "repeat"
    EARLIER = "earlier"
    LATEST = "latest"
    LATER = "later"
    MORE = "more"
    TO_EARLIER = "to_earlier"
    NEXT = "next"
    DISK_FULL = "disk_full"
    DISK_FREE = "disk_free"
    REPLACED = "replaced"
    HELP = "help"
    HELP_OWNER = "help_owner"
    HELP_TOOLS = "help_tools"
    AGENTS = "agents"
    MODELS = "models"
    MODES = "modes"
    FOLDERS = "folders"
    AGENT_CHOSEN = "agent_chosen"
    MODEL_CHOSEN = "model_chosen"
    MODE_CHOSEN = "mode_chosen"
    FOLDER_CHOSEN = "folder_chosen"
    FOLDER_UNKNOWN = "folder_unknown"
    CHOICE_NONE = "choice_none"
    CHOICE_UNKNOWN = "choice_unknown"
    CHOICE_PROBLEM = "choice_problem"
    CHOICE_REFUSED = "choice_refused"
    CHOICE_GONE = "choice_gone"
    COMPACTED = "compacted"
    COMPACT_NOTHING = "compact_nothing"
    COMPACT_CANNOT = "compact_cannot"
    STOPPED = "stopped"
    STOPPED_ALL = "stopped_all"
    NOTHING_RUNS = "nothing_runs"
    NEW_SESSION = "new_session"
    NEW_BUSY = "new_busy"
    RUNS = "runs"
    WAITS_FOR_YOU = "waits_for_you"
    WAITS_TOO = "waits_too"
    WAITS = "waits"
    QUEUED = "queued"
    MORE_WAIT = "more_wait"
    FILES = "files"
    ACCOUNT = "account"
    UNDELIVERED = "undelivered"
    UNPROVEN = "unproven"
    WHOAMI = "whoami"
    MAY_TOOLS = "may_tools"
    MAY_OWNER = "may_owner"
    MAY_HERE = "may_here"
    MAY_ASK = "may_ask"
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    STATE_DISABLED = "state_disabled"
    STATE_STARTING = "state_starting"
    STATE_CONNECTED = "state_connected"
    STATE_DISCONNECTED = "state_disconnected"
    STATE_BACKOFF = "state_backoff"
    STATE_STOPPING = "state_stopping"
    STATE_STOPPED = "state_stopped"
    STATE_FAILED = "state_failed"
    APPROVAL = "approval"
    APPROVAL_ANSWER = "approval_answer"
    APPROVAL_OPTIONS = "approval_options"
    APPROVAL_NUMBER = "approval_number"
    APPROVAL_GIVEN = "approval_given"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_LATE = "approval_late"
    APPROVAL_STALE = "approval_stale"
    APPROVAL_NONE = "approval_none"
    APPROVAL_WHICH = "approval_which"
    APPROVAL_UNCLEAR = "approval_unclear"
    APPROVAL_OWNER = "approval_owner"
    APPROVAL_CUT = "approval_cut"
    APPROVAL_ALLOW = "approval_allow"
    APPROVAL_REFUSE = "approval_refuse"
    DEAF = "deaf"
    PARKED = "parked"
    CONTACT_AGAIN = "contact_again"
    DEAF_MANY = "deaf_many"
    PARKED_MANY = "parked_many"
    CONTACT_AGAIN_MANY = "contact_again_many"
    CRASHED = "crashed"
    QUESTION = "question"
    QUESTION_YES = "question_yes"
    QUESTION_NO = "question_no"
    QUESTION_UNANSWERED = "question_unanswered"
    QUESTION_WITHDRAWN = "question_withdrawn"
    QUESTION_WHICH = "question_which"
    EDIT_NO_COMMAND = "edit_no_command"
    PAIRED = "paired"
    PAIRED_TOOLS = "paired_tools"
    PAIRED_NO_TOOLS = "paired_no_tools"
    PAIR_WRONG = "pair_wrong"
    PAIR_GUESSED = "pair_guessed"
    PAIR_OVER = "pair_over"
    PAIR_FAILED = "pair_failed"


_EN = {
    Text.BUSY: "I have too many messages waiting right now. Please send this again in a little while.",
    Text.TOO_FAST: "You are writing faster than I may take it in. Please wait a minute and send this again.",
    Text.TOO_MANY_TODAY: "You have asked as much as one person may in 24 hours. Please come back later.",
    Text.TOO_MUCH_TODAY: "You have used as much of me as one person may in 24 hours. Please come back later.",
    Text.USED_UP_TODAY: "I have used up what I may use in 24 hours. Please come back later.",
    Text.ACCOUNT_USED_UP: "{account} has reached {limit}: others are told to come back later, until 24 hours "
    "have passed since the first of it. You go on.",
    Text.VOICE: "I cannot listen to voice messages. Please write it as text.",
    Text.BLANK: "There is nothing in your message that I can read. Please write what you would like.",
    Text.UNREADABLE_TYPE: "I cannot open this kind of file from this chat, and there was no text with it.",
    Text.UNREADABLE_SIZE: "This file is too large for me (limit {limit} MB), and there was no text with it.",
    Text.UNREADABLE_DOWNLOAD: "I could not download this file. Please send it again.",
    Text.UNREADABLE_DISK: "I have no room for files right now. Please write it as text, or try again later.",
    Text.WORKING: "Working, {time} …",
    Text.WORKING_ON: "Working: {what}, {time} …",
    Text.WORKED: "Worked on this for {time}.",
    Text.WORK_OVER: "Not working on this any more.",
    Text.FAILURE: "Something went wrong, so I have no answer to this message. Please try again.",
    Text.SETUP: "I could not answer this: {cure}. If that does not help, turnbridge doctor on my machine "
    "tells more.",
    Text.INTERRUPTED: "I was restarted while working on this message and do not know how far I got. "
    "Please check before you send it again.",
    Text.MISSED: "I was away when you wrote the following, so I did not act on it. "
    "Please send again what still matters:",
    Text.EMPTY: "Done. There was nothing to say.",
    Text.TRUNCATED: "… (the answer was too long and ends here)",
    Text.FILES_DROPPED: "({count} file(s) could not be sent.)",
    Text.FILE_REFUSED: "{name} could not be sent in this chat.",
    Text.REPEAT: "(Sent again, because it is not known whether it arrived.)",
    Text.EARLIER: "— Earlier reply, not delivered at the time —",
    Text.LATEST: "— Reply to your latest message —",
    Text.LATER: "I am still working on this. Send 1 to get the answer.",
    Text.MORE: "(There is more: send 1 for the next part.)",
    Text.TO_EARLIER: "(To an earlier message:)",
    Text.NEXT: "(Your new message is being answered: send 1.)",
    Text.DISK_FULL: "My disk is nearly full: less than {percent} % of it is free. "
    "I take in no files until there is room again.",
    Text.DISK_FREE: "There is room on my disk again. I take in files as before.",
    Text.REPLACED: "Stopped: I go on with your newer message instead.",
    Text.HELP: "Write me anything. These commands are answered at once, also while I work:\n"
    "/stop – stop what I am doing here, and drop what waits\n"
    "/new – start afresh: I forget what was said here\n"
    "/status – how things stand\n"
    "/queue – what waits here\n"
    "/whoami – who you are to me\n"
    "/help – this list",
    Text.HELP_OWNER: "/approve [id] – allow what I asked you about\n/deny [id] – refuse it",
    Text.HELP_TOOLS: "In this chat you also choose who answers, in turn with your messages:\n"
    "/agent [name] – which agent\n"
    "/model [name] – its model\n"
    "/mode [name] – how it works\n"
    "/dir [folder] – where it works\n"
    "/compact – sum up what was said, to make room\n"
    "Alone they list what there is; default instead of a name is what is set.",
    Text.AGENTS: "Agents; now {current}:",
    Text.MODELS: "Models of {agent}; now {current}:",
    Text.MODES: "Modes of {agent}; now {current}:",
    Text.FOLDERS: "Folders; now {current}:",
    Text.AGENT_CHOSEN: "From your next message on {agent} answers here, with the model {model}.",
    Text.MODEL_CHOSEN: "From your next message on {agent} uses the model {model}.",
    Text.MODE_CHOSEN: "From your next message on the mode of {agent} is {mode}.",
    Text.FOLDER_CHOSEN: "From your next message on I work in {folder}.",
    Text.FOLDER_UNKNOWN: "There is no such folder, or I may not work there.",
    Text.CHOICE_NONE: "{agent} has nothing of that kind to choose from.",
    Text.CHOICE_UNKNOWN: "That is none of these. Nothing was changed.",
    Text.CHOICE_PROBLEM: "It cannot be used right now: {problem}",
    Text.CHOICE_REFUSED: "That could not be done: {problem}",
    Text.CHOICE_GONE: "The agent, model or folder that you chose here is not there any more, so I did not "
    "work on this message. What is set holds again: please send it again, or choose anew.",
    Text.COMPACTED: "Summed up what was said: about {before} tokens before, {after} now.",
    Text.COMPACT_NOTHING: "There is nothing here that would become shorter.",
    Text.COMPACT_CANNOT: "The agent here cannot sum up what was said. /new starts afresh.",
    Text.STOPPED: "Stopped.",
    Text.STOPPED_ALL: "Stopped. Dropped with it: {count} waiting message(s).",
    Text.NOTHING_RUNS: "Nothing runs or waits here.",
    Text.NEW_SESSION: "A new session: what was said here before is forgotten.",
    Text.NEW_BUSY: "I am still working here. Send /stop first, or wait for the answer; then send /new again.",
    Text.RUNS: "I have been working on your message for {time}.",
    Text.WAITS_FOR_YOU: "I wait for your yes or no: {ids}",
    Text.WAITS_TOO: "Waiting after it: {count} message(s).",
    Text.WAITS: "Waiting: {count} message(s).",
    Text.QUEUED: "Now, for {time}: {words}",
    Text.MORE_WAIT: "… and {count} more.",
    Text.FILES: "({count} file(s))",
    Text.ACCOUNT: "{account} is {state} (for {time}). Messages that wait or run, in all its chats: {count}.",
    Text.UNPROVEN: "Refused since the last message before this one: {count} request(s) that did not prove "
    "who sent them.",
    Text.UNDELIVERED: "Parts of replies that could not be delivered: {count}.",
    Text.WHOAMI: "On {platform} you are {sender}.",
    Text.MAY_TOOLS: "You are my owner, and I may use tools for you in this chat.",
    Text.MAY_OWNER: "You are my owner. I use no tools: that is not switched on in my settings.",
    Text.MAY_HERE: "You are my owner, but in a group I use no tools for anybody.",
    Text.MAY_ASK: "You may talk to me. I use no tools for you.",
    Text.SECONDS: "{count} s",
    Text.MINUTES: "{count} min",
    Text.HOURS: "{count} h",
    Text.STATE_DISABLED: "switched off",
    Text.STATE_STARTING: "starting",
    Text.STATE_CONNECTED: "connected",
    Text.STATE_DISCONNECTED: "not connected",
    Text.STATE_BACKOFF: "down, and about to be started again",
    Text.STATE_STOPPING: "stopping",
    Text.STATE_STOPPED: "stopped",
    Text.STATE_FAILED: "down until somebody mends it",
    Text.APPROVAL: "May I do this? ({id})\n\nTool: {tool}\nFolder: {folder}\n{arguments}\n"
    "{answers} Without an answer within {time} I do not do it.",
    Text.APPROVAL_ANSWER: "Answer yes or /approve {id} to allow it, no or /deny {id} to refuse.",
    Text.APPROVAL_OPTIONS: "Answer /approve {id} and the number of one, such as /approve {id} 1; "
    "yes and no take the first of their kind.",
    Text.APPROVAL_NUMBER: "That is none of the answers: for {id}, write /approve {id} and a number "
    "from 1 to {count}, or /deny {id}.",
    Text.APPROVAL_GIVEN: "Approved ({id}). I go on.",
    Text.APPROVAL_DENIED: "Refused ({id}). I do not do it.",
    Text.APPROVAL_LATE: "Nobody answered in time, so I did not do it ({id}).",
    Text.APPROVAL_STALE: "That question is no longer valid: it was answered, ran out of time, or its work "
    "has ended. Nothing was changed.",
    Text.APPROVAL_NONE: "Nothing waits for your approval in this chat.",
    Text.APPROVAL_WHICH: "Name the question that you mean, as it may be another one by now: {ids}",
    Text.APPROVAL_UNCLEAR: "A question is open here ({id}), and that could be meant otherwise, so it decides "
    "nothing. {answers}",
    Text.APPROVAL_OWNER: "Only my owner can answer that, in a direct chat with me.",
    Text.APPROVAL_CUT: "({bytes} bytes in between are not shown)",
    Text.APPROVAL_ALLOW: "Allow",
    Text.APPROVAL_REFUSE: "Refuse",
    Text.DEAF: "{account} has had no contact with its platform for 10 minutes, so nobody is heard there. "
    "It goes on trying. On its machine, turnbridge doctor looks for the cause.",
    Text.PARKED: "{account} has stopped and does not come back by itself: its platform or its "
    "settings refuse it. On its machine, turnbridge status says why, and turnbridge doctor how to mend it.",
    Text.CONTACT_AGAIN: "{account} has contact with its platform again.",
    Text.DEAF_MANY: "{count} accounts have had no contact with their platform for 10 minutes: {names} "
    "and others. They go on trying. On their machine, turnbridge doctor looks for the cause.",
    Text.PARKED_MANY: "{count} accounts have stopped and do not come back by themselves: {names} and others. "
    "On their machine, turnbridge status says why, and turnbridge doctor how to mend it.",
    Text.CONTACT_AGAIN_MANY: "{count} accounts have contact with their platform again: {names} and others.",
    Text.CRASHED: "I was not stopped properly the last time: a crash, a kill or a power cut. I am running "
    "again, and what was under way is answered or reported.",
    Text.QUESTION: "{question}\n\nPlease answer yes or no (within {time}).",
    Text.QUESTION_YES: "Noted: yes, to “{question}”.",
    Text.QUESTION_NO: "Noted: no, to “{question}”.",
    Text.QUESTION_UNANSWERED: "Nobody answered in time, so it is a no to “{question}”.",
    Text.QUESTION_WITHDRAWN: "Nobody waits for an answer any more to “{question}”.",
    Text.QUESTION_WHICH: "Two questions are open here, so I do not know which you mean. Please answer the "
    "one about a tool with /approve or /deny first, then the other with yes or no.",
    Text.EDIT_NO_COMMAND: "The message that you changed is dropped: it waited, and a change is no command. "
    "Please send {command} as a message of its own.",
    Text.PAIRED: "The code is right: you are being made the owner of this bot. From then on I answer you, "
    "and notices about me come here. {tools} Send /whoami to see that it is so.",
    Text.PAIRED_TOOLS: "In this chat I may also use tools for you, on the machine that I run on.",
    Text.PAIRED_NO_TOOLS: "I use no tools, also not for you, until that is switched on in my settings.",
    Text.PAIR_WRONG: "This code is not right. Please look at the terminal that shows it.",
    Text.PAIR_GUESSED: "This code is not right either, and too many were wrong: the code is no longer valid. "
    "Please have a new one shown in the terminal.",
    Text.PAIR_OVER: "This code is no longer valid. Please have a new one shown and send it in a direct chat.",
    Text.PAIR_FAILED: "You are not the owner: that could not be saved. The terminal with the code says why.",
}
_ZH = {
    Text.BUSY: "现在等待处理的消息太多，请稍后再发一次。",
    Text.TOO_FAST: "您发得太快了，请等一分钟再发一次。",
    Text.TOO_MANY_TODAY: "您在 24 小时内的提问次数已达上限，请晚些时候再来。",
    Text.TOO_MUCH_TODAY: "您在 24 小时内的用量已达每人上限，请晚些时候再来。",
    Text.USED_UP_TODAY: "我在 24 小时内的用量已达上限，请晚些时候再来。",
    Text.ACCOUNT_USED_UP: "{account} 已达 {limit} 的上限：24 小时过去之前，"
    "其他人会被告知晚些时候再来。您可以继续使用。",
    Text.VOICE: "我听不了语音消息，请用文字发送。",
    Text.BLANK: "这条消息里没有我能读的内容，请写下您的需要。",
    Text.UNREADABLE_TYPE: "我不能在这个聊天里打开这种文件，而且消息里没有文字。",
    Text.UNREADABLE_SIZE: "文件太大了（上限 {limit} MB），而且消息里没有文字。",
    Text.UNREADABLE_DOWNLOAD: "文件下载失败，请重新发送。",
    Text.UNREADABLE_DISK: "我现在没有存放文件的空间，请用文字发送，或稍后再试。",
    Text.WORKING: "处理中，{time}……",
    Text.WORKING_ON: "处理中：{what}，{time}……",
    Text.WORKED: "已处理 {time}。",
    Text.WORK_OVER: "已不再处理这条消息。",
    Text.FAILURE: "出了点问题，这条消息没有得到回答，请再试一次。",
    Text.SETUP: "这条消息没有得到回答：{cure}。如仍未解决，请在我的主机上运行 turnbridge doctor 查看详情。",
    Text.INTERRUPTED: "处理这条消息时我被重启了，不确定做到了哪一步。请先确认，再决定是否重发。",
    Text.MISSED: "您发送以下内容时我不在线，因此没有执行。如仍需要，请重新发送：",
    Text.EMPTY: "已完成，没有需要回复的内容。",
    Text.TRUNCATED: "……（回答太长，到此为止）",
    Text.FILES_DROPPED: "（有 {count} 个文件未能发送。）",
    Text.FILE_REFUSED: "{name} 无法在这个聊天里发送。",
    Text.REPEAT: "（重发：无法确认上一次是否送达。）",
    Text.EARLIER: "—— 之前未送达的回复 ——",
    Text.LATEST: "—— 对最新消息的回复 ——",
    Text.LATER: "我还在处理，请稍后发送 1 获取答案。",
    Text.MORE: "（还有后续，发送 1 查看下一部分。）",
    Text.TO_EARLIER: "（对之前消息的回复：）",
    Text.NEXT: "（新消息正在处理，发送 1 获取答案。）",
    Text.DISK_FULL: "我的磁盘快满了：可用空间不足 {percent}%。在腾出空间之前，我不再接收文件。",
    Text.DISK_FREE: "我的磁盘又有空间了，可以照常接收文件。",
    Text.REPLACED: "已停止，改为处理您较新的消息。",
    Text.HELP: "有事直接发消息就行。下面的命令随时可用，我正忙的时候也会马上答复：\n"
    "/停止（/stop）：停下正在做的事，并清掉排队的消息\n"
    "/新会话（/new）：从头开始，忘掉这里之前的内容\n"
    "/状态（/status）：现在的情况\n"
    "/队列（/queue）：有哪些消息在排队\n"
    "/我是谁（/whoami）：您的身份和权限\n"
    "/帮助（/help）：这份列表",
    Text.HELP_OWNER: "/批准（/approve）[编号]：同意我询问的操作\n/拒绝（/deny）[编号]：不同意",
    Text.HELP_TOOLS: "在这个聊天里，您还可以选择由谁回答（按消息顺序处理）：\n"
    "/智能体（/agent）[名称]：使用哪个智能体\n"
    "/模型（/model）[名称]：使用哪个模型\n"
    "/模式（/mode）[名称]：工作方式\n"
    "/目录（/dir）[目录]：在哪里工作\n"
    "/压缩（/compact）：把之前的对话压缩成摘要，腾出空间\n"
    "单独发送会列出可选项；用“默认”代替名称可恢复设置。",
    Text.AGENTS: "可选的智能体，当前为 {current}：",
    Text.MODELS: "{agent} 可选的模型，当前为 {current}：",
    Text.MODES: "{agent} 可选的模式，当前为 {current}：",
    Text.FOLDERS: "可选的目录，当前为 {current}：",
    Text.AGENT_CHOSEN: "从下一条消息起由 {agent} 回答，模型为 {model}。",
    Text.MODEL_CHOSEN: "从下一条消息起 {agent} 使用模型 {model}。",
    Text.MODE_CHOSEN: "从下一条消息起 {agent} 的模式为 {mode}。",
    Text.FOLDER_CHOSEN: "从下一条消息起我在 {folder} 中工作。",
    Text.FOLDER_UNKNOWN: "没有这个目录，或者我不能在那里工作。",
    Text.CHOICE_NONE: "{agent} 没有可供选择的这类选项。",
    Text.CHOICE_UNKNOWN: "列表中没有这一项，没有任何改动。",
    Text.CHOICE_PROBLEM: "目前无法使用：{problem}",
    Text.CHOICE_REFUSED: "没有成功：{problem}",
    Text.CHOICE_GONE: "您在这里选择的智能体、模型或目录已不存在，所以我没有处理这条消息。"
    "现已恢复为设置中的选项，请重新发送，或重新选择。",
    Text.COMPACTED: "已压缩之前的对话：原来约 {before} 个 token，现在 {after} 个。",
    Text.COMPACT_NOTHING: "这里没有可以压缩的内容。",
    Text.COMPACT_CANNOT: "这里的智能体不能压缩之前的对话。发送 /新会话 可以从头开始。",
    Text.STOPPED: "已停止。",
    Text.STOPPED_ALL: "已停止，同时清掉了 {count} 条排队的消息。",
    Text.NOTHING_RUNS: "这里没有正在处理或排队的消息。",
    Text.NEW_SESSION: "新会话已开始，之前的内容不再记得。",
    Text.NEW_BUSY: "这里还有事没做完。请先发送 /停止，或等我答复之后再发 /新会话。",
    Text.RUNS: "正在处理您的消息，已用时 {time}。",
    Text.WAITS_FOR_YOU: "正在等您批准或拒绝：{ids}",
    Text.WAITS_TOO: "后面还有 {count} 条在排队。",
    Text.WAITS: "有 {count} 条消息在排队。",
    Text.QUEUED: "正在处理（已用时 {time}）：{words}",
    Text.MORE_WAIT: "……还有 {count} 条。",
    Text.FILES: "（{count} 个文件）",
    Text.ACCOUNT: "{account}：{state}（已持续 {time}）。所有聊天中排队和处理中的消息共 {count} 条。",
    Text.UNPROVEN: "上一条消息之后，有 {count} 个请求无法证明来源，已被拒绝。",
    Text.UNDELIVERED: "未能送达的回复共 {count} 段。",
    Text.WHOAMI: "您的 ID 是 {sender}（{platform}）。",
    Text.MAY_TOOLS: "您是我的主人，在这个聊天里我可以为您使用工具。",
    Text.MAY_OWNER: "您是我的主人。设置里没有开启工具，所以我不使用工具。",
    Text.MAY_HERE: "您是我的主人，但在群里我不为任何人使用工具。",
    Text.MAY_ASK: "您可以和我对话，但我不会为您使用工具。",
    Text.SECONDS: "{count} 秒",
    Text.MINUTES: "{count} 分钟",
    Text.HOURS: "{count} 小时",
    Text.STATE_DISABLED: "已停用",
    Text.STATE_STARTING: "正在启动",
    Text.STATE_CONNECTED: "已连接",
    Text.STATE_DISCONNECTED: "连接已断开",
    Text.STATE_BACKOFF: "已中断，稍后自动重启",
    Text.STATE_STOPPING: "正在停止",
    Text.STATE_STOPPED: "已停止",
    Text.STATE_FAILED: "出了故障，需要人工处理",
    Text.APPROVAL: "可以执行这个操作吗？（{id}）\n\n工具：{tool}\n目录：{folder}\n{arguments}\n"
    "{answers}{time}内没有回复，我就不执行。",
    Text.APPROVAL_ANSWER: "同意请回复“是”或 /批准 {id}，拒绝请回复“否”或 /拒绝 {id}。",
    Text.APPROVAL_OPTIONS: "请回复 /批准 {id} 加序号，例如 /批准 {id} 1；"
    "回复“是”或“否”则按第一个同意或拒绝的选项处理。",
    Text.APPROVAL_NUMBER: "没有这个选项。请回复 /批准 {id} 加 1 到 {count} 的序号，或 /拒绝 {id}。",
    Text.APPROVAL_GIVEN: "已批准（{id}），我继续。",
    Text.APPROVAL_DENIED: "已拒绝（{id}），我不会执行。",
    Text.APPROVAL_LATE: "没有及时收到回复，因此没有执行（{id}）。",
    Text.APPROVAL_STALE: "这个问题已失效：已经回答过、超时了，或者对应的任务已结束。没有任何改动。",
    Text.APPROVAL_NONE: "这个聊天里没有等待您批准的操作。",
    Text.APPROVAL_WHICH: "请指明您回答的是哪一个问题，等待回答的有：{ids}",
    Text.APPROVAL_UNCLEAR: "有一个操作在等您批准（{id}）。您的回复不够明确，未作处理。{answers}",
    Text.APPROVAL_OWNER: "只有我的主人能在与我的单独聊天里回答这个问题。",
    Text.APPROVAL_CUT: "（中间有 {bytes} 字节未显示）",
    Text.APPROVAL_ALLOW: "批准",
    Text.APPROVAL_REFUSE: "拒绝",
    Text.DEAF: "{account} 已有 10 分钟与平台失去联系，那边的消息暂时收不到。它会继续重试，"
    "可以在它所在的机器上运行 turnbridge doctor 查找原因。",
    Text.PARKED: "{account} 已停止，而且不会自行恢复：平台或设置拒绝了它。"
    "请在它所在的机器上用 turnbridge status 查看原因，用 turnbridge doctor 查看解决办法。",
    Text.CONTACT_AGAIN: "{account} 已恢复与平台的联系。",
    Text.DEAF_MANY: "{count} 个账号已有 10 分钟与平台失去联系，那边的消息暂时收不到：{names} 等。"
    "它们会继续重试，可以在所在的机器上运行 turnbridge doctor 查找原因。",
    Text.PARKED_MANY: "{count} 个账号已停止，而且不会自行恢复：{names} 等。"
    "请在所在的机器上用 turnbridge status 查看原因，用 turnbridge doctor 查看解决办法。",
    Text.CONTACT_AGAIN_MANY: "{count} 个账号已恢复与平台的联系：{names} 等。",
    Text.CRASHED: "我上次没有正常停止（可能是崩溃、被强制结束或断电）。现在已重新运行，"
    "当时正在处理的消息会得到回答或说明。",
    Text.QUESTION: "{question}\n\n请在 {time}内回答“是”或“不”。",
    Text.QUESTION_YES: "已记录：是。问题：“{question}”",
    Text.QUESTION_NO: "已记录：不。问题：“{question}”",
    Text.QUESTION_UNANSWERED: "没有人及时回答，按“不”处理。问题：“{question}”",
    Text.QUESTION_WITHDRAWN: "这个问题已撤回，不用再回答了：“{question}”",
    Text.QUESTION_WHICH: "这里有两个问题在等回答，无法判断您回答的是哪一个。"
    "请先用 /批准 或 /拒绝 回答工具的那个，再用“是”或“不”回答另一个。",
    Text.EDIT_NO_COMMAND: "您修改的那条排队消息已取消。修改消息不会执行命令，请单独发送 {command}。",
    Text.PAIRED: "验证码正确，正在把您设为这个机器人的主人。之后我会回答您的消息，"
    "有关机器人的通知也会发到这里。{tools}发送 /我是谁 可以确认是否已生效。",
    Text.PAIRED_TOOLS: "在这个聊天里，我还可以在我所在的机器上为您使用工具。",
    Text.PAIRED_NO_TOOLS: "工具目前是关闭的，在设置里打开之前，我不会使用工具。",
    Text.PAIR_WRONG: "验证码不对，请核对终端里显示的验证码。",
    Text.PAIR_GUESSED: "验证码仍然不对，错误次数过多，终端里的验证码已失效。请在终端重新获取一个。",
    Text.PAIR_OVER: "这个验证码已失效。请重新获取一个，并在与我的私聊中发送。",
    Text.PAIR_FAILED: "您没有成为主人：设置未能保存，原因见显示验证码的终端。",
}


def say(text: Text, language: Language, **values: object) -> str:
    """``text`` with its values; ``(s)`` is there unless their ``count`` is 1."""
    words = (_ZH if language is Language.ZH else _EN)[text]
    return words.replace("(s)", "" if values.get("count") == 1 else "s").format(**values)


def duration(seconds: float, language: Language) -> str:
    """``seconds`` in whole ones of one unit: two would be more than anybody wants to know."""
    for text, size in ((Text.HOURS, 3600), (Text.MINUTES, 60)):
        if seconds >= 2 * size:
            return say(text, language, count=int(seconds // size))
    return say(Text.SECONDS, language, count=max(0, int(seconds)))


def language_of(text: str, setting: Literal["auto", "en", "zh"]) -> Language:
    """The language to answer in: as set, or Chinese where ``text`` holds at least one Han character."""
    if setting != "auto":
        return Language(setting)
    han = any("CJK UNIFIED" in unicodedata.name(char, "") for char in text[:200])
    return Language.ZH if han else Language.EN
