"""The experiments of the paper, their data and their figures. Uses the public API only."""
