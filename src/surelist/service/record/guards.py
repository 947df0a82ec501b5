"""Triggers that keep the log and the reviews append-only: made with the tables, compared by ``verify``.

A trigger or rule of anybody else on the record's tables is a problem too: it could swallow what is written.
"""

from __future__ import annotations

from surelist.service.record.connections import Connection

GUARDED = ("log", "reviews")  # no row of these is ever changed or removed

_BODY = "BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END"
_FUNCTION = f"""
CREATE OR REPLACE FUNCTION surelist_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ {_BODY} $$
"""
_SQLITE = """
CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
"""
_TRIGGERS = {
    "sqlite": "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT t.tgname, c.relname, CASE WHEN t.tgenabled = 'D' THEN 'disabled' ELSE "
    "substring(pg_get_triggerdef(t.oid) FROM ' (BEFORE .*) ON ') || "
    "substring(pg_get_triggerdef(t.oid) FROM ' FOR EACH .*$') || ' ' || p.prosrc END "
    "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE NOT t.tgisinternal AND n.nspname = current_schema()",
}
_RULES = "SELECT rulename, tablename FROM pg_rules WHERE schemaname = current_schema()"
_POSTGRES = (
    f"BEFORE DELETE OR UPDATE OR TRUNCATE FOR EACH STATEMENT EXECUTE FUNCTION surelist_append_only() {_BODY}"
)


def add_guards(kind: str, connection: Connection, tables: tuple[str, ...] = GUARDED) -> None:
    """Forbid changes of these tables from now on."""
    if kind == "postgresql":
        connection.execute(_FUNCTION)
    for table in tables:
        if kind == "postgresql":
            connection.execute(
                f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION surelist_append_only()"
            )
            continue
        for verb in ("update", "delete"):
            connection.execute(_SQLITE.format(table=table, verb=verb))


def check_guards(kind: str, connection: Connection) -> list[str]:
    """A sentence for each guard that is not as it was made, and for each trigger that nobody made here."""
    present = {
        (name, table): " ".join((text or "").split())
        for name, table, text in connection.execute(_TRIGGERS[kind])
    }
    problems = []
    for table in GUARDED:
        expected = _expected(kind, table)
        if any(present.pop((name, table), None) != text for name, text in expected.items()):
            problems.append(f"the guard against changes of the table {table} was removed or changed")
    added = [*present, *(connection.execute(_RULES) if kind == "postgresql" else ())]
    return problems + [f"a trigger {name} was added to the table {table}" for name, table in added]


def _expected(kind: str, table: str) -> dict[str, str]:
    if kind == "postgresql":
        return {f"{table}_append_only": _POSTGRES}
    return {
        f"{table}_no_{verb}": " ".join(_SQLITE.format(table=table, verb=verb).split())
        for verb in ("update", "delete")
    }
