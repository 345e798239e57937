"""Rows of gateways beside those of a backfill."""
