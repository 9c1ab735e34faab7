"""The tables of docs/research, by chapter."""
