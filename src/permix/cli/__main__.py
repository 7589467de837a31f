"""``python -m permix.cli``."""

from permix.cli import main

if __name__ == "__main__":
    main()
