"""What a Python program names as a requirement is installed into its image by pip, and not copied from here."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from harness.environments.docker import engine, node_images
from harness.errors import HarnessError
from harness.program import PythonProgram
from harness.system import NodeSpec

pytestmark = pytest.mark.docker

FILES = {
    "vault_wheel.py": "WORDS = 'from the wheel'\n",
    "vault_wheel-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: vault-wheel\nVersion: 1.0\n",
    "vault_wheel-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "vault_wheel-1.0.dist-info/RECORD": "",
}


def node(requirement: str) -> NodeSpec:
    return NodeSpec(name="p1", groups=(), program=PythonProgram(main="probe:main", requirements=(requirement,)))


def test_a_requirement_is_installed_in_the_image(tmp_path: Path) -> None:
    wheel = tmp_path / "vault_wheel-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, text in FILES.items():
            packed.writestr(name, text)
    with engine() as client:
        image = node_images(client, [node(f"vault-wheel @ file://{wheel}")], base=None, say=print)["p1"]
        show = ["python3", "-c", "import probe, vault_wheel; print(vault_wheel.WORDS)"]
        assert client.containers.run(image, show, remove=True) == b"from the wheel\n"
        client.images.remove(image)


def test_a_requirement_that_pip_cannot_install_is_named(tmp_path: Path) -> None:
    missing = f"vault-lost @ file://{tmp_path}/vault_lost-1.0-py3-none-any.whl"
    with engine() as client, pytest.raises(HarnessError, match=r"pip could not install vault-lost @ .* for Python 3\."):
        node_images(client, [node(missing)], base=None, say=print)
