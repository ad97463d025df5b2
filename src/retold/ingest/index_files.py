"""The text index while a sync writes it: all of its files, and what of the archive they hold."""

from collections.abc import Mapping

from retold.archive.index.files import SHARDS, shard_path
from retold.archive.index.writer import IndexWriter
from retold.archive.store import Store


class IndexFiles:
    """The files of the index, opened."""

    def __init__(self, record: Store) -> None:
        """Take the archive."""
        self._folder, self._archive = record.folder, record.id
        self.open()

    def open(self) -> None:
        """Open them; again, when others have written them meanwhile."""
        self.shards = [
            IndexWriter(shard_path(self._folder, number), self._archive) for number in range(SHARDS)
        ]

    def close(self) -> None:
        """Let go of them."""
        for shard in self.shards:
            shard.close()

    def commit(self, generation: int | None = None) -> None:
        """Make what was written be seen; with the generation of the archive that it is of, where it is all of it."""
        for shard in self.shards:
            shard.commit(generation)

    def are_of(self, generation: object) -> bool:
        """Tell whether all of them are what the sync of a generation left."""
        return all(shard.generation() == generation for shard in self.shards)

    def stamps(self) -> dict[int, bytes]:
        """Return the sessions in them, and what each was made from."""
        return {name: stamp for shard in self.shards for name, stamp in shard.stamps().items()}

    def places(self) -> dict[int, int]:
        """Return the sessions in them, and the number of the file that each is in."""
        return {name: number for number, shard in enumerate(self.shards) for name in shard.stamps()}

    def weed(self, known: Mapping[int, bytes]) -> set[int]:
        """Take out what is in the archive no more, or otherwise, or twice; return what is left."""
        there: set[int] = set()
        for shard in self.shards:
            for name, stamp in shard.stamps().items():
                if known.get(name) == stamp and name not in there:
                    there.add(name)
                else:
                    shard.begin()
                    shard.remove(name)
        return there
