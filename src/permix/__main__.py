"""``python -m permix``."""

from permix.cli import main

if __name__ == "__main__":
    main()
