"""Datasets of several holders: fingerprints of keys, and the status of each holder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from fhaim.errors import Error
from fhaim.models import Dataset, KeySet, Member, Partition, Roster, Upload


@dataclass(frozen=True)
class Standing:
    """The status of one holder of a dataset."""

    number: int
    """Its place in the roster, from 0."""
    email: str
    """The address that its account signs in with."""
    fingerprint: str
    """The fingerprint of its key, which people compare outside of the system."""
    signed: bool
    """Whether it has signed the terms, the roster and the keys."""
    withdrawn: bool
    """Whether it prevents further runs."""
    uploaded: bool
    """Whether its part is complete."""
    objects_present: int
    """Number of uploaded objects of its part."""
    objects: int | None
    """Number of objects of its part; `None` before its upload has begun."""

    @property
    def ready(self) -> bool:
        """Whether a run does not have to wait for it."""
        return self.signed and self.uploaded and not self.withdrawn


def fingerprint(holder: Member) -> str:
    """Returns the fingerprint of a holder's key: eight groups of four hexadecimal digits."""
    digest = hashlib.sha256(bytes.fromhex(holder.key)).hexdigest()
    return "-".join(digest[place : place + 4] for place in range(0, 32, 4))


def roster(holders: Sequence[Member], honest: int) -> tuple[Roster, int]:
    """Returns the roster of some cards, and the most records of their holders together."""
    bounds = [holder.record_bound for holder in holders]
    partition: Partition
    if any(holder.columns for holder in holders):
        partition, bound = "columns", max(bounds)
    else:
        partition, bound = "records", sum(bounds)
    return Roster(holders=list(holders), honest=honest, partition=partition), bound


def standings(dataset: Dataset, keys: KeySet | None, upload: Upload | None) -> list[Standing]:
    """Returns the status of all holders, in the roster's order, or an empty list if there is one.
    """
    if dataset.terms.roster is None:
        return []
    emails = dataset.holders or []
    consent = keys.holders or [] if keys is not None else []
    parts = {part.number: part for part in upload.contributions} if upload is not None else {}
    found = []
    for number, holder in enumerate(dataset.terms.roster.holders):
        part = parts.get(number)
        agreed = consent[number] if number < len(consent) else None
        found.append(
            Standing(
                number=number,
                email=emails[number] if number < len(emails) else "",
                fingerprint=fingerprint(holder),
                signed=agreed is not None and agreed.signed,
                withdrawn=agreed is not None and agreed.withdrawn,
                uploaded=part is not None and part.state == "complete",
                objects_present=0 if part is None else part.objects_present,
                objects=None if part is None else part.objects,
            )
        )
    return found


def must_agree(all_holders: Sequence[Standing]) -> None:
    """Rejects a run that the key service would not begin: it would fail, but still count."""
    missing = [one.email or f"holder {one.number + 1}" for one in all_holders if not one.signed]
    left = [one.email or f"holder {one.number + 1}" for one in all_holders if one.withdrawn]
    if left:
        raise Error(
            "not-agreed",
            "No run can begin after a holder withdrew",
            f"withdrew: {', '.join(left)}",
            way_out="The remaining holders can create another dataset.",
        )
    if missing:
        raise Error(
            "not-agreed",
            "No run can begin before all holders have signed",
            f"not signed: {', '.join(missing)}",
            way_out="Each holder signs with Client.sign, or `fhaim dataset sign`.",
        )
