# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/message-faults.md: its tables are what the tests found. A test that finds something else
fails; with REPATH_WRITE_DOCS=1 it writes what it found."""

import os
import re

import image

PATH = os.path.join(image.TOP, "docs/message-faults.md")


def table(rows):
    """Markdown for @rows, of which the first is the heading."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def check(section, rows):
    """The table between <!-- @section --> and <!-- end --> is @rows."""
    with open(PATH) as f:
        text = f.read()
    mark = re.compile(rf"(?s)(<!-- {section} -->\n).*?(<!-- end -->)")
    assert mark.search(text), f"{PATH} has no section {section}"
    wanted = mark.sub(lambda m: m.group(1) + table(rows) + "\n" + m.group(2), text)
    if wanted == text:
        return
    assert os.environ.get("REPATH_WRITE_DOCS"), (
        f"docs/message-faults.md says something else than:\n{table(rows)}\n"
        "REPATH_WRITE_DOCS=1 writes it")
    with open(PATH, "w") as f:
        f.write(wanted)
