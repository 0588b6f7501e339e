"""Reads the settings file and checks tables, with reasons that name the file and the key, never the value."""

from __future__ import annotations

import json
import os.path
import re
import tomllib
from ast import literal_eval
from codecs import BOM_UTF8
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from bridge.errors import ConfigError
from bridge.paths import read_private

M = TypeVar("M", bound=BaseModel)

_WORDS = {
    "Value error, ": "",
    "Input should be": "must be",
    "a valid integer": "a whole number",
    "a valid ": "a ",
    "an object": "a table",
    "a object": "a table",
    "a array": "a list",
}
_COUNTED = re.compile(r" after validation, not \d+$")
_SUBJECT = re.compile(r"^(Tuple|List|Set|String|Dictionary) should ")
_PLACE = re.compile(r"\(at (line \d+, column \d+|end of document)\)")
_DECLARED = re.compile(r"Cannot declare (\(.*\)) twice \(at line (\d+)", re.DOTALL)
_BEGINNING = re.compile(r"'\^([A-Za-z0-9_-]+)\[")
_FORMS = {
    "tuple_type": '["…"]',
    "bool_type": "true",
    "int_type": "1",
    "int_from_float": "1",
    "float_type": "1.5",
    "string_type": '"…"',
    "dict_type": "{…}",
    "model_type": "{…}",
}  # of what a value must be, by the library's word for that
_UNIT = re.compile(r"_(seconds|days|bytes|mib|percent)$")  # by which unlike settings are alike
_BARE = re.compile(r"[A-Za-z0-9_.-]+")
_BROKEN = {
    "Cannot overwrite a value": "this key is there twice",
    "Duplicate inline table key": "this key is there twice",
    "Cannot declare": "this table is there twice",
    "Cannot mutate": "this table is there twice",
    "Expected '=' after a key": "a key needs = and a value",
    "Invalid value": "this is no value: a text stands in quotes",
    'Expected "\'"': "a quote is not closed",
    "Unterminated string": "a quote is not closed",
    "Illegal character '\\n'": "a quote is not closed",
    "Unclosed": "a bracket is not closed",
    "Expected ']'": "a bracket is not closed",
    "Expected newline": "something stands behind the value",
    "Invalid statement": "this is neither a setting nor a table",
    "Unescaped": "this character cannot stand there",
    "Illegal character": "this character cannot stand there",
}  # by how the library's words begin, which may go on with what stands there


class TableError(ConfigError):
    """Everything that is wrong with one table, a line each, so that it can be mended in one go."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


def parse(path: Path) -> dict[str, Any]:
    """The file's tables as they stand; raises as ``read``."""
    return read(path)[1]


def read(path: Path) -> tuple[str, dict[str, Any]]:
    """The file's text, and its tables. A symbolic link is followed; what it leads to must be private.

    Raises:
        ConfigError: the file is missing, open to others, over 1 MiB or no TOML. The text names the place and
            never quotes the line, which may hold anything.
    """
    if not os.path.lexists(path):
        raise ConfigError(f"{path} is missing: make it: turnbridge init --home {quote(str(path.parent))}")
    raw = read_private(Path(os.path.realpath(path)) if os.path.islink(path) else path)
    if raw.startswith(BOM_UTF8):
        raise ConfigError(f"{path}: it begins with a byte order mark: save it as UTF-8 without one")
    text = ""
    try:
        text = raw.decode()
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line} is not UTF-8: save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        why = _twice(str(error), text) or next(
            (why for said, why in _BROKEN.items() if str(error).startswith(said)), "mend it"
        )
        raise ConfigError(f"{path}: not TOML at {place[1] if place else 'an unknown place'}: {why}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: no setting needs that") from None
    except ValueError:
        raise ConfigError(f"{path}: a number has thousands of digits: no setting needs that") from None


def _twice(said: str, text: str) -> str:
    """For a table that has two headers: its name, and the line of the first; else ""."""
    if not (found := _DECLARED.match(said)):
        return ""
    keys = literal_eval(found[1])
    first = next((at for at, line in enumerate(text.split("\n"), 1) if _header(line) == keys), 0)
    is_other = 0 < first < int(found[2])
    return (
        f"[{'.'.join(keys)}] is there twice: put all of it into the first, at line {first}"
        if is_other
        else ""
    )


def _header(line: str) -> tuple[str, ...]:
    """The keys of the table that ``line`` begins; () for any other line."""
    try:
        here: Any = tomllib.loads(line) if line.lstrip().startswith("[") else {}
    except tomllib.TOMLDecodeError:
        here = {}
    keys: list[str] = []
    while isinstance(here, dict) and here:
        ((key, here),) = here.items()
        keys.append(key)
    return tuple(keys)


def validate(model: type[M], table: Any, path: Path, where: str = "", *, strict: bool = True) -> M:
    """``table`` as ``model``. With ``strict`` types are exact: ``"yes"`` is no bool and ``"80"`` no number.

    ``where`` is the dotted name of the table in the file ``path``.

    Raises:
        TableError: with a line for each wrong key.
    """
    try:
        return model.model_validate_json(json.dumps(table, default=str), strict=strict)
    except ValidationError as error:
        raise TableError(_explain(error, model, path, where)) from None
    except (ValueError, RecursionError):
        text = "a number has thousands of digits, or tables are nested too deeply: no setting needs that"
        raise TableError([f"{path}: {where or 'the whole file'}: {text}"]) from None


def _explain(error: ValidationError, model: type[BaseModel], path: Path, where: str) -> list[str]:
    """One line for each key: what the members of a union have to say is put together."""
    reasons: dict[str, dict[str, None]] = {}
    forms: dict[str, str] = {}
    items = error.errors(include_url=False, include_context=False, include_input=False)
    for item in items:
        if item["type"] == "too_short" and any(_is_inside(each["loc"], item["loc"]) for each in items):
            continue  # it lacks only the entries that are wrong
        keys, holder = _walk(model, item["loc"])
        dotted = ".".join(filter(None, [where, *keys])) or "the whole file"
        reason = _reason(item["type"], item["msg"], keys, holder)
        reasons.setdefault(dotted, {})[_of_entry(item["loc"], reason)] = None
        if keys and (form := _form(item["type"], item["loc"], holder, path)):
            forms[dotted] = _shown(form, dotted, path)
    return [f"{path}: {key}: {_together(list(texts))}{forms.get(key, '')}" for key, texts in reasons.items()]


def _form(kind: str, loc: tuple[int | str, ...], holder: type[BaseModel], path: Path) -> str:
    """A value of the right form: the default of a key that has a plain one; "" where none can be shown."""
    form = _FORMS.get(kind, "")
    if form and isinstance(loc[-1], int):
        return f"[{form}]"
    field = holder.model_fields.get(str(loc[-1]))
    default = field.default if field and path.suffix == ".toml" else None
    return json.dumps(default) if form and default and isinstance(default, str | int | float) else form


def _shown(form: str, dotted: str, path: Path) -> str:
    """How it is written there: in the settings as TOML, in a file of secrets as JSON."""
    key = dotted.rpartition(".")[2]
    if path.suffix == ".json":
        return f', as in: "{key}": {form}'
    if not _BARE.fullmatch(dotted):
        return ""
    return f", as in: [{dotted}]" if form == "{…}" else f", as in: {key} = {form}"


def _of_entry(loc: tuple[int | str, ...], reason: str) -> str:
    """``reason``, naming the entry where it is about one of a list's."""
    at = [step for step in loc if isinstance(step, int)]
    return f"entry {at[-1] + 1}: {reason}" if at else reason


def _together(texts: list[str]) -> str:
    """What members of a union want is an alternative, unless one of them has only wrong entries."""
    if entries := [text for text in texts if text.startswith("entry ")]:
        return "; ".join(entries)
    return ", or ".join([texts[0], *(text.removeprefix("must be ") for text in texts[1:])])


def meant(name: str, model: type[BaseModel]) -> str:
    """The setting of ``model`` that ``name`` is a slip of, as a question; "" where none is near enough."""
    return nearest(name, model.model_fields)


def nearest(name: str, names: Iterable[str]) -> str:
    """The one of ``names`` that ``name`` is a slip of, as a question; "" where none is near enough."""
    stems = {_UNIT.sub("", key): key for key in names}
    near = get_close_matches(_UNIT.sub("", name), stems, n=1)
    return f"did you mean {stems[near[0]]}?" if near else ""


def _is_inside(loc: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(loc) > len(outer) and loc[: len(outer)] == outer


def _walk(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[list[str], type[BaseModel]]:
    """The keys that lead to an error, without names of a union's members, and the model of the last one."""
    keys: list[str] = []
    holder = model
    here: Any = model
    for step in loc:
        if isinstance(here, type) and issubclass(here, BaseModel):
            holder = here
            field = here.model_fields.get(str(step))
            here = field.annotation if field else None
        elif get_origin(here) is not dict:
            break
        keys.append(str(step))
    return keys, holder


def _reason(kind: str, message: str, keys: list[str], holder: type[BaseModel]) -> str:
    if kind == "extra_forbidden":
        return f"no such setting: {meant(keys[-1], holder) or 'remove it'}"
    if kind == "missing":
        return "missing: set it"
    if kind == "string_pattern_mismatch" and (beginning := _BEGINNING.search(message)):
        return f"must begin with {beginning[1]}, as the platform gives it"
    for said, better in _WORDS.items():
        message = message.replace(said, better)
    return _SUBJECT.sub("must ", _COUNTED.sub("", message))
