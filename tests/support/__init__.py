"""Helpers for tests: homes and sessions to read, programs to run, pages to take apart."""

from pathlib import Path

import pytest

# A failed assert in a helper shows its values, as one in a test does.
pytest.register_assert_rewrite(*(f"support.{file.stem}" for file in Path(__file__).parent.glob("[a-z]*.py")))
