# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/message-faults.md: its tables are what the tests found. A test that finds something else
fails; with REPATH_WRITE_DOCS=1 it writes what it found."""

import os
import re

import image

PATH = os.path.join(image.TOP, "docs/message-faults.md")
KEYS = ["message", "stage"]         # columns that name a row


def _cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def parse(text):
    """{row: {column: cell}} of a table in Markdown."""
    lines = text.splitlines()
    columns = _cells(lines[0])[len(KEYS):] if lines else []
    return {tuple(cells[:len(KEYS)]): dict(zip(columns, cells[len(KEYS):]))
            for cells in map(_cells, lines[2:])}


def table(columns, rows):
    """Markdown."""
    lines = [[*KEYS, *columns], *([*row, *(cells.get(column, "?") for column in columns)]
                                  for row, cells in rows.items())]
    lines = ["| " + " | ".join(line) + " |" for line in lines]
    lines.insert(1, "|" + "---|" * (len(KEYS) + len(columns)))
    return "\n".join(lines) + "\n"


def check(section, columns, found):
    """The table between <!-- @section --> and <!-- end --> has what was @found, {row: {column: cell}}, of some of its
    @columns, and no other rows."""
    with open(PATH) as f:
        text = f.read()
    mark = re.compile(rf"(?s)(<!-- {section} -->\n)(.*?)(<!-- end -->)")
    there = mark.search(text)
    assert there, f"{PATH} has no section {section}"
    rows = parse(there[2])
    wanted = {row: {**rows.get(row, {}), **cells} for row, cells in found.items()}
    if table(columns, wanted) == there[2]:
        return
    assert os.environ.get("REPATH_WRITE_DOCS"), (
        f"docs/message-faults.md says something else than:\n{table(columns, wanted)}"
        "REPATH_WRITE_DOCS=1 writes it")
    with open(PATH, "w") as f:
        f.write(text[:there.start(2)] + table(columns, wanted) + text[there.end(2):])
