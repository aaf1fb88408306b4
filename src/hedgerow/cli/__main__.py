"""``python -m hedgerow.cli``."""

from hedgerow.cli import main
from hedgerow_command import finish

if __name__ == "__main__":
    finish(main)
