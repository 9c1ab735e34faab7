"""Synthetic data from records nobody but their holder ever sees: a client of fhaim's services."""

from fhaim.client import Client, Download
from fhaim.errors import Error

__all__ = ["Client", "Download", "Error"]
__version__ = "0.1.0"
