#!/usr/bin/env python3
"""show [SERIES [TEXT]] - prints recorded figures (bench/figures): those of a series whose rows have TEXT in them, the newest last. Alone: all series."""
import argparse
import sys

import measure


def main():
    parser = argparse.ArgumentParser("./run bench show", description=__doc__)
    parser.add_argument("series", nargs="?", help="name of a benchmark, such as decode")
    parser.add_argument("text", nargs="?", default="", help="part of what was measured, of the machine, or of the commit")
    arguments = parser.parse_args()
    names = sorted(path.stem for path in measure.FIGURES.glob("*.csv"))
    if arguments.series is None:
        found = [(name, measure.rows(name)) for name in names]
        print(measure.table(["series", "figures", "newest"], [(name, len(rows), rows[-1]["date"]) for name, rows in found]))
        return
    if arguments.series not in names:
        parser.error(f"no series {arguments.series}; there are {', '.join(names)}")
    rows = [{**row, "what": f"{row['what']}: {row['setup']}"} for row in measure.rows(arguments.series)]
    rows = [row for row in rows if any(arguments.text in value for value in row.values())]
    if not rows:
        parser.error(f"no figure of {arguments.series} has '{arguments.text}'")
    print(measure.table(["date", "what", "figure", "unit", "machine", "commit"], [[row[name] for name in ("date", "what", "figure", "unit", "machine", "commit")] for row in rows]))


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # of `| head`
        sys.stdout = None
