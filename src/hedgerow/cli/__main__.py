"""``python -m hedgerow.cli``."""

from hedgerow.cli import main

if __name__ == "__main__":
    main()
