"""The one exception of this package."""

from __future__ import annotations

_WAYS_OUT = {
    "unauthenticated": "Sign in with Client.sign_in or Client.use_api_key; "
    "check the address and the password.",
    "forbidden": "Ask the operator, or sign in with an account that may.",
    "not-found": "Check the identifier; what another account made cannot be seen.",
    "conflict": "Look at what is there before you try again.",
    "budget-spent": "What was released cannot be taken back, and what a new dataset over the same "
    "records releases adds to it. A job that holds a run goes on with Client.retry.",
    "too-many-requests": "Wait, and try again.",
    "unavailable": "Try again later; what was done so far stays done.",
    "unreachable": "Check the address and the network, and try again.",
    "internal": "Try again; if it stays, give the request's identifier to the operator.",
}


class Error(Exception):
    """What went wrong, in a service, on the way, or here.

    ``kind`` is for programs: a problem kind of the services (``not-found``, ``budget-spent``, ...)
    or one of this package (``unreachable``, ``unreadable``, ``program-missing``,
    ``upload-failed``, ``job-failed``, ``job-cancelled``, ``timeout``, ``signed-out``, ``not-confirmed``,
    ``restored``, ``disagreement``).
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
        """What kind of problem it is: go by this, not by the words."""
        self.title = title
        """The same for every problem of the kind."""
        self.detail = detail
        """What is wrong this time."""
        self.way_out = way_out or _WAYS_OUT.get(kind)
        """What to do about it, where ``detail`` does not say."""
        self.status = status
        """The HTTP status, where a service answered."""
        self.request_id = request_id
        """The request, as the services' logs know it."""
        self.retry_after = retry_after
        """Seconds to wait before another try, where the service said so."""
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
