//! Quality reports: how close a synthetic table is to the real one.
