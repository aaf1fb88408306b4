"""``python -m hedgerow.cli``."""

from hedgerow.cli.app import main

if __name__ == "__main__":
    main()
