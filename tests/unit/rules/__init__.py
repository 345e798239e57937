"""Tests of the rule files."""
