"""A redacted dataset holds no secret that its sessions give away, whenever they do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retold.lake.dataset import Dataset
from support.dataset_exports import KEY, MAIL, all_bytes, export_dataset, person_with_archive, table_objects
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return person_with_archive(tmp_path / "ann")


def test_it_is_without_secrets_and_names_also_in_paths_and_manifest(ann: Person, tmp_path: Path) -> None:
    told = export_dataset(ann, tmp_path / "lake")
    assert "taken out: " in told
    held = all_bytes(tmp_path / "lake")
    for secret in (KEY, MAIL, "ternann"):
        assert secret.encode() not in held
    assert b"[redacted:" in held
    assert json.loads((tmp_path / "lake" / "retold.json").read_bytes())["is_redacted"] is True
    export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")
    assert KEY.encode() in all_bytes(tmp_path / "lake")
    export_dataset(ann, tmp_path / "lake")
    assert KEY.encode() not in all_bytes(tmp_path / "lake")


def test_what_only_a_later_session_gives_away_does_not_stand_in_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retold.lake.dataset_files.PART_BYTES", 1)  # each in a part of its own
    home, word = GeminiHome(tmp_path / "bob"), "Quagmire-Plover-77"
    home.lines("den", 1 << 28, 1, [user("u1", 1, f"try {word} again")], kind="main")
    person = Person(tmp_path / "bob")
    person.sync()
    export_dataset(person, tmp_path / "lake")
    assert word.encode() in all_bytes(tmp_path / "lake")
    home.lines("den", 2 << 28, 20, [user("u2", 21, f"DB_PASSWORD={word}")], kind="main")
    person.sync()
    export_dataset(person, tmp_path / "lake")
    assert word.encode() not in all_bytes(tmp_path / "lake")


def test_what_a_sync_brings_while_it_is_written_is_without_its_secrets(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Dataset._load  # noqa: SLF001 - nowhere else is it between the two

    def meanwhile(self: Dataset, show: Callable[[int, int], None]) -> None:
        learn(self, show)
        late = "export DB_PASSWORD=qX7vTr0ub4dor93Zk"
        GeminiHome(ann.folder).lines("den", 2, 20, [user("u2", 21, late), gemini("g2", 22, "In reeds.")])
        ann.sync()

    monkeypatch.setattr(Dataset, "_load", meanwhile)
    export_dataset(ann, tmp_path / "lake")
    texts = [row["text"] for row in table_objects(tmp_path / "lake", "messages")]
    assert any("DB_PASSWORD" in str(text) for text in texts), "it came too late to be seen"
    assert "qX7vTr0ub4dor93Zk" not in str(texts)


def bringing(ann: Person, secrets: list[str]) -> Callable[[Dataset, Callable[[int, int], None]], None]:
    """Return what learns, and then lets a sync bring a session with one of some secrets."""
    learn = Dataset._load  # noqa: SLF001 - nowhere else is it between the two

    def meanwhile(self: Dataset, show: Callable[[int, int], None]) -> None:
        learn(self, show)
        if secrets:
            said = [user("u2", 21, f"DB_PASSWORD={secrets.pop()}"), gemini("g2", 22, "In reeds.")]
            GeminiHome(ann.folder).lines("den", 2, 20, said)
            ann.sync()

    return meanwhile


def test_what_a_sync_gives_away_while_it_is_written_stands_in_no_other_session(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "Quagmire-Plover-77"
    GeminiHome(ann.folder).lines("den", 5 << 28, 5, [user("u5", 6, f"try {word} again")], kind="main")
    ann.sync()
    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "_load", bringing(ann, [word]))
        export_dataset(ann, tmp_path / "lake")
    held = all_bytes(tmp_path / "lake")
    assert b"DB_PASSWORD" in held, "it came too late to be seen"
    assert word.encode() not in held
    assert json.loads((tmp_path / "lake" / "retold.json").read_bytes())["is_redacted"] is True
    assert " 0 written, " in export_dataset(ann, tmp_path / "lake")


def test_where_syncs_bring_secrets_all_the_while_it_is_not_called_complete(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        secrets = [f"Quagmire-Plover-{number}" for number in range(10, 30)]
        patched.setattr(Dataset, "_load", bringing(ann, secrets))
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert (done.code, "secrets all the while" in done.err) == (4, True)
    assert len(secrets) == 16, "it gave up soon"
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (False, False)
    export_dataset(ann, tmp_path / "lake")
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (True, True)


def test_what_others_write_without_a_secret_costs_nothing_written_twice(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, brought = Dataset._load, Dataset._write_parts  # noqa: SLF001 - nowhere else is it between the two
    rounds: list[int] = []

    def tagged(self: Dataset, show: Callable[[int, int], None]) -> None:
        learn(self, show)
        assert ann.run("tag", min(ann.rows()), "+reeds").code == 0

    def counted(self: Dataset, *given: Any, **named: Any) -> Any:
        rounds.append(1)
        return brought(self, *given, **named)

    monkeypatch.setattr(Dataset, "_load", tagged)
    monkeypatch.setattr(Dataset, "_write_parts", counted)
    export_dataset(ann, tmp_path / "lake")
    assert len(rounds) == 1


def test_a_dataset_is_not_called_redacted_before_it_is(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")

    def stopped(*_: object) -> dict[str, int]:
        raise OSError("stopped")

    with monkeypatch.context() as patched:
        patched.setattr("retold.lake.dataset.write_part", stopped)
        assert ann.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake")).code == 4
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (False, False)
    export_dataset(ann, tmp_path / "lake")
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (True, True)


def test_a_session_that_goes_with_its_secret_is_counted_as_gone(ann: Person, tmp_path: Path) -> None:
    export_dataset(ann, tmp_path / "lake")
    (key,) = {
        row["session"]
        for row in table_objects(tmp_path / "lake", "messages")
        if "[redacted" in str(row["text"])
    }
    assert ann.run("forget", "-y", str(key)).code == 0
    assert ", 1 removed" in export_dataset(ann, tmp_path / "lake")
