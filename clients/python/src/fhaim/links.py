"""Links to results, as people send them: ``SERVER/shared/LINK#SECRET``. What is behind the ``#`` is part
of no call's address; it is shown in a header, to the server of the link and to no other."""

from __future__ import annotations

import re
from uuid import UUID

from fhaim.errors import Error
from fhaim.models import LinkMade

_LINK = re.compile(r"(?P<server>.+)/shared/(?P<link>[0-9a-fA-F-]{36})#(?P<secret>[A-Za-z0-9_-]+)")


def _server(generation: str) -> str:
    """Where the page is, if the services are behind one origin."""
    return generation.rstrip("/").removesuffix("/generation")


def written(generation: str, made: LinkMade) -> str:
    """The link to send."""
    return f"{_server(generation)}/shared/{made.link.id}#{made.secret}"


def read(generation: str, link: str) -> tuple[UUID, str]:
    """A link's identifier and its secret."""
    found = _LINK.fullmatch(link.strip())
    if found is None:
        # It is not repeated: it may have a secret all the same.
        raise Error("invalid", "This is no link", "SERVER/shared/LINK#SECRET, as make_link gives it")
    server = found["server"].rstrip("/")
    if server != _server(generation):
        detail = f"{server}, and its secret is shown to no other: make a Client of that server"
        raise Error("invalid", "The link is of another server", detail)
    try:
        return UUID(found["link"]), found["secret"]
    except ValueError:
        raise Error("invalid", "This is no link", "its identifier is none") from None
