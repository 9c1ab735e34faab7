"""Line plots with standard errors, as SVG."""

import html
import math

# Width and height of a panel's plane, and the margins around it, in pixels.
WIDTH, HEIGHT = 230, 170
LEFT, TOP, RIGHT, BOTTOM = 52, 26, 12, 40

# Colours that people with colour blindness can tell apart (Wong 2011).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]
DASHES = ["", "6 3", "2 2", "8 2 2 2", "4 4", "1 3", "10 3"]


def lines(panels, x_label, y_label, is_log=False, per_row=4, is_scatter=False):
    """Returns an SVG with a panel for each (title, {series: [(x, mean, standard error or None)]}).

    A panel may have a third item, its own label of y. The x axis of each panel has the xs of its series, and is
    logarithmic if `is_log`. If `is_scatter`, it has round numbers, and no line joins the points. A series has the same
    colour in each panel."""
    names = list(dict.fromkeys(name for panel in panels for name in panel[1]))
    columns = min(per_row, len(panels))
    cell = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM)
    width, bottom = columns * cell[0], math.ceil(len(panels) / columns) * cell[1]
    places = _places(names, width)
    size = (width, bottom + 8 + 16 * (places[-1][1] + 1))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif" font-size="11">',
        f'<rect width="{size[0]}" height="{size[1]}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        x, y = (number % columns) * cell[0] + LEFT, (number // columns) * cell[1] + TOP
        parts.append(f'<g transform="translate({x} {y})">')
        labels = x_label, panel[2] if len(panel) > 2 else y_label
        parts.extend(_panel(panel, names, labels, is_log, is_scatter))
        parts.append("</g>")
    parts.extend(_legend(names, places, bottom + 16))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel, names, labels, is_log, is_scatter):
    """Returns the elements of a panel, whose plane begins at the origin."""
    title, series = panel[:2]
    x_label, y_label = labels
    xs = sorted({point[0] for points in series.values() for point in points})
    xs = _ticks(xs[0], xs[-1]) if is_scatter else xs
    place = math.log if is_log else float
    low, high = place(xs[0]), place(xs[-1])
    across = lambda x: WIDTH * (0.5 if high == low else (place(x) - low) / (high - low))
    ends = [mean + side * (error or 0) for points in series.values() for _, mean, error in points for side in (-1, 1)]
    ticks = _ticks(min(ends), max(ends))
    down = lambda y: HEIGHT * (1 - (y - ticks[0]) / (ticks[-1] - ticks[0]))
    yield f'<text x="{WIDTH / 2}" y="-10" text-anchor="middle" font-weight="bold">{html.escape(title)}</text>'
    for tick in ticks:
        yield f'<path d="M0 {down(tick):.1f}H{WIDTH}" stroke="#ddd"/>'
        yield f'<text x="-5" y="{down(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
    for x in xs:
        yield f'<text x="{across(x):.1f}" y="{HEIGHT + 14}" text-anchor="middle">{x:g}</text>'
    yield f'<text x="{WIDTH / 2}" y="{HEIGHT + 29}" text-anchor="middle">{html.escape(x_label)}</text>'
    turned = f"translate(-40 {HEIGHT / 2}) rotate(-90)"
    yield f'<text transform="{turned}" text-anchor="middle">{html.escape(y_label)}</text>'
    yield f'<path d="M0 0V{HEIGHT}H{WIDTH}" stroke="#333" fill="none"/>'
    for name, points in series.items():
        colour, dash = _style(names.index(name))
        path = "L".join(f"{across(x):.1f} {down(mean):.1f}" for x, mean, _ in points)
        if not is_scatter:
            yield f'<path d="M{path}" stroke="{colour}" stroke-dasharray="{dash}" stroke-width="1.5" fill="none"/>'
        for x, mean, error in points:
            yield f'<circle cx="{across(x):.1f}" cy="{down(mean):.1f}" r="2.5" fill="{colour}"/>'
            if error:
                ends = f"{down(mean - error):.1f}V{down(mean + error):.1f}"
                yield f'<path d="M{across(x):.1f} {ends}" stroke="{colour}"/>'


def _style(number):
    """Returns the colour and the dashes of a series."""
    return COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]


def _places(names, width):
    """Returns the left end and the line of each series' name in the legend."""
    places, x, line = [], LEFT, 0
    for name in names:
        length = 44 + 7 * len(name)
        if x > LEFT and x + length > width:
            x, line = LEFT, line + 1
        places.append((x, line))
        x += length
    return places


def _legend(names, places, top):
    """Returns lines with the name of each series."""
    for number, (name, (x, line)) in enumerate(zip(names, places)):
        colour, dash = _style(number)
        y = top + 16 * line
        yield f'<path d="M{x} {y - 4}h22" stroke="{colour}" stroke-dasharray="{dash}" stroke-width="2"/>'
        yield f'<text x="{x + 26}" y="{y}">{html.escape(name)}</text>'


def _ticks(low, high):
    """Returns round numbers that enclose both ends."""
    if high == low:
        low, high = low - 0.5, high + 0.5
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(first, last + 1)]
