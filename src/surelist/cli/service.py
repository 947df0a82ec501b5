"""serve, token, backup, restore, verify-log: the app and its record from the command line."""

from __future__ import annotations

import getpass
import json
import secrets
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec.structs import asdict

from surelist.cli import HelpfulGroup
from surelist.cli.options import as_json
from surelist.errors import InvalidInput, MissingDependency
from surelist.service.record.access import create_token, list_tokens, revoke_token
from surelist.service.record.connections import hidden
from surelist.service.record.database import Database
from surelist.service.record.record import Actor, Bound, Registry
from surelist.service.record.verify import Verdict, back_up, restore as restore_record, verify
from surelist.service.settings import MIB, Settings, data_folder

database_option = click.option(
    "--database", metavar="ADDRESS", help="SQLite file or postgresql://… [default: in your data folder]"
)


@click.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8400, help="Port; 0 takes a free one.")
@database_option
@click.option("--data", type=click.Path(file_okay=False), help="Folder for the record and uploads.")
@click.option("--login", is_flag=True, help="Ask for a token. Needed on any address but this machine's own.")
@click.option("--no-token", is_flag=True, help="Without a login, let every user of this machine in.")
@click.option("--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS",
              help="Proxy whose X-Forwarded-For is believed; an address or network. Repeat.")  # fmt: skip
@click.option("--https", is_flag=True, help="Pages are reached by https, through a proxy: secure cookies.")
@click.option("--name", "names", multiple=True, help="Host name under which requests are answered. Repeat.")
@click.option("--max-upload", type=int, default=512, help="Largest upload, in MiB.")
@click.option("--work-seconds", type=click.IntRange(min=1), default=300,
              help="Longest work on one request; then it is stopped.")  # fmt: skip
@click.option("--keep-uploads", type=int, default=0,
              help="Seconds to keep uploads after their result is made.")  # fmt: skip
@click.option("--keep-results", type=int, default=3600,
              help="Seconds a shortlist can be downloaded from the page.")  # fmt: skip
@click.option("--longest-keep", type=click.IntRange(min=0), default=90,
              help="Days that candidates can be kept for reviewing at most.")  # fmt: skip
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser.")
def serve(open_: bool, **options: Any) -> None:
    """Start the app: a page for people, an API for programs, a record for auditors.

    \b
    Example:
      surelist serve --open
      surelist serve --host 0.0.0.0 --login --database postgresql://surelist@db/surelist
    """
    _needs_service()
    from surelist.service import middleware
    from surelist.service.app import create_app

    settings = _settings(**options)
    if settings.login:
        with _registry(settings.database) as registry:
            _require_token(registry)
    app = create_app(settings)
    listener = middleware.listen(settings.host, settings.port)
    port = listener.getsockname()[1]
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    key = f"?token={settings.local_token}" if settings.local_token else ""
    address = f"http://{shown}:{port}/{key}"
    click.echo(f"surelist is at {address}  (stop with Ctrl+C)")
    if open_:
        webbrowser.open(address)
    middleware.run(app, listener)


@click.group(cls=HelpfulGroup)
def token() -> None:
    """Make, list and revoke the tokens that programs and people log in with."""


@token.command("create")
@click.option("--role", type=click.Choice(["viewer", "operator", "admin"]), required=True,
              help="viewer reads; operator also calibrates and selects; admin also retires.")  # fmt: skip
@click.option("--name", required=True, help="Whose it is; appears in the record.")
@click.option("--policy", "policies", multiple=True, metavar="HASH",
              help="A policy it may use. Repeat for several; default: all.")  # fmt: skip
@click.option("--days", type=click.IntRange(min=1), help="Days until it expires.")
@database_option
@as_json
def create(
    role: str, name: str, policies: tuple[str, ...], days: int | None, database: str | None, json_: bool
) -> None:
    """Make a token. It is shown once and stored as a hash.

    \b
    Example:
      surelist token create --role operator --name "nightly job" --days 90
    """
    with _registry(database) as registry:
        made, text = create_token(_operator(registry), name, role, policies, days)
    if json_:
        click.echo(json.dumps({"id": made.id, "name": name, "role": role, "token": text}))
    else:
        where = hidden(_address(database))
        click.echo(f"For the service on the record {where}. Keep it now, it is not shown again:", err=True)
        click.echo(text)


@token.command("list")
@database_option
@as_json
def list_(database: str | None, json_: bool) -> None:
    """List tokens, without their secrets."""
    with _registry(database) as registry:
        tokens = list_tokens(registry)
    if json_:
        shown = [{**asdict(each), "policies": each.policies, "usable": each.usable} for each in tokens]
        click.echo(json.dumps(shown))
        return
    for each in tokens:
        state = "in use" if each.usable else "revoked" if each.revoked else "expired"
        only = [digest[:12] for digest in each.policies or ()]
        scope = f", {'policy' if len(only) == 1 else 'policies'} {', '.join(only)}" if only else ""
        click.echo(f"{each.id}  {each.role:8}  {state:8}  {each.name}{scope}")


@token.command("revoke")
@click.argument("ident", metavar="ID")
@database_option
def revoke(ident: str, database: str | None) -> None:
    """End the token ID and every session begun with it, at once."""
    with _registry(database) as registry:
        revoke_token(_operator(registry), ident)
    click.echo(f"Token {ident} is revoked.")


@click.command(no_args_is_help=True)
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@database_option
def backup(output: Path, database: str | None) -> None:
    """Copy the whole record, while the app may go on, to the new file OUTPUT; then verify the copy.

    It is one SQLite file, whatever the record is on. Keep it as you keep the record: the salts of
    policies are in it. Keep the receipt it prints somewhere else.

    \b
    Example:
      surelist backup record-monday.db
    """
    _print_copy(back_up(_address(database), output), str(output))


@click.command(no_args_is_help=True)
@click.argument("copy", metavar="BACKUP", type=click.Path(dir_okay=False, path_type=Path))
@database_option
def restore(copy: Path, database: str | None) -> None:
    """Make a new record from BACKUP, where there is none yet; then verify it.

    \b
    Example:
      surelist restore record-monday.db --database new/surelist.db
    """
    _print_copy(restore_record(copy, _address(database)), "the new record")


def _print_copy(verdict: Verdict, where: str) -> None:
    click.echo(f"{verdict.entries:,} entries in {where}, verified. Head: {verdict.head}")


@click.command("verify-log")
@database_option
@click.option("--receipt", "receipts", multiple=True, metavar="SEQ:HASH",
              help="An entry noted elsewhere that must be in the log. Repeat.")  # fmt: skip
@as_json
def verify_log(database: str | None, receipts: tuple[str, ...], json_: bool) -> None:
    """Check the whole record; exit code 4 if anything was edited, removed or inserted.

    Opens it for reading only and creates nothing: a missing or empty database is an error.

    A chain cannot show by itself that its last entries were cut off: give a receipt, the
    last one you have from an API answer, a report or the record page.

    \b
    Example:
      surelist verify-log --receipt 17:9f2c…
    """
    verdict = verify(Database(_address(database), read_only=True), receipts)
    if json_:
        click.echo(json.dumps({"intact": verdict.intact, **asdict(verdict)}))
    else:
        for problem in verdict.problems:
            click.echo(problem, err=True)
        state = "intact" if verdict.intact else "NOT intact"
        click.echo(f"{verdict.entries:,} entries, {state}. Head: {verdict.head}")
    if not verdict.intact:
        raise click.exceptions.Exit(4)


def _settings(
    *, data: str | None, database: str | None, no_token: bool, max_upload: int, longest_keep: int, **said: Any
) -> Settings:
    folder = Path(data) if data else data_folder()
    source, kept = click.get_current_context().get_parameter_source, "keep_uploads keep_results longest_keep"
    return Settings(
        database=database or str(folder / "surelist.db"), folder=folder, max_upload=max_upload * MIB,
        longest_keep=longest_keep * 86_400, **said,
        # given by somebody, so that a page does not change them
        fixed=frozenset(name for name in kept.split() if source(name) is not ParameterSource.DEFAULT),
        local_token=None if said["login"] or no_token else secrets.token_urlsafe(24),
    )  # fmt: skip


def _address(given: str | None) -> str:
    return given or str(data_folder() / "surelist.db")


@contextmanager
def _registry(address: str | None) -> Iterator[Registry]:
    database = Database(_address(address))
    database.prepare()
    registry = Registry(database)
    try:
        yield registry
    finally:
        registry.close()


def _require_token(registry: Registry) -> None:
    if not any(each.usable for each in list_tokens(registry)):
        raise InvalidInput(
            "login",
            "there is no token to log in with. Make one first: surelist token create --role admin --name "
            "NAME, with the same --database.",
        )


def _needs_service() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            "The app needs the service extra: pip install 'surelist[service]'."
        ) from error


def _operator(registry: Registry) -> Bound:
    """The record as whoever is at the command line may use it."""
    try:
        return Bound(registry, Actor(f"command line ({getpass.getuser()})", "admin"))
    except (OSError, KeyError):
        return Bound(registry, Actor("command line", "admin"))
