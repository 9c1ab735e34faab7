"""Line plots as SVG, with standard errors as bars."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 30, 50
COLOURS = ["#1b6ca8", "#c8442d", "#2f8f4e", "#7a4fa3", "#b07c10", "#555555"]


def lines(title, x_label, y_label, series, log_x=False):
    """Returns a plot of `series`: a list of (name, points), each point (x, y, standard error or None).

    Points whose y is None are left out. The y axis begins at 0; the x axis is logarithmic if `log_x`."""
    points = [point for _, named in series for point in named if point[1] is not None]
    xs = sorted({x for x, _, _ in points})
    position = math.log if log_x else float
    low, high = position(xs[0]), position(xs[-1])
    top = 1.08 * max(y + (error or 0) for _, y, error in points)

    def place(x, y):
        across = (position(x) - low) / (high - low or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, 18, title, weight="bold"),
        *axes(xs, top, place, x_label, y_label),
    ]
    for number, (name, named) in enumerate(series):
        known = [point for point in named if point[1] is not None]
        parts += line(known, place, COLOURS[number % len(COLOURS)])
        height = TOP + 14 + 18 * number
        start = WIDTH - RIGHT + 12
        parts.append(f'<path d="M{start} {height - 4}h18" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="2"/>')
        parts.append(text(start + 24, height, name))
    return "\n".join([*parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="start", weight="normal"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def axes(xs, top, place, x_label, y_label):
    """Returns both axes, with a mark at each measured x and at five heights."""
    bottom = HEIGHT - BOTTOM
    parts = [f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="black"/>']
    for x in xs:
        across, _ = place(x, 0)
        parts.append(f'<path d="M{across:.1f} {bottom}v5" stroke="black"/>')
        parts.append(text(across, bottom + 18, f"{x:g}", "middle"))
    step = nice_step(top / 6)
    for count in range(int(top / step) + 1):
        _, height = place(xs[0], count * step)
        parts.append(f'<path d="M{LEFT} {height:.1f}h{WIDTH - LEFT - RIGHT}" stroke="#dddddd"/>')
        parts.append(text(LEFT - 6, height + 4, f"{count * step:g}", "end"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label, "middle"))
    middle = (TOP + bottom) / 2
    parts.append(f'<g transform="rotate(-90 16 {middle:.1f})">{text(16, middle, y_label, "middle")}</g>')
    return parts


def nice_step(least):
    """Returns the smallest of 1, 2 and 5 times a power of ten that is at least `least`."""
    power = 10 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def line(points, place, colour):
    """Returns the marks of one series: a line through its points, and a bar for each standard error."""
    placed = [(*place(x, y), place(x, y - (error or 0))[1], place(x, y + (error or 0))[1]) for x, y, error in points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in placed)
    parts = [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for x, y, low, high in placed:
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        parts.append(f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}"/>')
    return parts
