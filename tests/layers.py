"""The rules of docs/architecture.md as checks on source files; ``test_layers.py`` runs them.

Nothing is imported or run: files are parsed. Imports inside functions and under ``TYPE_CHECKING`` count.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

OURS = ("bridge", "channels")
_SILENCER = re.compile(r"#\s*(noqa|type:\s*ignore|(ruff|flake8|mypy):)", re.IGNORECASE)
MOST_LINES = 500
MOST_PUBLIC_METHODS = 12

# Import names of a distribution, where they are not its own name with "_" for "-".
IMPORT_NAMES = {
    "agent-client-protocol": {"acp"},
    "mcp": {"mcp", "mcp_types", "httpx2", "anyio"},  # its own interface is made of these
    "aiohttp": {"aiohttp", "multidict", "yarl"},  # its own interface is made of these
    "pillow": {"PIL"},
    "pydantic": {"pydantic", "pydantic_core"},
    "pydantic-ai": {"anthropic", "genai_prices", "httpx2", "openai", "pydantic_ai"},  # what it is made of
    "python-magic": {"magic", "pylibmagic"},
}


@dataclass(frozen=True)
class Layer:
    """One line of the list: what it holds, and what that may use."""

    line: int
    paths: tuple[str, ...]
    libraries: frozenset[str] = frozenset()
    up_to: str = ""
    never: tuple[str, ...] = ()
    alone: bool = False
    light: bool = False
    later: bool = False


def read_layers(document: str) -> list[Layer]:
    """The layers of the block fenced as ``layers``: ``paths  words | libraries | limits`` in each line.

    Limits, divided by ``;``, are ``up to <path>`` (nothing of ours from a line below that one),
    ``never <paths>``, ``alone`` (one file or folder of it never imports another) and ``light`` (nothing but
    the standard library at the top of a module). A path that is still to come is marked ``(later)``.
    """
    block = re.search(r"^```layers\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
    if block is None:
        raise ValueError("the document has no block fenced as layers")
    lines = [line for line in block[1].splitlines() if line.strip()]
    return [_read_layer(number, line) for number, line in enumerate(lines)]


def _read_layer(number: int, line: str) -> Layer:
    what, libraries, limits, *rest = [*line.split("|"), "", ""][: max(3, line.count("|") + 1)]
    if rest:
        raise ValueError(f"too many columns: {line}")
    paths, _, words = what.strip().partition("  ")
    names = [name.strip() for name in libraries.split(",") if name.strip()]
    known: dict[str, str] = {}
    for limit in filter(None, map(str.strip, limits.split(";"))):
        found = re.fullmatch(r"(up to|never|alone|light)\b ?(.*)", limit)
        if found is None:
            raise ValueError(f"an unknown limit: {limit}")
        known[found[1]] = found[2]
    return Layer(
        line=number,
        paths=tuple(paths.split()),
        libraries=frozenset().union(*(IMPORT_NAMES.get(name, {name.replace("-", "_")}) for name in names)),
        up_to=known.get("up to", ""),
        never=tuple(known.get("never", "").split()),
        alone="alone" in known,
        light="light" in known,
        later="(later)" in words,
    )


@dataclass(frozen=True)
class Import:
    """One imported module name, as it stands in a file."""

    name: str
    line: int
    top: bool  # run when the module is imported


@dataclass(frozen=True)
class Module:
    path: str
    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source, self.path)

    @cached_property
    def imports(self) -> list[Import]:
        return list(_imports(self.tree, top=True))


def _imports(node: ast.AST, *, top: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import():
                yield from (Import(alias.name, child.lineno, top) for alias in child.names)
            case ast.ImportFrom():
                base = "." * child.level + (child.module or "")
                yield from (Import(f"{base}.{alias.name}", child.lineno, top) for alias in child.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(child, top=False)
            case ast.If() if "TYPE_CHECKING" in ast.unparse(child.test):
                yield from _imports(child, top=False)
            case _:
                yield from _imports(child, top=top)


class Project:
    """The source files under ``root``, and every breach of the rules in them."""

    def __init__(self, root: Path, layers: list[Layer]) -> None:
        self.root, self.layers = root, layers
        self.modules = {module.name: module for module in _modules(root)}

    def breaches(self) -> list[str]:
        checks = (
            self.homeless,
            self.missing,
            self.imports,
            self.cycles,
            self.heavy,
            self.sizes,
            self.excuses,
        )
        return [breach for check in checks for breach in check()]

    def homeless(self) -> Iterator[str]:
        """Files that no line of the list names."""
        for module in self.modules.values():
            if self.layer_of(module.path) is None:
                yield f"{module.path}: no line of the list names it"

    def missing(self) -> Iterator[str]:
        """Paths that the list names, but that do not exist and are not marked as still to come."""
        for layer in self.layers:
            for path in layer.paths:
                if not layer.later and not _exists(self.root / path):
                    yield f"{path}: listed, but missing: mark its line (later)"

    def imports(self) -> Iterator[str]:
        for module in self.modules.values():
            layer = self.layer_of(module.path)
            for found in module.imports if layer else ():
                assert layer is not None
                if reason := self._refusal(module, layer, found):
                    yield f"{module.path}:{found.line}: imports {found.name}: {reason}"

    def cycles(self) -> Iterator[str]:
        """Rings of imports within one line."""
        for start in self.modules:
            ring = self._ring(start)
            if ring and start == min(ring):
                yield f"{self.modules[start].path}: imports itself through {' > '.join([*ring, start])}"

    def heavy(self) -> Iterator[str]:
        """What a ``light`` line loads at the top beyond the standard library, however indirectly."""
        for module in self.modules.values():
            layer = self.layer_of(module.path)
            for found in module.imports if layer and layer.light else ():
                if found.top and (library := self._loads(found.name, frozenset())):
                    where = f"{module.path}:{found.line}"
                    yield f"{where}: {found.name} loads {library}: import it inside a function"

    def sizes(self) -> Iterator[str]:
        for module in self.modules.values():
            lines = module.source.count("\n")
            if lines > MOST_LINES:
                yield f"{module.path}: {lines} lines are over {MOST_LINES}"
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef) and (count := len(_methods(node))) > MOST_PUBLIC_METHODS:
                    yield f"{module.path}:{node.lineno}: {node.name} has {count} public methods"

    def excuses(self) -> Iterator[str]:
        """Comments that silence a check without saying which and why; in tests as well."""
        for path in sorted([*self.root.glob("tests/**/*.py"), *map(self.root.joinpath, self._paths())]):
            for line, comment in _comments(path.read_text(encoding="utf-8")):
                if not is_excused(comment):
                    where = path.relative_to(self.root)
                    yield f"{where}:{line}: {comment}: name a code and a reason"

    def layer_of(self, path: str) -> Layer | None:
        """The line that names ``path``, or else the nearest folder around it."""
        best: tuple[int, Layer] | None = None
        for layer in self.layers:
            for listed in layer.paths:
                fits = path == listed or (listed.endswith("/") and path.startswith(listed))
                if fits and (best is None or len(listed) > best[0]):
                    best = len(listed), layer
        return best[1] if best else None

    def _paths(self) -> list[str]:
        return [module.path for module in self.modules.values()]

    def _refusal(self, module: Module, layer: Layer, found: Import) -> str:
        root = found.name.partition(".")[0]
        if root == "":
            return "write the whole name"
        if root not in OURS:
            known = root in sys.stdlib_module_names or root in layer.libraries
            return "" if known else "a library that its line does not list"
        target = self._resolve(found.name)
        other = self.layer_of(target.path) if target else None
        if target is None or other is None:
            return "no such module"
        return self._refusal_of_ours(module, layer, target, other)

    def _refusal_of_ours(self, module: Module, layer: Layer, target: Module, other: Layer) -> str:
        if other.line > layer.line:
            return "its line is below"
        if layer.alone and other is layer and _unit(module.path, layer) != _unit(target.path, layer):
            return "these never import each other"
        limit = self.layer_of(layer.up_to) if layer.up_to else None
        if limit and other is not layer and other.line > limit.line:
            return f"only what is up to {layer.up_to} is allowed here"
        if any(target.path.startswith(path) for path in layer.never):
            return "never allowed here"
        return ""

    def _resolve(self, name: str) -> Module | None:
        """The module that ``name``, of a module or of something in one, stands for."""
        return self.modules.get(name) or self.modules.get(name.rpartition(".")[0])

    def _ring(self, start: str) -> list[str]:
        """The way from ``start`` back to it along imports within its line; empty where there is none."""
        ways, seen = [[start]], set[str]()
        while ways:
            way = ways.pop()
            for target in self._neighbours(way[-1]):
                if target == start:
                    return way
                if target not in seen:
                    seen.add(target)
                    ways.append([*way, target])
        return []

    def _neighbours(self, name: str) -> list[str]:
        module = self.modules[name]
        targets = filter(None, (self._resolve(found.name) for found in module.imports))
        layer = self.layer_of(module.path)
        return [target.name for target in targets if self.layer_of(target.path) is layer]

    def _loads(self, name: str, seen: frozenset[str]) -> str:
        """The first library beyond the standard one that importing ``name`` loads, or nothing."""
        if name.partition(".")[0] not in OURS:
            root = name.partition(".")[0]
            return "" if root in sys.stdlib_module_names else root
        target = self._resolve(name)
        if target is None or target.name in seen:
            return ""
        seen |= {target.name}
        around = [package for package in _packages(target.name) if package not in seen]
        inner = [found.name for found in target.imports if found.top]
        return next(filter(None, (self._loads(found, seen) for found in [*around, *inner])), "")


def is_excused(comment: str) -> bool:
    """Whether ``comment`` silences nothing, or says which check and why.

    >>> (
    ...     is_excused("# noqa: TID251 - awaited below"),
    ...     is_excused("# type: ignore[arg-type]  # their stubs lie"),
    ... )
    (True, True)
    >>> is_excused("# noqa"), is_excused("# noqa: TID251"), is_excused("# type: ignore[arg-type]")
    (False, False, False)
    """
    if re.search(r"#\s*(ruff|flake8|mypy):\s*(noqa|ignore-errors)", comment):
        return False
    for silencer, code in (
        (r"#\s*noqa", r": ?[A-Z]+\d+(, ?[A-Z]+\d+)*"),
        (r"#\s*type:\s*ignore", r"\[[a-z, -]+\]"),
    ):
        rest = r"[\s#-]+\w.*"
        if re.search(silencer, comment, re.IGNORECASE) and not re.search(silencer + code + rest, comment):
            return False
    return True


def _modules(root: Path) -> Iterator[Module]:
    for top in OURS:
        for path in sorted((root / top).rglob("*.py")):
            where = path.relative_to(root)
            parts = where.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield Module(where.as_posix(), name, path.read_text(encoding="utf-8"))


def _exists(path: Path) -> bool:
    return path.is_file() or any(path.rglob("*.py"))


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Those of a file in which any may silence a check: taking the others apart is slow and shows none."""
    if not _SILENCER.search(source):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _methods(node: ast.ClassDef) -> set[str]:
    """The public methods that ``node`` itself defines; a property is none."""
    functions = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {item.name for item in functions if not item.name.startswith("_") and not _is_property(item)}


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(name.endswith(("property", ".setter", ".getter", ".deleter")) for name in names)


def _unit(path: str, layer: Layer) -> str:
    """The file or folder directly under the layer's own folder that ``path`` belongs to."""
    folder = next(listed for listed in layer.paths if path.startswith(listed))
    return path.removeprefix(folder).partition("/")[0].removesuffix(".py")


def _packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]
