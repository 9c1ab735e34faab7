"""Receipts of each dataset's ledger, with which this machine detects a crypto service that was set
back to an older copy.

The ledger is a hash chain, and every answer about it carries a signed receipt of its end. A service
that was set back has forgotten releases and cannot detect that by itself. Therefore every caller
sends its last receipt and checks the answer against it. The program `fhaim` uses the same files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from pathlib import Path
from uuid import UUID

from fhaim.codec import decode, encode
from fhaim.errors import Error
from fhaim.models import Receipt
from fhaim.upload import memory_folder


class Receipts:
    """The last receipt of each dataset of one crypto service: in files, or in memory if files
    cannot be written."""

    def __init__(self, crypto: str) -> None:
        self._service = hashlib.sha256(crypto.encode()).hexdigest()
        self._known: dict[UUID, Receipt] = {}

    def load(self, dataset: UUID) -> Receipt | None:
        """Returns the last receipt of a dataset."""
        known = [self._known.get(dataset), self._read(dataset)]
        return max((one for one in known if one), key=lambda one: one.height, default=None)

    def keep(self, dataset: UUID, shown: Receipt | None, told: Receipt) -> None:
        """Checks the receipt of an answer against the one sent with the call, and stores it."""
        if shown is not None and (
            told.height < shown.height or (told.height == shown.height and told.head != shown.head)
        ):
            raise Error(
                "restored",
                "The crypto service was set back to an older copy of the ledger",
                str(dataset),
                way_out="No more releases of the dataset are allowed: tell the operator. Finished "
                "tables stay; a new dataset over the same records adds its epsilon to the spending.",
            )
        last = self.load(dataset)
        if last is None or last.height < told.height:
            self._known[dataset] = told
            self._write(dataset, told)

    def _path(self, dataset: UUID) -> Path:
        return memory_folder() / "receipts" / self._service / f"{dataset}.json"

    def _read(self, dataset: UUID) -> Receipt | None:
        try:
            read: Receipt = decode(Receipt, json.loads(self._path(dataset).read_text("utf-8")))
        except (OSError, ValueError, Error):
            return None
        return read

    def _write(self, dataset: UUID, receipt: Receipt) -> None:
        path = self._path(dataset)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
                json.dump(encode(receipt), file)
            os.replace(file.name, path)
        except OSError:
            pass  # kept in memory while this program runs


def header(receipt: Receipt | None) -> str | None:
    """Returns the header that carries a receipt."""
    if receipt is None:
        return None
    return base64.urlsafe_b64encode(json.dumps(encode(receipt)).encode()).decode().rstrip("=")
