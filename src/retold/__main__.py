"""`python -m retold`."""

import sys

from retold.cli.main import main

sys.exit(main())
