"""Fixtures of every end-to-end suite live in support/plugin.py."""

pytest_plugins = ["support.plugin"]
