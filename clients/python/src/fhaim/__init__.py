"""Synthetic data from records that only their holder sees: a client of fhaim's services and, with
the wheel, the program itself in this process."""

from fhaim.client import Client, Download, Run, Spending
from fhaim.errors import Error
from fhaim.holders import Standing, fingerprint
from fhaim.schema import Rule, Schema
from fhaim.synthesizer import Report, Synthesizer, evaluate

__all__ = [
    "Client",
    "Download",
    "Error",
    "Report",
    "Rule",
    "Run",
    "Schema",
    "Spending",
    "Standing",
    "Synthesizer",
    "evaluate",
    "fingerprint",
]
__version__ = "0.1.0"
