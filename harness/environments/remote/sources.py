"""The files that a Python program needs where it runs: of its package, and of every package that it imports.

Imports are read, not carried out: those of any module that the program reaches, also inside of functions, but none
that is for type checkers only. Packages are taken whole, so that what one loads by name is there as well. A name that
a package imports when it is first asked for (a module's `__getattr__`) is asked for here. What is not installed here
is left out: where it is needed, the program itself says so.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

from harness.errors import HarnessError

COMPILED = (".so", ".pyd")


def sources(modules: Sequence[str], requirements: Sequence[str]) -> Mapping[str, bytes]:
    """Path below a directory of the Python path -> content, for these modules and whatever they import.

    `requirements`: installed otherwise, so neither copied nor looked into. Raises HarnessError for a module that is
    not there, and for a package with compiled parts.
    """
    elsewhere = {*sys.stdlib_module_names, *(_import_names(requirements) if requirements else ())}
    for module in modules:
        if _file(module) is None:
            raise HarnessError(f"no module {module!r} on this machine")
    found: dict[str, bytes] = {}
    for package in _packages(modules, elsewhere):
        for root, path in _files(package):
            if path.suffix in COMPILED:
                raise HarnessError(
                    f"package {package} has compiled parts ({path.name}): name it in the program's requirements"
                )
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return dict(sorted(found.items()))


def _packages(modules: Sequence[str], elsewhere: set[str]) -> list[str]:
    """The names without a dot of all modules that are reached."""
    pending, seen = list(modules), set[str]()
    while pending:
        module = pending.pop()
        if module in seen or module.partition(".")[0] in elsewhere:
            continue
        file = _file(module)
        if file is None:
            continue
        seen.add(module)
        pending += [module.rpartition(".")[0]] if "." in module else []
        if file.suffix == ".py":
            package = module if file.name == "__init__.py" else module.rpartition(".")[0]
            for imported, name in _imported(ast.parse(file.read_bytes()), package):
                pending += [imported, f"{imported}.{name}", *_behind(imported, name)] if name else [imported]
    return sorted({module.partition(".")[0] for module in seen})


def _imported(tree: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """(module, the name that is imported of it, empty where it is imported itself)."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            module = ".".join(filter(None, (above, node.module)))
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield from _imported(ast.Module([other], []), package)
        else:
            yield from _imported(node, package)


def _behind(module: str, name: str) -> tuple[str, ...]:
    """Where a name comes from that a module imports when it is first asked for; nothing for other names."""
    file = _file(module)
    if file is None or file.suffix != ".py" or b"def __getattr__(" not in file.read_bytes():
        return ()
    value = getattr(import_module(module), name, None)
    return (getattr(value, "__module__", type(value).__module__),)


def _file(module: str) -> Path | None:
    """Where the module is, itself not imported; of a package without an `__init__.py`, its directory."""
    top, *rest = module.split(".")
    for root in _roots(top):
        place = root.joinpath(top, *rest)
        for file in (place / "__init__.py", place.with_suffix(".py"), place):
            if file.is_file() or (file == place and place.is_dir()):
                return file
    return None


def _roots(package: str) -> tuple[Path, ...]:
    """Directories of the Python path in which the package lies."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return ()
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return tuple(Path(place).parent for place in spec.submodule_search_locations)
    return (Path(spec.origin).parent,) if spec.origin and spec.has_location else ()


def _files(package: str) -> Iterator[tuple[Path, Path]]:
    """(directory of the Python path, file) of a package or of a module that is a file."""
    for root in _roots(package):
        if (root / package).is_dir():
            for path in sorted((root / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield root, path
        else:
            yield from ((root, path) for path in sorted(root.glob(f"{package}.*")) if path.suffix in (".py", *COMPILED))


def _import_names(requirements: Sequence[str]) -> Iterator[str]:
    """What is imported of distributions that are named as requirements."""
    wanted = {_normal(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]) for requirement in requirements}
    for name, distributions in packages_distributions().items():
        if wanted.intersection(map(_normal, distributions)):
            yield name


def _normal(name: str) -> str:
    """As package indexes compare names of distributions."""
    return re.sub(r"[-_.]+", "-", name).lower()
