"""Values packed for caches of ours: what comes out is what went in, or that it is not is told."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from retold.model.serialization import ENTRY_PACKER, UnpackError, bundle, unbundle
from retold.model.session import Event, Message, Opaque
from support.full_session import agent, call, user

anything = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**200), 2**200)
    | some.text(some.characters(codec=None))
    | some.floats(allow_nan=False),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(some.text(some.characters(codec=None)), inner, max_size=3)
    ),
)
moments = some.none() | some.datetimes(timezones=some.just(UTC), allow_imaginary=False).map(
    lambda at: at.replace(fold=0)
)


@given(anything, moments)
def test_what_was_packed_comes_out_again(value: Any, at: datetime | None) -> None:
    said = user(1, "asked", Opaque(value), at=at)
    answered = agent(2, call("x", arguments={"value": value}))
    happened = Event(None, "info", at, "live", "", Opaque(value))
    for entry in (said, answered, happened):
        found = ENTRY_PACKER.unpack(ENTRY_PACKER.pack(entry))
        assert found == entry
        assert repr(found) == repr(entry)


@pytest.mark.parametrize("levels", [100, 5_000, 15_000])
def test_what_is_too_deep_is_told(levels: int) -> None:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    data = ENTRY_PACKER.pack(user(1, "deep", Opaque(value)))
    if levels == 100:
        assert isinstance(ENTRY_PACKER.unpack(data), Message)
    else:
        with pytest.raises(UnpackError):
            ENTRY_PACKER.unpack(data)


@given(some.binary())
def test_other_bytes_are_told(data: bytes) -> None:
    for read in (ENTRY_PACKER.unpack, unbundle):
        with pytest.raises(UnpackError):
            read(b"\xc1" + data)  # which begins nothing


@given(some.lists(some.binary()))
def test_a_bundle_holds_what_was_put_into_it(packed: list[bytes]) -> None:
    assert unbundle(bundle(packed)) == packed
