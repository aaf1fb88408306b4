"""Keyed random bits: one secret key, any number of independent streams of 64-bit words.

Every random number of a release is a function of one secret `ReleaseKey` and of the *place* where
it is used (a tuple of integers: levels, subtree job, …). So whoever repeats a job draws the same
noise, in any order and from any word on, and nobody who lacks the key can tell the words from
uniform ones. Keys come from the operating system; there is no seed here. Simulations on public
data bring their own `Bits`.

The construction: HKDF-Expand with SHA-256 (RFC 5869, section 2.3) maps a key and an unambiguous
encoding of a place to 64 bytes, 32 that encrypt and 32 that only derive further keys; the words
are the AES-256 key stream in counter mode (NIST SP 800-38A, section 6.5), two words a block.
"""

import hashlib
import operator
import os
from dataclasses import field
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from hedgerow.arrays import Sizes, UInt64
from hedgerow.declared import frozen
from hedgerow.errors import NoiseError

KEY_BYTES = 32
BLOCK_BYTES = 16
STREAM_LABEL = b"hedgerow/noise/1/stream:"
BRANCH_LABEL = b"hedgerow/noise/1/branch:"
ZEROS = memoryview(
    bytes(1 << 19)
)  # the plaintext under the key stream; kept to avoid making it again


class Stream(Protocol):
    """Uniform 64-bit words that can be read from anywhere, again and again."""

    def words(self, start: int, count: int) -> UInt64:
        """Return words ``start .. start + count - 1``: uint64 (count); word i never changes."""
        ...

    def branch(self, *place: int) -> "Stream":
        """Return a stream that is independent of this one and of its branches at other places."""
        ...


class Bits(Protocol):
    """Where streams come from: a `ReleaseKey`, or a seeded generator in a simulation."""

    def stream(self, *place: int) -> Stream:
        """Return the stream of a place; streams of different places are independent."""
        ...


@frozen
class ReleaseKey:
    """The 32 secret bytes behind all the noise of one release; ``repr`` does not show them.

    Whoever holds the key can subtract the noise: it stays inside the boundary.

    Raises:
        NoiseError: the secret is not 32 bytes.
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes):
            raise NoiseError(f"a release key is bytes, got {type(self.secret).__name__}")
        if len(self.secret) != KEY_BYTES:
            raise NoiseError(
                f"a release key is {KEY_BYTES} bytes, got {len(self.secret)}; "
                "use ReleaseKey.fresh() for a new one"
            )

    @classmethod
    def fresh(cls) -> "ReleaseKey":
        """Return a new key from the operating system's generator."""
        return cls(os.urandom(KEY_BYTES))

    def stream(self, *place: int) -> "KeyedStream":
        """Return the AES-256-CTR stream of a place."""
        return _derive(self.secret, STREAM_LABEL, place)


def key_of(words: str) -> ReleaseKey:
    """Return the key that some words stand for, which anyone can make again: it protects nothing.

    For simulations, and for errors that are drawn of what is public.
    """
    return ReleaseKey(hashlib.sha256(f"hedgerow/{words}".encode()).digest())


@frozen
class KeyedStream:
    """An AES-256-CTR key stream, read as little-endian words: a `Stream`.

    Blocks are numbered by a 128-bit big-endian counter from 0, so words 2i and 2i + 1 are block i.
    """

    cipher_key: bytes = field(repr=False)
    branch_key: bytes = field(repr=False)

    def words(self, start: int, count: int) -> UInt64:
        """Return words ``start .. start + count - 1``: uint64 (count)."""
        if start < 0 or count < 0:
            raise NoiseError(f"words are counted from 0, got start={start} and count={count}")
        block, skipped = divmod(int(start), 2)
        wanted = np.empty(skipped + int(count), dtype="<u8")
        out = wanted.view(np.uint8).data
        counter = modes.CTR(block.to_bytes(BLOCK_BYTES, "big"))
        encryptor = Cipher(algorithms.AES(self.cipher_key), counter).encryptor()
        for a in range(0, len(out), len(ZEROS)):
            encryptor.update_into(ZEROS[: len(out) - a], out[a:])
        return wanted[skipped:].astype(np.uint64, copy=False)

    def branch(self, *place: int) -> "KeyedStream":
        """Return the stream of a place under this stream's own key; no word here tells it."""
        return _derive(self.branch_key, BRANCH_LABEL, place)


def _derive(key: bytes, label: bytes, place: Sizes) -> KeyedStream:
    okm = HKDFExpand(SHA256(), 2 * KEY_BYTES, label + encode_place(place)).derive(key)
    return KeyedStream(okm[:KEY_BYTES], okm[KEY_BYTES:])


def encode_place(place: Sizes) -> bytes:
    """Return the bytes of a place, different for different places.

    Each integer is its length (4 bytes) and then its two's complement in the fewest whole bytes,
    so the sequence can be read back from the left: the encoding is injective.
    """
    encoded = []
    for item in map(operator.index, place):
        body = item.to_bytes(item.bit_length() // 8 + 1, "big", signed=True)
        encoded.append(len(body).to_bytes(4, "big") + body)
    return b"".join(encoded)
