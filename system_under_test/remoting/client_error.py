"""The one error that clients of the system raise: it always says whether the request may have taken effect."""

from __future__ import annotations


class ClientError(Exception):
    """A call did not succeed.

    `code` is a word such as `connect-failed` or `client-timeout`. `definite`: it certainly did not happen;
    otherwise it may have happened, or may yet. `node` is the address that was asked, where there was one.
    """

    def __init__(self, code: str, definite: bool, detail: str = "", node: str | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.definite = definite
        self.detail = detail
        self.node = node
