"""``python -m surelist``."""

from surelist.cli import main

if __name__ == "__main__":
    main()
