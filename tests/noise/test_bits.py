import hashlib
import hmac
import pickle
from typing import cast

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import NoiseError
from hedgerow.noise.bits import ZEROS, ReleaseKey, encode_place
from tests.noise.reference import KEY

PINNED_WORDS = [7914084358322915482, 5576673847482868526]
places = st.lists(
    st.integers(min_value=-(2**200), max_value=2**200) | st.integers(-3, 3), max_size=4
)


def expanded(key, info):
    """64 bytes of HKDF-Expand, from RFC 5869 and the standard library's HMAC."""
    first = hmac.digest(key, info + b"\x01", hashlib.sha256)
    return first + hmac.digest(key, first + info + b"\x02", hashlib.sha256)


def encrypted(cipher_key, blocks):
    encryptor = Cipher(algorithms.AES(cipher_key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(encryptor.update(bytes(16 * blocks)) + encryptor.finalize(), dtype="<u8")


def test_a_stream_is_aes_ctr_under_the_expanded_key():
    okm = expanded(KEY.secret, b"hedgerow/noise/1/stream:" + encode_place((3, -7)))
    words = KEY.stream(3, -7).words(0, 1000)
    assert words.dtype == np.uint64
    np.testing.assert_array_equal(words, encrypted(okm[:32], 500))


def test_a_branch_is_aes_ctr_under_a_key_expanded_from_the_streams_second_key():
    okm = expanded(KEY.secret, b"hedgerow/noise/1/stream:" + encode_place(()))
    okm = expanded(okm[32:], b"hedgerow/noise/1/branch:" + encode_place((5,)))
    np.testing.assert_array_equal(KEY.stream().branch(5).words(0, 10), encrypted(okm[:32], 5))


def test_the_words_of_a_key_never_change_between_versions():
    """A release that resumes under a later version must draw the same noise."""
    assert KEY.stream(1, 2).words(0, 2).tolist() == PINNED_WORDS


@given(st.integers(0, 300), st.integers(0, 300))
def test_words_can_be_read_from_anywhere(start, count):
    stream = KEY.stream(1)
    np.testing.assert_array_equal(stream.words(start, count), stream.words(0, 600)[start:][:count])


def test_words_far_out_and_long_reads_agree_with_short_ones():
    stream = KEY.stream(1)
    count = len(ZEROS) // 8 * 2 + 3  # three pieces
    many = stream.words(2**70 + 1, count)
    for at in (0, len(ZEROS) // 8 - 1, len(ZEROS) // 8, count - 1):
        assert many[at] == stream.words(2**70 + 1 + at, 1)[0]


def test_other_keys_places_and_branches_give_other_words():
    other = ReleaseKey(bytes(32))
    base = KEY.stream(1)
    streams = [
        *(KEY.stream(*place) for place in [(), (0,), (1,), (-1,), (1, 0), (256,), (0, 1)]),
        *(base.branch(*place) for place in [(), (0,), (1,), (0, 0)]),
        base.branch(0).branch(0),
        other.stream(1),
    ]
    assert len({int(stream.words(0, 1)[0]) for stream in streams}) == len(streams)


@pytest.mark.usefixtures("keys_of_the_system")
def test_fresh_keys_differ():
    assert ReleaseKey.fresh() != ReleaseKey.fresh()


@given(places, places)
def test_different_places_have_different_encodings(a, b):
    assert (encode_place(tuple(a)) == encode_place(tuple(b))) == (a == b)


def test_numpy_integers_are_the_same_place_as_python_integers():
    assert encode_place((cast("int", np.int64(-300)), 2**80)) == encode_place((-300, 2**80))


def test_no_key_is_shown_by_repr():
    shown = repr(KEY) + repr(KEY.stream(1)) + str(KEY)
    assert shown == "ReleaseKey()KeyedStream()ReleaseKey()"


def test_a_key_and_its_streams_travel_to_other_processes():
    key, stream = pickle.loads(pickle.dumps((KEY, KEY.stream(4))))  # noqa: S301
    assert key == KEY
    assert stream.words(5, 1) == KEY.stream(4).words(5, 1)


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33)])
def test_a_key_of_another_length_is_refused(secret):
    with pytest.raises(NoiseError, match=f"a release key is 32 bytes, got {len(secret)};"):
        ReleaseKey(secret)


def test_a_key_that_is_not_bytes_is_refused():
    with pytest.raises(NoiseError, match="a release key is bytes, got str"):
        ReleaseKey(cast("bytes", "x" * 32))


@pytest.mark.parametrize(("start", "count"), [(-1, 1), (0, -1)])
def test_words_before_the_first_are_refused(start, count):
    with pytest.raises(NoiseError, match="words are counted from 0"):
        KEY.stream().words(start, count)
