"""HTTP with the standard library: addresses, problems, retries, streams."""

from __future__ import annotations

import http.client
import ipaddress
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from types import TracebackType
from typing import Any, Protocol

from fhaim.codec import decode, encode
from fhaim.errors import Error

TRIES = 6
"""Number of attempts of a repeatable call that gets no answer."""

_BACKOFF = 0.2
_PIECE = 1 << 16
_PROBLEM_BYTES = 1 << 20
_WORTH_ANOTHER_TRY = {502, 503, 504, 507}
_REPEATABLE = {"GET", "PUT", "DELETE"}


class Tokens(Protocol):
    """Source of access tokens."""

    def access(self, refused: str | None = None) -> str:
        """Returns a token that has not expired and is not the rejected one."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The services do not redirect, and a token must not follow a redirect."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def path(template: str, *parts: object) -> str:
    """Returns an address with its parameters filled in."""
    return template.format(*(urllib.parse.quote(str(part), safe="") for part in parts))


class Stream:
    """A body that is read as it arrives. Use it in a ``with`` statement."""

    def __init__(self, response: http.client.HTTPResponse, address: str) -> None:
        self._response, self._address = response, address
        self.headers: Message = response.headers
        """The answer's headers."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._response.close()

    def __iter__(self) -> Iterator[bytes]:
        """Yields the body in pieces. Raises an `Error` if the connection breaks before its end."""
        while piece := self._read(lambda: self._response.read(_PIECE)):
            yield piece
        if self._response.length:  # the standard library does not report this
            raise _unreachable(self._address, EOFError(f"{self._response.length} bytes missing"))

    def read(self) -> bytes:
        """Returns the whole body."""
        return b"".join(self)

    def lines(self) -> Iterator[str]:
        """Yields the body's lines, without their ends."""
        while line := self._read(self._response.readline):
            yield line.decode("utf-8", "replace").rstrip("\r\n")

    def _read(self, read: Any) -> bytes:
        try:
            return bytes(read())
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(self._address, error) from error


class Transport:
    """Calls to one service."""

    def __init__(self, base: str, tokens: Tokens, timeout: float) -> None:
        self._base, self._tokens, self._timeout = base.rstrip("/"), tokens, timeout

    def json(self, kind: Any, method: str, path: str, **call: Any) -> Any:
        """Makes a call and decodes its answer from JSON."""
        text = self._whole(method, path, **call)
        try:
            return decode(kind, json.loads(text))
        except ValueError as error:
            detail = f"{self._base}{path}: {error}"
            raise Error(
                "unreadable",
                "A service's answer is not JSON",
                detail,
                way_out="Check the address: is it that of the services?",
            ) from error

    def _whole(self, method: str, path: str, **call: Any) -> bytes:
        """Reads an answer. Repeats the call if the answer breaks off and the call is repeatable."""
        tries = TRIES if method in _REPEATABLE else 1
        for attempt in range(tries):
            with self.stream(method, path, **call) as answer:
                try:
                    return answer.read()
                except Error:
                    if attempt + 1 == tries:
                        raise
        raise AssertionError("the last try returns or raises")

    def nothing(self, method: str, path: str, **call: Any) -> None:
        """Makes a call and ignores its answer."""
        with self.stream(method, path, **call):
            pass

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        header: Mapping[str, Any] | None = None,
        body: Any = None,
        signed: bool = True,
    ) -> Stream:
        """Makes a call whose answer is read as it arrives."""
        address = self._base + path
        pairs = {name: value for name, value in (query or {}).items() if value is not None}
        if pairs:
            address += "?" + urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote)
        headers = {name: str(value) for name, value in (header or {}).items() if value is not None}
        data = body
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/octet-stream"
        elif body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(encode(body)).encode()
        tries = TRIES if method in _REPEATABLE else 1
        for attempt in range(tries):
            try:
                return self._signed(method, address, headers, data, signed)
            except Error as error:
                again = error.kind == "unreachable" or error.status in _WORTH_ANOTHER_TRY
                if not again or attempt + 1 == tries:
                    raise
                time.sleep(error.retry_after or _BACKOFF * 2**attempt)
        raise AssertionError("the last try returns or raises")

    def _signed(
        self, method: str, address: str, headers: dict[str, str], data: bytes | None, signed: bool
    ) -> Stream:
        if not signed:
            return self._once(method, address, headers, data)
        token = self._tokens.access()
        try:
            return self._once(method, address, {**headers, **_bearer(token)}, data)
        except Error as error:
            if error.status != 401:
                raise
        # Rejected: nothing was done, so any call can be repeated.
        token = self._tokens.access(refused=token)
        return self._once(method, address, {**headers, **_bearer(token)}, data)

    def _once(
        self, method: str, address: str, headers: dict[str, str], data: bytes | None
    ) -> Stream:
        if not address.startswith(("http://", "https://")):
            raise Error(
                "unreachable",
                "This is not the address of a service",
                address,
                way_out="Use an address such as http://127.0.0.1:8080.",
            )
        if _is_plain(address):
            raise Error(
                "invalid",
                "This address would get the password and the tokens in plain text",
                address,
                way_out="Use an https address, or a tunnel to the service's machine "
                "(ssh -L 8080:127.0.0.1:8080 MACHINE) and http://127.0.0.1:8080.",
            )
        try:
            request = urllib.request.Request(address, data, headers, method=method)
            return Stream(_OPENER.open(request, timeout=self._timeout), address)
        except urllib.error.HTTPError as error:
            with error:
                raise _problem(error, address) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise _unreachable(address, error) from error


def _is_plain(address: str) -> bool:
    """Whether calls to an address cross a network in plain text."""
    try:
        parts = urllib.parse.urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False  # no call can be sent to it
    if parts.scheme != "http" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _unreachable(address: str, error: Exception) -> Error:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    said = str(reason) or type(reason).__name__
    return Error("unreachable", "A service does not answer", f"{address}: {said}")


def _problem(answer: urllib.error.HTTPError, address: str) -> Error:
    """Converts an answer to an error."""
    try:
        problem = json.loads(answer.read(_PROBLEM_BYTES))
        return Error(
            str(problem["kind"]),
            str(problem["title"]),
            problem.get("detail"),
            status=answer.code,
            request_id=problem.get("request_id") or answer.headers.get("x-request-id"),
            retry_after=problem.get("retry_after"),
        )
    except (KeyError, TypeError, ValueError, OSError, http.client.HTTPException):
        # Not from a service: from a proxy in between, or from another program at the address.
        kind = "unavailable" if answer.code in _WORTH_ANOTHER_TRY else "unreadable"
        detail = f"{address}: HTTP status {answer.code}"
        return Error(
            kind,
            "The answer is not from a service",
            detail,
            status=answer.code,
            way_out="Check the address: is it that of the services?",
        )
