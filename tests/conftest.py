"""Fixtures of every end-to-end suite live in support/."""

pytest_plugins = ["support.plugin", "support.forge_plugin", "support.figures"]
