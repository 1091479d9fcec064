#!/usr/bin/env python3
"""change_header.py older|newer FROM TO - rewrites the headers in folder FROM as an older or a newer version would have them. Writes them to folder TO.

  older  removes the last option of each list (unless it is the only one) and the last field of each structure that begins with struct_size
  newer  adds one option to each list and one field to each such structure; both are called `later`

Also writes TO/structures.h with two X-macros. FOR_EACH_TABLE(X) calls X(name) for each list of options that was changed, FOR_EACH_STRUCTURE(X) for each
structure that was changed.
"""

import pathlib
import re
import sys

LATER_ROW = 'X(I64, later, 0, 0, 1e9, "", "of a newer version")'


def change_rows(rows, kind):
    """Changes the body of an X-macro, whose rows are separated by line continuations. Returns None if the list must stay as it is."""
    parts = re.split(r"(?=\bX\([A-Z0-9]+,)|(?=\bWF_OPTION_NUM_THREADS\(X\))|(?=\bWF__ENDPOINT_RULE\(X,)", rows)
    if kind == "newer":
        return rows.rstrip() + " \\\n  " + LATER_ROW + "\n"
    if len(parts) <= 2:
        return None
    return "".join(parts[:-1]).rstrip().rstrip("\\").rstrip() + "\n"


def change_lists(text, kind, changed):
    tables = dict(re.findall(r"^WF_DECLARE_OPTIONS\((\w+), (\w+)\)", text, re.MULTILINE))

    def change(match):
        names = [name for name, rows in tables.items() if rows == match[1]]
        rows = change_rows(match[2], kind)
        if not names or rows is None:
            return match[0]
        changed.extend(names)
        return f"#define {match[1]}(X) {rows}"

    return re.sub(r"#define (WF_\w+_OPTIONS)\(X\)((?:.*\\\n)*.*\n)", change, text)


def change_structures(text, kind, changed):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)

    def change(match):
        fields, name = match[1], match[2]
        if kind == "newer":
            fields += "  uint64_t later;\n"
        else:
            fields = fields[: fields.rstrip().rstrip(";").rfind(";") + 1] + "\n"
            if fields.count(";") < 2:
                return match[0]
        changed.append(name)
        return f"typedef struct {name} {{{fields}}} {name};"

    return re.sub(r"typedef struct wf_\w+ \{(\s*size_t struct_size;[^{}\\]*?)\} (wf_\w+);", change, text)


def main():
    kind, source, target = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    tables, structures = [], []
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.h")):
        text = path.read_text(encoding="utf-8")
        text = change_structures(change_lists(text, kind, tables), kind, structures)
        (target / path.name).write_text(text, encoding="utf-8")
    lists = {"FOR_EACH_TABLE": tables, "FOR_EACH_STRUCTURE": structures}
    (target / "structures.h").write_text("".join(f"#define {name}(X) {' '.join(f'X({each})' for each in found)}\n" for name, found in lists.items()), encoding="utf-8")
    print(f"{kind}: {len(tables)} lists of options, {len(structures)} structures")


if __name__ == "__main__":
    main()
