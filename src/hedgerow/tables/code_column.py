"""The codes of an axis's nodes as columns of Arrow, which hold each code of a level once.

A level whose codes are too many to be one dictionary, such as a nation's blocks, has a text a row.
"""

import polars as pl
import pyarrow as pa

from hedgerow.arrays import Int32
from hedgerow.declared import frozen

MOST_SHARED = 1 << 22
"""Bytes of a dictionary of all a level's codes in a Parquet file up to which it becomes one."""
BYTES_A_LENGTH = 4


@frozen
class CodeColumn:
    """The codes of a level's nodes in one column.

    Attributes:
        words: the codes, each once; or those of all nodes, where each row has its own text.
        number: int32 (nodes): which word each node has; None where words are those of all nodes.
    """

    words: pl.Series
    number: Int32 | None

    @classmethod
    def of(cls, codes: pl.Series) -> "CodeColumn":
        """Return the column of the codes of a level's nodes."""
        if int(codes.str.len_bytes().sum()) + BYTES_A_LENGTH * len(codes) > MOST_SHARED:
            return cls(codes, None)
        words = codes.unique(maintain_order=True)
        number = codes.cast(pl.Enum(words)).to_physical().cast(pl.Int32).to_numpy()
        return cls(words, number)

    @property
    def kind(self) -> pa.DataType:
        """The column's type: a dictionary of texts, or texts."""
        return pa.string() if self.number is None else pa.dictionary(pa.int32(), pa.string())

    def rows(self, nodes: Int32, place: Int32) -> pa.Array:
        """Return the column of many rows at few nodes.

        Args:
            nodes: int32 (nodes), at least one.
            place: int32 (rows): which of the nodes each row is at.

        Returns:
            Codes of the column's type; a dictionary holds those of the words that lie between the
            first and the last that the nodes have.
        """
        number = nodes if self.number is None else self.number[nodes]
        first = number.min()
        words = self.words[int(first) : int(number.max()) + 1].to_arrow().cast(pa.string())
        index = pa.array((number - first)[place])
        if self.number is None:
            return words.take(index)
        return pa.DictionaryArray.from_arrays(index, words)
