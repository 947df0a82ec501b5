"""Workbooks that no library here writes: .ods and .xls, from rows of plain values; texts that begin with # are errors."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

_NAMES = "urn:oasis:names:tc:opendocument:xmlns"
_START = (
    f'<?xml version="1.0"?><office:document-content xmlns:office="{_NAMES}:office:1.0" '
    f'xmlns:table="{_NAMES}:table:1.0" xmlns:text="{_NAMES}:text:1.0" '
    'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0">'
    '<office:body><office:spreadsheet><table:table table:name="S">'
)
_STOP = "</table:table></office:spreadsheet></office:body></office:document-content>"
_MANIFEST = '<?xml version="1.0"?><m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
_ERRORS = {"#DIV/0!": 7, "#N/A": 42}
_NONE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def ods(path: Path, rows: list[list[Any]]) -> Path:
    """One sheet, S."""
    body = "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("content.xml", _START + body + _STOP)
        file.writestr("META-INF/manifest.xml", _MANIFEST)
    return path


def _ods_cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, (int, float)):
        kind = f'office:value-type="float" office:value="{value}"'
    else:
        kind = 'office:value-type="string"'
        if value.startswith("#"):
            kind += ' office:string-value="" calcext:value-type="error"'
    return f"<table:table-cell {kind}><text:p>{value}</text:p></table:table-cell>"


def xls(path: Path, rows: list[list[Any]]) -> Path:
    """One sheet, S, in BIFF8 inside a compound file."""
    begin = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0))
    sheet = _record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0))
    sheet += _record(0x200, struct.pack("<IIHHH", 0, len(rows), 0, max(map(len, rows)), 0))
    for at, row in enumerate(rows):
        for column, value in enumerate(row):
            sheet += _xls_cell(struct.pack("<HHH", at, column, 0), value)
    length = len(begin) + 4 + 9 + 4
    named = _record(0x85, struct.pack("<IBBBB", length, 0, 0, 1, 0) + b"S")
    stream = begin + named + _record(0x0A) + sheet + _record(0x0A)
    path.write_bytes(_compound(stream))
    return path


def _record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _xls_cell(at: bytes, value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str) and value.startswith("#"):
        return _record(0x205, at + bytes([_ERRORS[value], 1]))
    if isinstance(value, str):
        return _record(0x204, at + struct.pack("<HB", len(value), 1) + value.encode("utf-16-le"))
    return _record(0x203, at + struct.pack("<d", value))


def _compound(stream: bytes) -> bytes:
    """One stream, Workbook, after the allocation table and the directory."""
    stream += bytes(max(4096, -(-len(stream) // 512) * 512) - len(stream))
    sectors, tables = len(stream) // 512, 1
    while tables * 128 < tables + 1 + sectors:
        tables += 1
    following = [tables + 2 + at for at in range(sectors - 1)]
    table = [_FAT] * tables + [_END, *following, _END]
    table += [_NONE] * (tables * 128 - len(table))
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    head += struct.pack("<6H10I", 0x3E, 3, 0xFFFE, 9, 6, 0, 0, 0, tables, tables, 0, 4096, _END, 0, _END, 0)
    head += struct.pack("<109I", *range(tables), *[_NONE] * (109 - tables))
    folder = _entry("Root Entry", 5, _END, 0, 1) + _entry("Workbook", 2, tables + 1, len(stream))
    folder += _entry("", 0, 0, 0) * 2
    return head + struct.pack(f"<{len(table)}I", *table) + folder + stream


def _entry(name: str, kind: int, start: int, size: int, child: int = _NONE) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0" if name else b""
    links = struct.pack("<HBBIII", len(text), kind, 1, _NONE, _NONE, child)
    return text.ljust(64, b"\0") + links + bytes(36) + struct.pack("<IQ", start, size)
