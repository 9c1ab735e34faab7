"""Markdown of figures."""

import math


def table(heading, rows):
    """Returns a Markdown table of these cells."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def figure(mean, error=None, digits=3):
    """Returns "mean (standard error)"; a mean that is not finite is named."""
    if mean is None:
        return ""
    if not math.isfinite(mean):
        return "infinite"
    return f"{mean:.{digits}f}" + (f" ({error:.{digits}f})" if error is not None else "")


def deviations(ours, error, printed, unit):
    """Returns by how many standard errors our figure is above a printed one; None if that is unknown.

    `unit` is the place of the last printed digit, such as 0.01. The standard error is that of our figure and of this
    rounding. The difference is infinite if both are zero and the figures differ."""
    if None in (ours, error, printed):
        return None
    error = math.hypot(error, unit / math.sqrt(12))
    if error == 0.0:
        return 0.0 if ours == printed else math.copysign(math.inf, ours - printed)
    return (ours - printed) / error


def signed(difference):
    """Returns a difference in standard errors with its sign, or an empty cell."""
    if difference is None:
        return ""
    return f"{difference:+.1f}" if math.isfinite(difference) else "infinite"


def agreeing(differences):
    """Returns how many of the known differences are at most two standard errors, and how many are known."""
    known = [difference for difference in differences if difference is not None]
    return sum(abs(difference) <= 2 for difference in known), len(known)


def agreement(differences):
    """Returns how many of the known differences are at most two standard errors, in words."""
    return "{} of {}".format(*agreeing(differences))
