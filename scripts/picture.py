# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A picture of bandwidth over time with the stages of a move below it, as SVG."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 500
LEFT, RIGHT, TOP = 70, 30, 64
PLOT_BOTTOM = 300
ROW = 17
COLOURS = {
    "suspend": "#2a78d6", "device-gone": "#1baf7a", "unplug": "#1baf7a", "migrate": "#eb6834",
    "copy": "#f3b293", "plug": "#1baf7a", "device-new": "#1baf7a", "resume": "#4a3aa7",
}
INK, MUTED, GRID = "#1a1a1a", "#6b6b6b", "#e3e3e0"


def ticks(span, wanted):
    """Steps of 1, 2 or 5 times a power of ten that divide @span into about @wanted."""
    step = 10.0 ** -6
    while True:
        for factor in (1, 2, 5):
            if span / (step * factor) <= wanted:
                return step * factor
        step *= 10


def label(value, step):
    return f"{value:.0f}" if step >= 1 else f"{value:.1f}" if step >= 0.1 else f"{value:.2f}"


class Picture:
    """samples: [(seconds, value)]; stages: [(name, start s, end s)], on the same clock; unit: of the
    values; clock: what the seconds are counted from; beside: samples of something to compare with."""

    def __init__(self, title, subtitle, samples, stages, unit="MB/s",
                 clock="seconds since the move began", beside=()):
        self.title, self.subtitle = title, subtitle
        self.samples, self.stages, self.beside = samples, stages, beside
        self.unit, self.clock = unit, clock
        self.start, self.end = samples[0][0], samples[-1][0]
        self.peak = max(value for _, value in [*samples, *beside]) * 1.08 or 1
        self.out = []

    def x(self, seconds):
        return LEFT + (seconds - self.start) / (self.end - self.start) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return PLOT_BOTTOM - value / self.peak * (PLOT_BOTTOM - TOP)

    def text(self, x, y, text, size=12, colour=MUTED, anchor="start", weight="normal"):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
                        f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, colour=GRID, width=1.0):
        self.out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                        f'stroke="{colour}" stroke-width="{width}"/>')

    def axes(self):
        step = ticks(self.peak, 6)
        value = 0
        while value <= self.peak:
            self.line(LEFT, self.y(value), WIDTH - RIGHT, self.y(value))
            self.text(LEFT - 8, self.y(value) + 4, label(value, step), anchor="end")
            value += step
        step = ticks(self.end - self.start, 12)
        second = -(-self.start // step) * step
        while second <= self.end + step / 1000:
            self.line(self.x(second), PLOT_BOTTOM, self.x(second), PLOT_BOTTOM + 4, MUTED)
            self.text(self.x(second), PLOT_BOTTOM + 18, label(second, step), anchor="middle")
            second += step
        self.text(LEFT - 8, TOP - 8, self.unit, anchor="end")
        self.text(WIDTH - RIGHT, PLOT_BOTTOM + 34, self.clock, anchor="end")

    def curve(self):
        points = " ".join(f"{self.x(t):.1f},{self.y(v):.1f}" for t, v in self.samples)
        base = self.y(0)
        self.out.append(f'<polygon points="{self.x(self.start):.1f},{base} {points} '
                        f'{self.x(self.end):.1f},{base}" fill="#2a78d6" fill-opacity="0.13"/>')
        self.out.append(f'<polyline points="{points}" fill="none" stroke="#2a78d6" '
                        f'stroke-width="1.8" stroke-linejoin="round"/>')
        points = " ".join(f"{self.x(t):.1f},{self.y(v):.1f}" for t, v in self.beside if t <= self.end)
        if points:
            self.out.append(f'<polyline points="{points}" fill="none" stroke="#c0392b" '
                            f'stroke-width="1.8" stroke-dasharray="5 3"/>')

    def marks(self):
        """The stages: a band across the curve, and a row of its own for each below it."""
        row = PLOT_BOTTOM + 50
        for name, start, end in self.stages:
            colour = COLOURS.get(name, MUTED)
            left, right = self.x(start), self.x(end)
            width = max(right - left, 1.5)
            self.out.append(f'<rect x="{left:.1f}" y="{TOP}" width="{width:.1f}" '
                            f'height="{PLOT_BOTTOM - TOP}" fill="{colour}" fill-opacity="0.10"/>')
            self.out.append(f'<rect x="{left:.1f}" y="{row:.1f}" width="{width:.1f}" '
                            f'height="{ROW - 6}" rx="1.5" fill="{colour}"/>')
            length = end - start
            text = f"{name}  " + (f"{length * 1e3:.0f} ms" if length < 10 else f"{length:.0f} s")
            if right + 8 * len(text) < WIDTH:
                self.text(right + 7, row + 10, text, 11.5, INK)
            else:
                self.text(left - 7, row + 10, text, 11.5, INK, anchor="end")
            row += ROW

    def svg(self):
        self.text(LEFT, 24, self.title, 16, INK, weight="bold")
        self.text(LEFT, 43, self.subtitle, 12.5)
        self.marks()
        self.axes()
        self.curve()
        self.line(LEFT, PLOT_BOTTOM, WIDTH - RIGHT, PLOT_BOTTOM, MUTED)
        height = min(HEIGHT, PLOT_BOTTOM + 64 + ROW * len(self.stages))
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">\n'
                f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
                + "\n".join(self.out) + "\n</svg>\n")
