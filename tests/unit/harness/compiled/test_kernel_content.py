"""The digest of a kernel covers all that it depends on; what it cannot cover is refused."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from types import FunctionType, ModuleType

import numpy as np
import pytest

import checkers
import harness.jepsen
from harness.compiled import Kernel, compiled, inlined
from harness.compiled.content import Unseen, digest_of

TABLE = np.arange(4)
SETTINGS = {"step": 1}


def of_source(source: str, **names: object) -> FunctionType:
    names = {"compiled": compiled, "np": np, **names}
    exec(source, names)
    return plain(names["f"])


def plain(kernel: object) -> FunctionType:
    function = kernel.__wrapped__  # type: ignore[attr-defined]
    assert isinstance(function, FunctionType)
    return function


def digest(source: str, **names: object) -> str:
    return digest_of(of_source(f"@compiled\ndef f(x):\n    {source}", **names))


def test_the_same_source_elsewhere_is_the_same_content() -> None:
    moved = of_source("\n\n\n@compiled\ndef f(x):\n    # a comment\n    return x + 1")
    assert digest("return x + 1") == digest_of(moved)


@pytest.mark.parametrize(
    "other",
    ["return x + 2", "return x - 1", "return x + True", "return x + 1.0", "return [x + 1 for x in x]", "return x + Y"],
)
def test_other_source_is_other_content(other: str) -> None:
    assert digest("return x + 1") != digest(other)


def test_arrays_are_read_to_their_last_element() -> None:
    assert digest("return A[x]", A=np.array([1, 2])) != digest("return A[x]", A=np.array([1, 3]))
    assert digest("return A[x]", A=np.array([1, 2])) != digest("return A[x]", A=np.array([1, 2], dtype=np.int32))


def test_the_digest_of_kernels_that_call_each_other_covers_both() -> None:
    source = "@compiled\ndef g(x):\n    return f(x - 1) if x else {}\n@compiled\ndef f(x):\n    return g(x)"
    assert digest_of(of_source(source.format(0))) == digest_of(of_source(source.format(0)))
    assert digest_of(of_source(source.format(0))) != digest_of(of_source(source.format(1)))


@pytest.mark.parametrize("unseen", [{"step": 1}, [1], object(), sys.modules[__name__]])
def test_a_value_without_a_digest_is_refused(unseen: object) -> None:
    if isinstance(unseen, ModuleType):
        unseen = checkers
    with pytest.raises(Unseen, match="reads Y"):
        digest("return Y", Y=unseen)


def test_variables_of_a_function_around_are_refused() -> None:
    step = len(sys.argv)

    def f(x: int) -> int:
        return x + step

    with pytest.raises(Unseen, match="function around"):
        digest_of(plain(compiled(f)))


def test_every_kernel_of_the_project_has_a_digest() -> None:
    for package in (checkers, harness.jepsen):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    kernels = {
        (name, of): value
        for name, module in list(sys.modules.items())
        if name.startswith(("checkers.", "harness.jepsen."))
        for of, value in vars(module).items()
        if isinstance(value, Kernel) and value.__module__ == name
    }
    assert len(kernels) > 100
    assert len({digest_of(plain(kernel)) for kernel in kernels.values()}) > 100


def test_a_phase_inlined_is_other_content_than_a_kernel_called() -> None:
    source = "@{}\ndef g(x: int) -> int:\n    return x\n@compiled\ndef f(x):\n    return g(x)"
    kernels = [of_source(source.format(name), inlined=inlined) for name in ("compiled", "inlined")]
    assert digest_of(kernels[0]) != digest_of(kernels[1])


def test_a_phase_that_returns_an_array_is_refused() -> None:
    with pytest.raises(TypeError, match="g is inlined without counting references: it cannot return arrays"):
        of_source("@inlined\ndef g(x) -> 'tuple[int, Int32]':\n    return 1, x", inlined=inlined)
