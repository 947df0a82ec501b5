"""Targets and evidence to a ``Policy``: the only room that makes a promise; arrays only, no tables."""
