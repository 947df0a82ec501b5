"""``python -m surelist``."""

from surelist.cli import main

main()
