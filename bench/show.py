#!/usr/bin/env python3
"""show [SERIES [TEXT]] - prints recorded figures (bench/figures): those of a series whose rows have TEXT in them, the newest last. Alone: all series."""
import argparse

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
    rows = [row for row in measure.rows(arguments.series) if arguments.text in ", ".join(row.values())]
    if not rows:
        parser.error(f"no figure of {arguments.series} has '{arguments.text}'")
    print(measure.table(["date", "what", "figure", "unit", "machine", "commit"], [(row["date"], f"{row['what']}: {row['setup']}", row["figure"], row["unit"], row["machine"], row["commit"]) for row in rows]))


if __name__ == "__main__":
    main()
