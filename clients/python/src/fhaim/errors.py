"""The only exception of this package."""

from __future__ import annotations

_WAYS_OUT = {
    "unauthenticated": "Sign in with Client.sign_in or Client.use_api_key; "
    "check the address and the password.",
    "forbidden": "Ask the operator, or sign in with an account that is allowed to do this.",
    "not-found": "Check the identifier; objects of other accounts are not visible.",
    "conflict": "Check the current state before you try again.",
    "budget-spent": "Releases cannot be taken back, and releases of a new dataset over the same "
    "records add to them. A job that already holds a run continues with Client.retry.",
    "too-many-requests": "Wait, and try again.",
    "unavailable": "Try again later; completed work is kept.",
    "unreachable": "Check the address and the network, and try again.",
    "damaged": "Ask the operator of the service to restore the data from a backup.",
    "internal": "Try again; if the problem persists, give the request's identifier to the "
    "operator.",
}


class Error(Exception):
    """A failure of a service, of the connection, or of this program.

    ``kind`` is for programs: a problem kind of the services (``not-found``, ``budget-spent``, ...)
    or one of this package (``unreachable``, ``unreadable``, ``program-missing``,
    ``upload-failed``, ``used-before``, ``job-failed``, ``job-cancelled``, ``timeout``, ``signed-out``, ``not-confirmed``,
    ``restored``, ``forgotten``, ``disagreement``).
    """

    def __init__(
        self,
        kind: str,
        title: str,
        detail: str | None = None,
        *,
        way_out: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.kind = kind
        """The kind of the problem: programs should use this, not the texts."""
        self.title = title
        """The title, which is the same for every problem of the kind."""
        self.detail = detail
        """The problem in this case."""
        self.way_out = way_out or _WAYS_OUT.get(kind)
        """How to solve it, if ``detail`` does not say so."""
        self.status = status
        """The HTTP status, if a service answered."""
        self.request_id = request_id
        """The request's identifier in the services' logs."""
        self.retry_after = retry_after
        """Seconds to wait before another attempt, if the service said so."""
        super().__init__(str(self))

    def __str__(self) -> str:
        said = [self.title if self.detail is None else f"{self.title}: {self.detail}"]
        said += [self.way_out] if self.way_out else []
        said += [f"(request {self.request_id})"] if self.request_id else []
        return " ".join(text if text.endswith((".", ")")) else f"{text}." for text in said)

    def __reduce__(self) -> tuple[object, ...]:
        fields = ("way_out", "status", "request_id", "retry_after")
        return _again, (self.kind, self.title, self.detail, {f: getattr(self, f) for f in fields})


def _again(kind: str, title: str, detail: str | None, rest: dict[str, object]) -> Error:
    return Error(kind, title, detail, **rest)  # type: ignore[arg-type]
