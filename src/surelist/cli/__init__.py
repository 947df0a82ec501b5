"""The command line: parse, call one use case, print, exit. No statistics and no NumPy here.

Commands are imported when they are used, so that ``surelist --help`` is quick.
Exit codes: 0 done, 1 failure, 2 bad usage or bad input, 3 not certifiable, 4 the monitor has
raised an alarm, 5 something deserves a look (with --strict), and whatever a command documents for itself.
"""

from __future__ import annotations

import difflib
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any

import click

from surelist._version import __version__

# name: (module, attribute, one line for --help)
COMMANDS = {
    "calibrate": ("calibrate", "calibrate", "Certify a target from past candidates; write a policy."),
    "select": ("certify", "select", "Shortlist new candidates with a policy."),
    "show": ("certify", "show", "Print what a policy promises, its conditions and evidence."),
    "evaluate": ("certify", "evaluate", "Compare what a policy kept with its promise, on later labels."),
    "curve": ("certify", "curve", "For every list size: how many qualified are certified."),
    "list": ("calibrate", "list_", "How many of this very pool's list are qualified."),
    "plan": ("lifecycle", "plan", "How many calibration rows a target needs."),
    "watch": ("lifecycle", "watch", "Does the promise still hold? An alarm from reviewed pools."),
    "campaign": ("lifecycle", "campaign", "Screen pools under one promise; learn from reviews."),
    "label": ("labelling", "label", "Which rows to label; a certified list from a few labels."),
    "stop": ("labelling", "stop", "May a review stop? A test of what was not reviewed."),
    "validate": ("labelling", "validate", "Did decisions that are made keep enough?"),
    "drift": ("lifecycle", "drift", "Have the scores moved? Calibration rows against a pool."),
    "sql": ("certify", "sql", "Print a policy's selection as one SQL expression."),
    "demo": ("site", "demo", "Make an example, calibrate, select, and show the result."),
    "report": ("certify", "report", "Write the audit report of a policy."),
    "serve": ("service", "serve", "Start the app: page, API and record."),
    "token": ("service", "token", "Make, list and revoke tokens for the app."),
    "backup": ("service", "backup", "Copy the app's record to one file, and verify the copy."),
    "restore": ("service", "restore", "Make a record from a backup, and verify it."),
    "verify-log": ("service", "verify_log", "Check that the app's record is as it was written."),
    "promises": ("site", "promises", "Print what can be combined, and by which proof."),
    "docs": ("site", "docs", "Open the documentation that came with this installation."),
    "completion": ("site", "completion", "Print the shell completion script."),
}


# packages that have something to do when the process ends
TIDY_UP = {"pyspark", "uvicorn", "multiprocessing", "matplotlib"}


class ReaderLeftError(Exception):
    """Whoever reads our output has seen enough; click would make exit code 1 of a ``BrokenPipeError``."""


class HelpfulGroup(click.Group):
    """A group that says which command may have been meant."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that was named; "did you mean" where there is none."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            close = difflib.get_close_matches(args[0], known, n=1, cutoff=0.5)
            hint = f"Did you mean {close[0]!r}?" if close else f"The commands are {', '.join(known)}."
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)


class LateGroup(HelpfulGroup):
    """A group whose commands are imported on first use."""

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the words of the command line; may print help."""
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError as error:
            raise ReaderLeftError from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderLeftError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of a first encounter, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module behind a command."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"surelist.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row[2]) for name, row in COMMANDS.items()])


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="surelist")
def cli() -> None:
    """Shortlists with a proof.

    Past candidates with a score and a label in, a policy out; new candidates in, a
    shortlist out that provably holds enough qualified ones.

    \b
    Example:
      surelist demo
      surelist calibrate past.csv --score score --label qualified --expect 5 --pool-size 100 -o policy.json
      surelist select new.csv --policy policy.json -o shortlist.csv
    """


def main(argv: list[str] | None = None) -> None:
    """Entry point: errors become one line on stderr and an exit code."""
    try:
        code = run(argv)
    except KeyboardInterrupt:  # once more, while the first one was being told
        code = 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop but tidying up
    if "surelist._files" in sys.modules:
        sys.modules["surelist._files"].remove_unfinished()
    if code == 1 or not TIDY_UP & sys.modules.keys():
        os._exit(code)  # at once: Python takes a while, and after an interrupt may leave by a signal instead
    sys.exit(code)


def run(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; who reads our output may leave early."""
    try:
        code = _run(argv)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # closed by whoever started us
                stream.flush()
        return code
    except (BrokenPipeError, ReaderLeftError):
        pass
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
    return 0


def _run(argv: list[str] | None) -> int:
    from surelist.cli.output import PROGRESS

    words = sys.argv[1:] if argv is None else argv
    try:
        silent = words[:1] == ["serve"] or "--quiet" in words
        with plain_warnings(words), nullcontext() if silent else PROGRESS.running():
            outcome = cli.main(args=argv, prog_name="surelist", standalone_mode=False, color=_colour())
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted; nothing was written.", err=True)
        return 1
    except (BrokenPipeError, ReaderLeftError):
        raise
    except Exception as error:
        return _report(error, words)


@contextmanager
def plain_warnings(arguments: list[str]) -> Iterator[None]:
    """Warnings as one line in the words of the command line, without where in the code they come from."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        from surelist.cli.options import WARNED, warn

        WARNED.append(message)
        warn(message, arguments)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _report(error: Exception, arguments: list[str]) -> int:
    from surelist.cli.options import flag_names
    from surelist.errors import NotCertifiable, SurelistError, error_body

    if not isinstance(error, (SurelistError, OSError)):
        raise error
    code = 3 if isinstance(error, NotCertifiable) else 2 if isinstance(error, SurelistError) else 1
    body = error_body(error, flag_names(arguments))
    if detail := getattr(error, "detail", ""):  # where the record is, and what the database said
        body["message"] = f"{body['message']} {detail}"
    if "--json" in arguments:
        click.echo(json.dumps({"error": body}), err=True)
    else:
        mark = click.style("error:", fg="red", bold=True)
        click.echo(f"{mark} {body['message']}", err=True, color=_colour())
    return code


def _colour() -> bool | None:
    """No colour where NO_COLOR is set; otherwise click decides by the terminal."""
    return False if os.environ.get("NO_COLOR") else None
