"""A system whose clients need a package that is not installed says how to get it."""

from __future__ import annotations

import pytest

from harness.client_package import require_package
from harness.errors import UsageError


def test_a_package_that_is_not_installed_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(UsageError, match=r"clients of nats need the package no-such-client.*stormproof\[nats\]"):
        require_package("no-such-client", system="nats")


def test_a_package_that_is_installed_is_no_reason_to_refuse() -> None:
    require_package("pytest", system="nats")
