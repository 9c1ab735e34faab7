"""Synthetic data from records nobody but their holder ever sees: a client of fhaim's services."""

from fhaim.client import Client, Download, Spending
from fhaim.errors import Error
from fhaim.holders import Standing, fingerprint

__all__ = ["Client", "Download", "Error", "Spending", "Standing", "fingerprint"]
__version__ = "0.1.0"
