"""The session: signs in once, and is renewed before it expires."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fhaim.api import Generation
from fhaim.errors import Error
from fhaim.models import Credentials, KeyExchange, Refresh, Session
from fhaim.transport import Tokens, Transport

MARGIN = 30.0
"""Number of seconds before its expiry at which a session is renewed."""


class Login:
    """Tokens for all services, a separate one for each, so that no service can use its token
    elsewhere. Threads may share a login: a refresh token is valid until its successor is used, so
    they renew it one at a time."""

    def __init__(self, generation: str, timeout: float) -> None:
        self._generation = Generation(Transport(generation, self.of("generation"), timeout))
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._expires = 0.0
        self._refresh: str | None = None
        self.api_key: str | None = None
        """The API key of the session, if it was created with one."""

    def __repr__(self) -> str:
        return f"Login(signed_in={self._session is not None})"

    def sign_in(self, email: str, password: str) -> None:
        credentials = Credentials(email=email, password=password)
        self._begin(lambda: self._generation.sign_in(credentials), None)

    def use_api_key(self, key: str) -> None:
        self._begin(lambda: self._generation.exchange_key(KeyExchange(api_key=key)), key)

    def sign_out(self) -> None:
        """Discards the session, and ends it at the service if it was created with a password."""
        with self._lock:
            refresh, self._refresh, self._session, self.api_key = self._refresh, None, None, None
            if refresh is not None:
                self._generation.end_session(Refresh(refresh_token=refresh))

    def of(self, service: str) -> Tokens:
        """The tokens of one service."""
        return _Of(self, service)

    def has(self, service: str) -> bool:
        """Returns whether the session has a token for a service."""
        with self._lock:
            return self._session is not None and _tokens(self._session)[service] is not None

    def access(self, service: str, refused: str | None = None) -> str:
        """Returns a service's token that has not expired and is not the rejected one."""
        with self._lock:
            current = self._session
            if current is None:
                raise Error(
                    "signed-out", "Not signed in", way_out="Call sign_in or use_api_key first."
                )
            if _token(current, service) == refused or time.monotonic() > self._expires - MARGIN:
                current = self._keep(self._renewed())
            return _token(current, service)

    def _begin(self, session: Callable[[], Session], key: str | None) -> None:
        with self._lock:
            self._keep(session())
            self.api_key = key

    def _renewed(self) -> Session:
        if self.api_key is not None:
            return self._generation.exchange_key(KeyExchange(api_key=self.api_key))
        if self._refresh is None:
            raise Error("signed-out", "The session has ended", way_out="Sign in again.")
        try:
            return self._generation.refresh_session(Refresh(refresh_token=self._refresh))
        except Error as error:
            if error.kind != "unauthenticated":
                raise
            self._session = None
            raise Error(
                "signed-out",
                "The session has ended",
                error.detail,
                way_out="Sign in again.",
                status=error.status,
            ) from error

    def _keep(self, session: Session) -> Session:
        # A token as short as the margin is used for most of its life.
        life = max(session.expires_in - MARGIN, session.expires_in / 2) + MARGIN
        self._expires = time.monotonic() + life
        self._session, self._refresh = session, session.refresh_token
        return session


class _Of:
    """The tokens of one service."""

    def __init__(self, login: Login, service: str) -> None:
        self._login, self._service = login, service

    def access(self, refused: str | None = None) -> str:
        """Returns a token that has not expired and is not the rejected one."""
        return self._login.access(self._service, refused)


def _tokens(session: Session) -> dict[str, str | None]:
    """Returns the token for calls to each service."""
    return {
        "generation": session.access_token,
        "computation": session.computation_token,
        "witness": session.witness_token,
        "crypto": session.crypto_token,
    }


def _token(session: Session, service: str) -> str:
    """Returns the token for calls to a service."""
    token = _tokens(session)[service]
    if token is None:
        raise Error(
            "unavailable",
            f"The generation service gave no token for the {service} service",
            way_out=f"Ask the operator to add peers.{service} to the generation service's configuration.",
        )
    return token
