"""The entry of `python -m cluster`."""

import sys

from cluster.cli import main

sys.exit(main())
