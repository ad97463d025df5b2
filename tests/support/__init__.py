"""Helpers for tests: homes and sessions to read, programs to run, and parsers for pages."""

from pathlib import Path

import pytest

# Show the values of a failed assert in a helper, as pytest does in a test.
pytest.register_assert_rewrite(*(f"support.{file.stem}" for file in Path(__file__).parent.glob("[a-z]*.py")))
