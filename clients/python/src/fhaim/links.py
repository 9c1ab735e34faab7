"""Links to results, as people send them: ``SERVER/shared/LINK#SECRET``. The part after the ``#`` is
in no call's address. A header carries it, only to the link's own server."""

from __future__ import annotations

import re
from uuid import UUID

from fhaim.errors import Error
from fhaim.models import LinkMade

_LINK = re.compile(r"(?P<server>.+)/shared/(?P<link>[0-9a-fA-F-]{36})#(?P<secret>[A-Za-z0-9_-]+)")


def _server(generation: str) -> str:
    """Returns the address of the page, if the services are behind one origin."""
    return generation.rstrip("/").removesuffix("/generation")


def written(generation: str, made: LinkMade) -> str:
    """Returns the link to send."""
    return f"{_server(generation)}/shared/{made.link.id}#{made.secret}"


def read(generation: str, link: str) -> tuple[UUID, str]:
    """Returns a link's identifier and its secret."""
    found = _LINK.fullmatch(link.strip())
    if found is None:
        # The error does not quote the text, because it may contain a secret.
        detail = "use SERVER/shared/LINK#SECRET, as make_link returns it"
        raise Error("invalid", "This is not a link", detail)
    server = found["server"].rstrip("/")
    if server != _server(generation):
        detail = f"{server}: its secret is not sent to any other; create a Client for that server"
        raise Error("invalid", "The link belongs to another server", detail)
    try:
        return UUID(found["link"]), found["secret"]
    except ValueError:
        raise Error("invalid", "This is not a link", "its identifier is not valid") from None
