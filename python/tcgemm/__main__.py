"""`python -m tcgemm`: info, demo, verify and bench."""

import sys

from tcgemm._cli import main

if __name__ == "__main__":
    sys.exit(main())
