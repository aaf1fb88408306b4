"""The pages of a Parquet file, told by their own headers before any is read.

A footer says how large its columns are, and whoever wrote it may say anything. What a reader will
allocate is in the header of each page: the size of what it holds, how many values, and their
encoding. (Apache Parquet, ``parquet.thrift``: PageHeader; Thrift's compact protocol.)
"""

import struct
from collections.abc import Collection, Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.declared import frozen
from hedgerow.errors import TableError

HEADER_BYTES = 1 << 14
MOST_DEPTH = 8

PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
DELTA_BYTE_ARRAY = 7
"""It makes much of little: a delta of long prefixes."""
DATA, DICTIONARY, DATA_2 = 0, 2, 3


@frozen
class Page:
    """What the header of a page says.

    Attributes:
        kind: data, dictionary, or data of the second kind.
        size: bytes of what it holds, once that is not compressed.
        packed: bytes in the file.
        values: how many.
        encoding: of the values.
        at: where its bytes begin in the file.
    """

    kind: int
    size: int
    packed: int
    values: int
    encoding: int
    at: int


def pages(file: IO[bytes], start: int, stop: int) -> Iterator[Page]:
    """Yield the pages between two places of a file.

    Raises:
        TableError: what is there is no page, or is larger than its place.
    """
    while start < stop:
        file.seek(start)
        head = _Compact(file.read(HEADER_BYTES))
        facts = head.struct()
        kind, size, packed = (facts.get(field, -1) for field in (1, 2, 3))
        about = facts.get({DATA: 5, DICTIONARY: 7, DATA_2: 8}.get(kind, 0))
        if not isinstance(about, dict):
            raise _no_page()
        values = about.get(1, -1)
        encoding = about.get(4 if kind == DATA_2 else 2, -1)
        at = start + head.at
        numbers = (kind, size, packed, values, encoding)
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise _no_page()
        start = at + packed
        if start > stop:
            raise _no_page()
        yield Page(kind, size, packed, values, encoding, at)


def bytes_of_chunk(
    file: IO[bytes],
    chunk: pq.ColumnChunkMetaData,
    rows: int,
    most_dictionary: int,
    encodings: Collection[int] | None = None,
) -> int:
    """Return the most bytes that a chunk's pages hold, a dictionary's texts as often as they may.

    Args:
        file: that has it.
        chunk: what the footer says of it.
        rows: of its group.
        most_dictionary: bytes of a dictionary.
        encodings: that are allowed; unless given all that cannot make much of little.

    Raises:
        TableError: it has a page that is none, or of another encoding.
    """
    offsets = (chunk.data_page_offset, chunk.dictionary_page_offset or 0)  # 0: there is none
    start = min((offset for offset in offsets if offset > 0), default=0)
    longest = 0
    coded = 0
    size = 0
    for page in pages(file, start, start + chunk.total_compressed_size):
        is_known = page.encoding in encodings if encodings else page.encoding != DELTA_BYTE_ARRAY
        if page.kind == DICTIONARY:
            is_text = chunk.physical_type == "BYTE_ARRAY"
            longest = (
                longest_entry(file, page, chunk.compression, most_dictionary) if is_text else 0
            )
        elif page.values > rows or not is_known:
            raise TableError(
                "it has a page with more values than rows, or in an encoding that is not read "
                "(such as delta byte arrays); write the file again with the usual encodings"
            )
        elif page.encoding in {PLAIN_DICTIONARY, RLE_DICTIONARY}:
            coded += page.values
        size += page.size
    return size + min(coded, rows) * longest


def longest_entry(file: IO[bytes], page: Page, codec: str, most: int) -> int:
    """Return the bytes of the longest text in a dictionary of at most ``most`` bytes.

    Raises:
        TableError: it is larger, or is none.
    """
    if page.size > most:
        raise TableError(f"a dictionary of {page.size:,} bytes is larger than any that is read")
    file.seek(page.at)
    data = file.read(page.packed)
    try:
        if codec != "UNCOMPRESSED":
            data = pa.Codec(codec.lower()).decompress(data, page.size).to_pybytes()
        at = longest = 0
        for _ in range(page.values):
            (length,) = struct.unpack_from("<I", data, at)
            at, longest = at + 4 + length, max(longest, length)
    except (pa.ArrowException, ValueError, OSError, struct.error):
        raise _no_page() from None
    return longest


class _Compact:
    """Bytes of Thrift's compact protocol, of which whole numbers and structures are kept."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a structure by their numbers."""
        if depth > MOST_DEPTH:
            raise _no_page()
        fields = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else _signed(self._number())
            fields[field] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in {1, 2}:
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in {4, 5, 6}:
            return _signed(self._number())
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._number())
        if kind == 12:
            return self.struct(depth + 1)
        raise _no_page()  # no header has lists, sets or maps

    def _byte(self) -> int:
        if self.at >= len(self.data):
            raise _no_page()
        self.at += 1
        return self.data[self.at - 1]

    def _number(self) -> int:
        number = 0
        for place in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << place
            if byte < 128:
                return number
        raise _no_page()

    def _skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.data):
            raise _no_page()


def _signed(number: int) -> int:
    """Of a number in zigzag order."""
    return (number >> 1) ^ -(number & 1)


def _no_page() -> TableError:
    return TableError("it holds something that is no page of a Parquet file")
