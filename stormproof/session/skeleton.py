"""The skeleton of an adapter as a package of its own, written from templates that are code of this project.

The templates are the packages `stormproof.skeletons.python` and `stormproof.skeletons.command`. Their system is called
skeleton; another name is put in its place, and their modules get the name of a package of their own.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import sys
from enum import Enum
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from harness.bounds import quote
from harness.errors import HarnessError, UsageError
from stormproof.session import registry

LONGEST_NAME = 40
PLACEHOLDER = "skeleton"
BESIDE_THE_PACKAGE = ("README.md", "pyproject.toml", "tests")
"""What lies in the project's folder; everything else of a template is the package's."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Node(Enum):
    """What the nodes of a new system run."""

    PYTHON = "python"
    """A program written against a `Host`, which runs in every environment."""
    COMMAND = "command"
    """A command in an image of Debian packages, which runs in containers."""


def write_skeleton(name: str, node: Node, directory: Path) -> tuple[str, ...]:
    """Make the directory; returns its files, as paths in it. Raises UsageError, before anything is written, for a name
    that cannot be a system's or is taken, and for a directory that is there; HarnessError where writing fails."""
    module = checked(name).replace("-", "_")
    files = {path: _renamed(text, name, module, node) for path, text in _template(node, module).items()}
    try:
        directory.mkdir()
    except FileExistsError:
        raise UsageError(
            f"{directory} is there already, and nothing is overwritten; name another --directory"
        ) from None
    except OSError as error:
        raise UsageError(f"{directory} cannot be made: {error.strerror or error}; name another --directory") from None
    try:
        for path, text in files.items():
            (directory / path).parent.mkdir(exist_ok=True)
            (directory / path).write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise HarnessError(f"{directory} cannot be written: {error.strerror or error}") from None
    return tuple(sorted(files))


def checked(name: str) -> str:
    """The name itself. Raises UsageError where it cannot be that of a new system and of its package."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f"{quote(name)} cannot be the name of a system: it takes small letters and digits, and - between them, "
            f"at most {LONGEST_NAME} characters, as in my-store"
        )
    if name in registry.names("systems"):
        raise UsageError(f"there is a system {name} already (stormproof list systems); choose another name")
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or _is_installed(module):
        raise UsageError(
            f"the package {module} would hide a module of Python's or of another package; choose another name"
        )
    return name


def _is_installed(module: str) -> bool:
    """A folder of this name somewhere on the path is no module: it has no code of its own to be hidden."""
    found = importlib.util.find_spec(module)
    return found is not None and found.origin is not None


def _template(node: Node, module: str) -> dict[str, str]:
    """Path in the new directory -> text, with the placeholder's names."""
    files = {}
    for entry in _files(resources.files("stormproof") / "skeletons" / node.value, ""):
        path, text = entry
        is_beside = path.partition("/")[0] in BESIDE_THE_PACKAGE
        files[path.replace(PLACEHOLDER, module) if is_beside else f"{module}/{path}"] = text
    return files


def _files(folder: Traversable, above: str) -> list[tuple[str, str]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            found += _files(entry, f"{above}{entry.name}/")
        elif entry.name.endswith((".py", ".md", ".toml")):
            found.append((f"{above}{entry.name}", entry.read_text(encoding="utf-8")))
    return found


def _renamed(text: str, name: str, module: str, node: Node) -> str:
    """With the new names; what is the project's own stands in a paragraph of its own among the imports, and not what is
    no longer: `stormproof`."""
    own = f"stormproof.skeletons.{node.value}"
    text = text.replace(f"\nfrom {own}.", f"\n\nfrom {own}.", 1).replace(own, module)
    text = text.replace("\nimport pytest\n\nfrom stormproof", "\nimport pytest\nfrom stormproof")
    type_name = "".join(part.capitalize() for part in name.split("-"))
    return text.replace(PLACEHOLDER.capitalize(), type_name).replace(PLACEHOLDER, name)
