"""Runs the program `fhaim`, which encrypts and signs on this machine.

Plaintext goes from the table only to that program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fhaim.errors import Error
from fhaim.native import here

@dataclass(frozen=True)
class Purpose:
    """A purpose of running the program: the texts of its errors, and whether its remarks are shown.
    """

    kind: str
    title: str
    way_out: str | None
    remarks: bool


UPLOAD = Purpose(
    "upload-failed",
    "The table was not uploaded",
    "Fix the problem and upload again: uploaded objects are not sent twice.",
    True,
)
"""Encrypting a table."""

USED_BEFORE = "error: these records were used before"
"""The program stopped because it would have used records again."""

CONSENT = Purpose("not-agreed", "The holder's key was not used", None, False)
"""Writing a card, or signing: the caller decides whether to show the program's remarks."""


def program(name: str | os.PathLike[str] | None) -> str:
    """Returns the program's path: the given one, that of FHAIM_BIN, or `fhaim` on the search path.
    """
    wanted = os.fspath(name or os.environ.get("FHAIM_BIN") or "fhaim")
    found = shutil.which(wanted)
    if found is None:
        raise Error(
            "program-missing",
            "The program that encrypts was not found",
            f"{wanted!r} is not an executable program",
            way_out="Install it (cargo install --path crates/cli), or set FHAIM_BIN to its path. "
            "Tables are encrypted on this machine, never by a service.",
        )
    return found


def state_folder() -> Path:
    """Returns the folder where interrupted uploads keep the data to resume them."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "fhaim" / "python"


def memory_folder() -> Path:
    """Returns the program's own folder, where it remembers records and ledgers."""
    own = os.environ.get("FHAIM_MEMORY_DIR") or os.environ.get("FHAIM_CONFIG_DIR")
    base = os.environ.get("XDG_CONFIG_HOME")
    return Path(own) if own else (Path(base) if base else Path.home() / ".config") / "fhaim"


class Program:
    """The program, signed in with an API key while it is needed."""

    def __init__(self, path: str, folder: Path, purpose: Purpose = UPLOAD) -> None:
        self._path, self._folder, self._purpose = path, folder, purpose

    @contextmanager
    def signed_in(self, endpoints: Sequence[str], api_key: str) -> Iterator[None]:
        """Signs in with a key, and removes it at the end."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with tempfile.NamedTemporaryFile("w", dir=self._folder) as file:  # owner-only
                file.write(api_key)
                file.flush()
                self.run("account", "login", *endpoints, "--api-key-file", file.name)
            yield
        finally:
            (self._folder / "login.json").unlink(missing_ok=True)

    def run(
        self,
        *arguments: str,
        meanwhile: Callable[[], None] | None = None,
        show: Callable[[str], object] | None = None,
    ) -> str:
        """Runs the program to its end and returns its output. Calls `meanwhile` every second, and
        `show` at the end with its messages."""
        # The login belongs to this upload; the memory of records belongs to the machine.
        environment = {
            **os.environ,
            "FHAIM_CONFIG_DIR": str(self._folder),
            "FHAIM_MEMORY_DIR": str(memory_folder()),
        }
        command = [self._path, "--quiet", *arguments]
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise Error(
                "program-missing",
                "The program that encrypts cannot be run",
                f"{self._path}: {error.strerror}",
            ) from error
        with process:
            try:
                printed, said = _followed(process, meanwhile)
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            reason = said.strip().removeprefix("error: ") or f"exit status {process.returncode}"
            purpose = self._purpose
            if USED_BEFORE in said:
                raise Error("used-before", purpose.title, here(reason))
            raise Error(purpose.kind, purpose.title, reason, way_out=purpose.way_out)
        if show is not None:
            show(said.strip())
        if said.strip() and self._purpose.remarks:  # such as that these records were used before
            warnings.warn(said.strip(), stacklevel=4)
        return printed


def _followed(
    process: subprocess.Popen[str], meanwhile: Callable[[], None] | None
) -> tuple[str, str]:
    while True:
        try:
            return process.communicate(timeout=1.0)
        except subprocess.TimeoutExpired:
            if meanwhile is not None:
                meanwhile()
