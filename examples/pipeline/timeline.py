"""Records what runs when, on the host and on the GPU, and draws it."""

from __future__ import annotations

import contextlib
import html
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

ROWS = ("copy", "encoder", "search", "results")
COLOURS = {"copy": ("#8a949e", "#66707a"), "encoder": ("#4a84cc", "#1558b0"), "search": ("#d0605a", "#b3261e"), "results": ("#4f9a6a", "#2e7d4f")}
LEFT, WIDTH, ROW = 74, 640, 22  # pixels


class Bar(NamedTuple):
    """`begin` and `end` in seconds since the start."""

    row: str
    batch: int
    begin: float
    end: float


class Timeline:
    """Times on the host are read from its clock; those on the GPU are CUDA events, which are converted to the host's clock at the end."""

    def __init__(self, on_gpu: bool) -> None:
        self._recorded: list[tuple[str, int, Any, Any]] = []
        self._on_gpu = on_gpu
        if on_gpu:
            torch.cuda.synchronize()
            self._origin = self.now(torch.cuda.current_stream())
            self._origin.synchronize()  # an idle GPU: the event has just happened
        self._start = time.perf_counter()

    def now(self, stream: Any = None) -> Any:
        """Seconds on the host, or an event on a CUDA stream."""
        if stream is None:
            return time.perf_counter() - self._start
        event = torch.cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    def add(self, row: str, batch: int, begin: Any, end: Any) -> None:
        self._recorded.append((row, batch, begin, end))

    @contextlib.contextmanager
    def span(self, row: str, batch: int, stream: Any = None) -> Iterator[None]:
        begin = self.now(stream)
        yield
        self.add(row, batch, begin, self.now(stream))

    def _seconds(self, moment: Any) -> float:
        return float(moment if isinstance(moment, float) else self._origin.elapsed_time(moment) / 1000)

    def bars(self) -> list[Bar]:
        """A search begins when its call has begun, its scores are there and the search before it is over."""
        if self._on_gpu:
            torch.cuda.synchronize()
        bars = [Bar(row, batch, self._seconds(begin), self._seconds(end)) for row, batch, begin, end in self._recorded]
        ends = {(bar.row, bar.batch): bar.end for bar in bars}
        return [
            bar._replace(begin=max(bar.begin, ends["encoder", bar.batch], ends.get(("search", bar.batch - 1), 0.0))) if bar.row == "search" else bar
            for bar in sorted(bars, key=lambda bar: (ROWS.index(bar.row), bar.batch))
        ]


def _text(x: float, y: float, text: str, anchor: str = "start", style: str = 'fill="#1f2933"') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{html.escape(text)}</text>'


def _panel(title: str, bars: Sequence[Bar], top: float, scale: float) -> list[str]:
    rows = [row for row in ROWS if any(bar.row == row for bar in bars)]
    parts = [_text(12, top, title, style='fill="#1f2933" font-weight="bold"')]
    for i, row in enumerate(rows):
        y = top + 10 + i * ROW
        parts.append(_text(LEFT - 8, y + 14, row, "end"))
        parts.append(f'<line x1="{LEFT}" y1="{y + ROW - 2}" x2="{LEFT + WIDTH}" y2="{y + ROW - 2}" stroke="#d5dadf"/>')
        for bar in (bar for bar in bars if bar.row == row):
            x, width = LEFT + bar.begin * scale, max((bar.end - bar.begin) * scale, 0.5)
            place = f'x="{x:.2f}" y="{y + 2:.0f}" width="{width:.2f}" height="{ROW - 5}"'
            note = f"{row}, batch {bar.batch}: {1000 * (bar.end - bar.begin):.2f} ms"
            parts.append(f'<rect {place} fill="{COLOURS[row][bar.batch % 2]}"><title>{note}</title></rect>')
            if width > 15:
                parts.append(_text(x + width / 2, y + 14, str(bar.batch), "middle", 'fill="#ffffff" font-size="10"'))
    return parts


def draw(title: str, panels: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """An SVG picture: the panels beneath each other, on one scale of time."""
    longest = max(bar.end for _, bars in panels for bar in bars)
    scale, top, parts = WIDTH / longest, 46.0, [_text(12, 20, title)]
    for name, bars in panels:
        parts += _panel(name, bars, top, scale)
        top += 34 + ROW * len({bar.row for bar in bars})
    step = next(s for digits in range(-5, 5) for s in (10.0**digits, 2 * 10.0**digits, 5 * 10.0**digits) if longest / s <= 10)
    for i in range(int(longest / step) + 1):
        x = LEFT + i * step * scale
        parts += [f'<line x1="{x:.1f}" y1="{top - 20}" x2="{x:.1f}" y2="{top - 14}" stroke="#1f2933"/>', _text(x, top - 2, f"{1000 * i * step:g}", "middle")]
    parts.append(_text(LEFT - 8, top - 2, "ms", "end"))
    size = f'width="{LEFT + WIDTH + 26}" height="{top + 10:.0f}" viewBox="0 0 {LEFT + WIDTH + 26} {top + 10:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="Helvetica, Arial, sans-serif" font-size="12">\n<title>{html.escape(title)}</title>'
    return "\n".join([head, '<rect width="100%" height="100%" rx="6" fill="#ffffff"/>', *parts, "</svg>\n"])
