"""The bucket of each row, which is the same on every machine, in every process, under every hash seed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import Int64, whole
from harness.compiled import compiled, modular

UInt64 = npt.NDArray[np.uint64]


def mixed(values: npt.NDArray[np.integer], seed: UInt64 | int = 0) -> UInt64:
    """Spread integers over 64 bits (the finalizer of splitmix64); `seed` chains several columns."""
    return _mixed(values.astype(np.int64), np.atleast_1d(np.asarray(seed, dtype=np.uint64)))


@compiled
def _mixed(values: Int64, seeds: UInt64) -> UInt64:
    """`seeds`: one for each value, or one for all. It works on whole arrays, because only these overflow silently
    everywhere."""
    z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) + seeds
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@modular
def place_of(first: int, second: int, size: int) -> int:
    """The place at which a hash table of this size, a power of 2, is searched first for these two numbers."""
    z = np.uint64(np.int64(first)) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(np.int64(second)) * np.uint64(0xC2B2AE3D27D4EB4F)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return int(np.int64((z ^ (z >> np.uint64(31))) & np.uint64(size - 1)))


def mixed_column(column: pa.Array | pa.ChunkedArray, seed: UInt64 | int = 0) -> UInt64:
    """Hashes of an integer or string column; nulls hash alike."""
    column = whole(column)
    if pa.types.is_integer(column.type):
        return mixed(pc.fill_null(column, -1).to_numpy(zero_copy_only=False), seed)
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    texts = column.dictionary.to_pylist()
    table = np.array([zlib.crc32(text.encode()) for text in texts] + [0], dtype=np.int64)
    return mixed(table[pc.fill_null(column.indices, len(texts)).to_numpy(zero_copy_only=False)], seed)


def bucket_of(hashes: UInt64, buckets: int) -> npt.NDArray[np.int32]:
    """A bucket in [0, buckets) for each hash."""
    # The product of the upper half shifts down what a division would take five times as long for.
    return (((hashes >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)).astype(np.int32)


def partition_of(table: pa.Table, keys: Sequence[str], partitions: int) -> npt.NDArray[np.int32]:
    """A partition for each row; rows that agree on `keys` get the same one."""
    if len(keys) == 1 and pa.types.is_integer(table.schema.field(keys[0]).type):
        # Buckets are dense: assigning them in turn spreads them evenly, which hashing them again would not.
        number = pc.fill_null(whole(table[keys[0]]), -1).to_numpy()
        dealt = number if number.min() >= 0 and number.max() < partitions else number.astype(np.int64) % partitions
        return np.asarray(dealt, dtype=np.int32)
    hashes: UInt64 | int = 0
    for key in keys:
        hashes = mixed_column(table[key], hashes)
    return bucket_of(np.asarray(hashes, dtype=np.uint64), partitions)
