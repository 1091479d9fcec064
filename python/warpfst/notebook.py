"""What notebooks show of objects: tables of results, pictures of small transducers and lattices. Notebooks call `_repr_html_` and `_repr_svg_`; with None, they show repr()."""

from __future__ import annotations

import html
import itertools
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Sequence

from .errors import Error

MOST_ARCS = 150  # of a picture; larger ones cannot be read
_MOST_ROWS = 60


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table of the first rows."""
    shown = list(itertools.islice(rows, _MOST_ROWS + 1))
    lines = [_row("th", head), *(_row("td", row) for row in shown[:_MOST_ROWS])]
    more = "<p>...</p>" if len(shown) > _MOST_ROWS else ""
    return f"<p>{html.escape(title)}</p><table>{''.join(lines)}</table>{more}" if shown else f"<p>{html.escape(title)}</p>"


def _row(kind: str, cells: Iterable[object]) -> str:
    return "<tr>" + "".join(f"<{kind}>{html.escape(_cell(cell))}</{kind}>" for cell in cells) + "</tr>"


def _cell(cell: object) -> str:
    return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def picture(draw: Callable[[pathlib.Path], None]) -> str | None:
    """The SVG that `draw` writes. None: it cannot be drawn, such as a lattice that is too large, or there is no folder for temporary files."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "picture.svg")
            draw(path)
            return path.read_text(encoding="utf-8")
    except (OSError, Error):
        return None
