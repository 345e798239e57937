"""Checks of rule files and of the configuration: what a gateway could not run, with its place."""
