"""Packages that extend penstock.

entry_points     finds and imports the plug-ins of this Python environment
sink_contract    the tests that a package runs for a sink of its own
source_contract  the tests that a package runs for a source of its own
"""
