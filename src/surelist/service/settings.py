"""Everything that can be set about the service, in one frozen value."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from surelist.errors import InvalidInput

MIB = 1 << 20


class Settings(Struct, frozen=True):
    """How one service runs. The defaults are for one person on one machine.

    ``database`` is a path of an SQLite file or a ``postgresql://`` address. Uploads are removed
    ``keep_uploads`` seconds after their result was made (0: at once); shortlists can be
    downloaded for ``keep_results`` seconds, or for longer, up to ``longest_keep``, where a person chooses so
    for reviewing; an upload nobody finished goes after ``draft_life``.
    Without a login whoever has ``local_token`` is admin; where there is none, everyone on this machine.
    Admins change some of these on the page (``record.live_settings``), but for those that are ``fixed`` by
    how the service was started.
    ``trusted_proxies`` are the addresses or networks whose ``X-Forwarded-For`` is believed.
    """

    database: str
    folder: Path
    host: str = "127.0.0.1"
    port: int = 8400
    login: bool = False
    https: bool = False
    names: tuple[str, ...] = ()
    max_upload: int = 512 * MIB
    max_json: int = 32 * MIB
    max_rows: int = 100_000_000
    max_calibration_rows: int = 20_000_000
    max_columns: int = 2_000
    keep_uploads: int = 0
    keep_results: int = 3600
    longest_keep: int = 90 * 86400
    fixed: frozenset[str] = frozenset()
    draft_life: int = 3600
    session_life: int = 12 * 3600
    login_attempts: int = 10
    local_token: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    work_seconds: int = 300
    work_memory: int = 4096 * MIB

    def __post_init__(self) -> None:
        for each in self.trusted_proxies:
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise InvalidInput(
                    "trusted_proxy", expected="an address or network such as 10.0.0.0/8", got=repr(each)
                ) from None
        if not self.login and not is_loopback(self.host):
            raise InvalidInput(
                "host",
                f"{self.host} can be reached from other machines, so a login is needed. Make a token with "
                "`surelist token create --role admin`, then add --login.",
            )

    def with_chosen(self, chosen: Mapping[str, Any]) -> Settings:
        """As an admin chose them on the page; what is fixed stays."""
        return replace(self, **{name: value for name, value in chosen.items() if name not in self.fixed})

    @property
    def open_to_all(self) -> bool:
        """Whether everyone who reaches the service is admin."""
        return not self.login and self.local_token is None

    def client_of(self, peer: str, forwarded: str) -> str:
        """Who is asking: the last address that no trusted proxy has added. IPv6 by its /64 network."""
        hops = [each.strip() for each in forwarded.split(",") if each.strip()]
        while hops and self._trusts(peer):
            peer = hops.pop()
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return peer[:100]
        return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else peer

    def _trusts(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        return any(address in ipaddress.ip_network(each) for each in self.trusted_proxies)

    @property
    def spool(self) -> Path:
        """Where uploads and shortlists wait, readable by this user only."""
        return self.folder / "spool"

    @property
    def allowed_names(self) -> frozenset[str]:
        """Host names under which requests are answered: a guard against DNS rebinding."""
        names = {"localhost", "127.0.0.1", "[::1]", self.host.lower(), *(n.lower() for n in self.names)}
        return frozenset(names)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address bound to ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def data_folder() -> Path:
    """The user's data folder for surelist, by the custom of the system."""
    if chosen := os.environ.get("SURELIST_HOME"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "surelist"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "surelist"
    return Path(os.environ.get("XDG_DATA_HOME", str(Path.home() / ".local" / "share"))) / "surelist"
