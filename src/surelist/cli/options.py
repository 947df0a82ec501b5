"""The command line's words for what can be asked: options from the one table, errors in flags."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

from surelist._names import OptionNames
from surelist.errors import InvalidInput
from surelist.promises import kinds
from surelist.promises.options import OPTIONS, SHARED, Share, Sizes, WholeShare
from surelist.promises.promise import Promise
from surelist.promises.proved import proved_from

if TYPE_CHECKING:
    from surelist.promises.policy import Policy
    from surelist.workflows.source import Hints

Decorator = Callable[[Any], Any]


def _drawable(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A picture that cannot be drawn is refused before anything is done."""
    if path is not None:
        from surelist.drawing.axes import check_picture

        check_picture(path)
    return path


as_json = click.option("--json", "json_", is_flag=True, help="Print JSON, for machines.")


def plot_and_json(command: Callable[..., object]) -> Any:
    """``--json``; and ``--plot``, a picture of it in a file that is none of its others."""

    @wraps(command)
    def checked(**given: Any) -> Any:
        if given["plot"] is not None:
            _refuse_names_of_files(given["plot"], given)
        return command(**given)

    picture = file_option("--plot", callback=_drawable, help="Also draw it: .png, .svg or .pdf.")
    return stacked(picture, as_json)(checked)


def _refuse_names_of_files(plot: Path, given: Mapping[str, object]) -> None:
    files = (each for each in click.get_current_context().command.params if isinstance(each.type, click.Path))
    for each in files:
        path = given.get(each.name or "")
        if each.name != "plot" and isinstance(path, str | Path) and realpath(path) == realpath(plot):
            name = each.opts[-1] if isinstance(each, click.Option) else each.human_readable_name
            raise InvalidInput("plot", f"{plot} is {name} too; choose another name for the picture.")


def file_argument(name: str, **more: Any) -> Decorator:
    """An argument that is a file."""
    return click.argument(name, type=click.Path(path_type=Path), **more)


def file_option(*names: str, help: str, **more: Any) -> Decorator:
    """An option that is a file."""
    return click.option(*names, type=click.Path(path_type=Path), help=help, **more)


def output_option(help: str, *, required: bool = True) -> Decorator:
    """``-o``: the file to write."""
    return file_option("-o", "--output", help=help, required=required)


state_argument = file_argument("state")
STREAM = click.Path(allow_dash=True)  # a file, or - for stdin or stdout
policy_argument = click.argument("policy_path", metavar="POLICY", type=STREAM)


def read_policy(path: str) -> Policy:
    """The policy in a file, or on stdin."""
    from surelist.promises.policy import Policy

    return Policy.loads(sys.stdin.read(), "stdin") if path == "-" else Policy.load(path)


STRICT = 5  # exit code of a command that was asked to be strict and found something to look at
WARNED: list[Warning | str] = []  # while the command ran


def strict_option(command: Callable[..., Sequence[str]]) -> Any:
    """``--strict`` and ``--quiet``, for commands that return what deserves a look, one sentence each."""

    @wraps(command)
    def checked(*, strict: bool, quiet: bool, **given: Any) -> int:
        if quiet and given["json_"]:
            raise click.UsageError("--quiet and --json do not go together; leave one out.")
        WARNED.clear()
        found = command(quiet=quiet, **given)
        for each in found if quiet else ():
            warn(each)
        return STRICT if strict and (WARNED or found) else 0

    return stacked(
        click.option("--strict", is_flag=True, help=f"Exit with code {STRICT} if something deserves a look."),
        click.option("--quiet", is_flag=True, help="Print warnings and errors only."),
    )(checked)


def warn(said: Warning | str, words: Sequence[str] = ()) -> None:
    """One warning on stderr."""
    click.echo(f"{click.style('warning:', fg='yellow', bold=True)} {in_flags(said, words)}", err=True)


class ShareType(click.types.FloatParamType):
    """A number that may have been said in percent."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A float; of 95% the error asks whether 0.95 was meant."""
        from surelist._scalars import share_meant

        if isinstance(value, str) and value.strip().endswith("%"):
            self.fail(f"expected a number between 0 and 1, got {value!r}. {share_meant(value)}", param, ctx)
        return super().convert(value, param, ctx)


SHARE = ShareType()


def option(name: str, *, more: str = "", **changes: object) -> Decorator:
    """One option as the table describes it; ``changes`` go to click, ``more`` to the end of the help."""
    described = OPTIONS.get(name) or SHARED.get(name) or kinds.fields()[name]  # no kind is imported before
    bare = name.rpartition(".")[2]
    settings: dict[str, Any] = {"help": described.help + more, "metavar": described.metavar}
    if described.kind is bool:
        settings["is_flag"] = True
    elif described.default == ():
        settings["multiple"] = True
    else:
        settings.update(type=_type(described.kind), default=described.default)
    settings.update(changes)
    return click.option(flag(bare), bare, **settings)


def options(*names: str, **changes: Any) -> Decorator:
    """Several options, in this order."""
    return stacked(*(option(name, **changes) for name in names))


def stacked(*decorators: Decorator) -> Decorator:
    """Decorators as one, the first on top."""

    def decorate(command: object) -> Any:
        for each in reversed(decorators):
            command = each(command)
        return command

    return decorate


new_state = stacked(output_option("State file to write."), as_json)


def flag(name: str) -> str:
    """A name of the table as it is typed."""
    return f"--{name.replace('_', '-')}"


def _type(kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    return {Share: SHARE, WholeShare: SHARE, Sizes: str}.get(kind, kind)


class PromiseOption(click.Option):
    """A flag that says what is promised."""


class FieldOption(click.Option):
    """A field of promises that no such flag sets."""


# headings in help texts, and their options in order; others are the command's own and come first
HEADINGS = {
    "What is promised": (
        "pool_size", "alpha", "also", "rule", "calibration_share", "ties",
    ),
    "Columns": ("score", "label", "id", "pool", "pool_column", "other_score"),
    "Groups": ("group", "target", "purpose", "group_cutoff", "group_split", "group_rows"),
    "Labels": (
        "pos_label", "neg_label", "missing_labels", "unlabelled", "audit_rate", "audited_below",
        "probability", "lowest_rate", "lowest_score", "false_positive", "false_negative", "longest",
    ),
    "Reading files": ("sheet", "header_row", "decimal", "on_bad_rows"),
    "Engine": ("engine", "spark_master"),
    "Output": ("output", "reason", "rank", "plot", "json_", "strict", "quiet", "help"),
}  # fmt: skip


class HeadedCommand(click.Command):
    """A command with many options, which stand under headings in its help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Promises first, then what goes with them."""
        shown = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        left = {"help" if "--help" in each.opts else str(each.name): each for each in shown}
        flags, fields = (
            [name for name, each in left.items() if isinstance(each, sort)]
            for sort in (PromiseOption, FieldOption)
        )
        sections: dict[str, list[Any]] = {"Options": []}
        for heading, names in HEADINGS.items():
            listed = [*flags, *names, *fields] if heading == "What is promised" else names
            sections[heading] = [left.pop(name).get_help_record(ctx) for name in listed if name in left]
        sections["Options"] = [each.get_help_record(ctx) for each in left.values()]
        for heading, records in sections.items():
            if visible := [each for each in records if each is not None]:
                with formatter.section(heading):
                    formatter.write_dl(visible)


def promise_flags(evidence: str = "rows") -> Decorator:
    """The flags of every promise that has a proof from evidence of this sort."""
    offered = [each for each in kinds.classes() if proved_from(each, evidence)]
    rows = evidence == "rows"
    return stacked(*(_promise_flag(name, at, each, rows) for each in offered for name, at in each.flags))


def _promise_flag(name: str, field: str, promise: type[Promise], rows: bool) -> Decorator:
    described = kinds.fields_of(promise)[field]
    promised = promise.help.removesuffix(".").partition(";")[0] + "."  # without what it needs of rows
    return click.option(
        flag(name), name, cls=PromiseOption, type=_type(described.kind), metavar=described.metavar,
        help=promise.help if rows else promised,
    )  # fmt: skip


def field_options() -> Decorator:
    """The fields of all promises, beside what their flags set."""
    return options(*_own_fields(), cls=FieldOption)


def _own_fields() -> list[str]:
    by_flag = {field for _, _, field in _flags()}
    return [name for name in kinds.fields() if name not in by_flag and name != "pool_size"]


reading_options = options("sheet", "header_row", "decimal", "on_bad_rows", "engine", "spark_master")


def hints_in(given: dict[str, Any]) -> Hints:
    """What was said about reading the file, taken out of what was given."""
    from surelist.workflows.source import Hints

    names = ("sheet", "header_row", "decimal", "pos_label", "neg_label")
    return Hints(**{name: given.pop(name) for name in names if name in given})


def asked(given: dict[str, object]) -> dict[str, Any]:
    """What was asked for, by the names of the table: --expect 5 is a promise and its k."""
    said = [(kind, name, field) for kind, name, field in _flags() if given.get(name) is not None]
    if given.get("group") or given.get("target"):
        if said:
            raise click.UsageError('With --group, say the promise per group: --target "name=K/M".')
        return given
    if len(said) != 1:
        offered = ", ".join(flag(name) for _, name, _ in _flags() if name in given)
        also = " Others of the same list go with --also." if "also" in given and said else ""
        raise click.UsageError(f"Say what to promise: one of {offered}.{also}")
    kind, name, field = said[0]
    return {**given, **{each: None for _, each, _ in _flags()}, "promise": kind, field: given[name]}


@cache
def _flags() -> tuple[tuple[str, str, str], ...]:
    """Kind, flag and the field that it sets."""
    pairs = zip(kinds.KINDS, kinds.classes(), strict=True)
    return tuple((kind, name, field) for kind, each in pairs for name, field in each.flags)


_NAMES = {key: flag(key) for key in (name.rpartition(".")[2] for name in OPTIONS)}
_NAMES |= {"groups": "--group", "ids": "--id", "pools": "--pool"}
_NAMES |= {name: flag(name) for name in ("base_rate", "auc", "pilot", "sizes", "schedule", "monitor_alpha")}
_NAMES |= {name: flag(name) for name in ("uncertified", "output", "plot", "looks", "block", "at_least")}
_NAMES |= {name: flag(name) for name in ("policy", "port", "data", "found", "decided", "audit")}
# names that are flags of their own in some commands
READERS = ("calibrate", "select")  # the commands with reading_options
_ELSEWHERE = {"plan": {"pools": "--pools"}, "label start": {"labels": "--labels"}}
_ELSEWHERE |= {"stop": {"recall": "--recall"}}
_ELSEWHERE |= {command: {"policy": "POLICY"} for command in ("show", "report", "sql")}
_ELSEWHERE["list"] = {"pool": "POOL", "unlabelled": "POOL"}


class FlagNames(OptionNames):
    """What the command line calls what can be set."""

    def option(self, name: str, value: str) -> str | None:
        """A flag, with its value; a kind of promise is one of its own."""
        if name == "promise" and value:
            return flag(value)
        if name in self.table and self.table[name] is None:
            return None
        return self.written(self.table.get(name) or flag(name), value)

    def written(self, known: str, value: str) -> str:
        """A flag and its value."""
        plain = value[:1].isalnum() or value in ".,"
        return f"{known} {value if plain else json.dumps(value)}" if value else known


def flag_names(words: Sequence[str] = ()) -> FlagNames:
    """The flags, where these words were given: k and share are whatever flag they came with."""
    names: dict[str, str | None] = dict(_NAMES)
    if words and words[0] not in READERS:
        names["on_bad_rows"] = None
    for command, flags in _ELSEWHERE.items():
        if " ".join(words).startswith(command):
            names |= flags
    given = {each.partition("=")[0] for each in words}
    flags_of_promises = _flags() if given else ()  # without words none was given, and no kind is imported
    names |= {name: flag(name) for name in _own_fields()} if given else {}
    asked_by = [(flag(name), field) for _, name, field in flags_of_promises if flag(name) in given]
    names["target"] = asked_by[0][0] if len(asked_by) == 1 else "--target"
    if len(asked_by) == 1:
        names[asked_by[0][1]] = asked_by[0][0]
    return FlagNames(names)


def in_flags(said: object, words: Sequence[str] = ()) -> str:
    """An error, a warning or a sentence in the words of the command line."""
    names = flag_names(words)
    return said.said(names) if hasattr(said, "said") else names.said(str(said))
