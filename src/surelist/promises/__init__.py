"""Targets and evidence to a ``Policy``: the only package that makes a promise; arrays only, no tables."""
