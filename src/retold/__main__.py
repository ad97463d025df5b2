"""`python -m retold`."""

import sys

from retold.cli.main import command

sys.exit(command())
