"""How fast the embedded engine's state structures are, in millions of keys a second on one core.

    python benchmarks/kernels.py

Each figure is the best of several passes, so that other work on the machine disturbs it little. Maps hold their keys already
(upsert finds them) except where the row says insert; "shuffled" visits keys in another order than they were inserted in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from everview.backends.embedded.state.accumulate import Floats, scatter_add_float, scatter_add_int
from everview.backends.embedded.state.consolidate import consolidate
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.ordered import OrderedIndex
from everview.backends.embedded.state.ordered_sums import COUNTED, OrderedSums
from everview.backends.embedded.state.slices import SliceIndex
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.state.wide import scatter_add_wide
from everview.backends.embedded.vectors import Ints

SIZES = (25_000, 1_000_000)
BATCHES = (1_000, 100_000)
WIDTHS = (1, 2, 4)
PASSES = 5

rng = np.random.default_rng(0)


def best(step: Callable[[Ints], object], batches: list[Ints]) -> float:
    """Millions of rows a second of the best of several passes over batches."""
    rows = sum(len(batch) for batch in batches)
    fastest = 0.0
    for _ in range(PASSES):
        start = time.perf_counter()
        for batch in batches:
            step(batch)
        fastest = max(fastest, rows / (time.perf_counter() - start) / 1e6)
    return fastest


def cut(keys: Ints, size: int) -> list[Ints]:
    """Batches of a size; at least 100,000 rows in all, so that a pass is long enough to measure."""
    repeated = np.concatenate([keys] * max(1, 100_000 // len(keys)))
    return [repeated[at : at + size] for at in range(0, len(repeated), size)]


def rows_of(values: Ints, width: int) -> Ints:
    """Key rows: the values, and for wider keys words that depend on them."""
    keys = np.zeros((len(values), width), dtype=np.int64)
    for word in range(width):
        keys[:, word] = values % (7 * word) if word else values
    return keys


def report(name: str, cells: list[float]) -> None:
    """One line of the table."""
    print(f"{name:<44}" + "".join(f"{cell:>12.1f}" for cell in cells), flush=True)


def hash_maps() -> None:
    """Upsert, find, add_weights, consolidate."""
    for width in WIDTHS:
        for order in ("dense", "shuffled"):
            table: dict[str, list[float]] = {}
            for size in SIZES:
                keys = rows_of(np.arange(size), width)
                visited = keys if order == "dense" else rng.permutation(keys)
                inserted = keys if order == "dense" else rng.permutation(keys)
                keymap, zset = KeyMap(width), WeightMap(width)
                keymap.upsert(inserted)
                zset.add_weights(inserted, np.ones(size, dtype=np.int64))
                for batch in BATCHES:
                    batches = cut(visited, batch)
                    ones = np.ones(batch, dtype=np.int64)
                    fresh = cut(inserted, batch)[: -(-size // batch)]
                    table.setdefault("insert", []).append(insert_speed(width, fresh))
                    table.setdefault("upsert", []).append(best(keymap.upsert, batches))
                    table.setdefault("find", []).append(best(keymap.find, batches))
                    table.setdefault("add_weights", []).append(
                        best(lambda b, z=zset, o=ones: z.add_weights(b, o[: len(b)]), batches)  # type: ignore[misc]  # mypy cannot infer it
                    )
                    table.setdefault("consolidate", []).append(
                        best(lambda b, o=ones: consolidate(b, o[: len(b)]), batches)  # type: ignore[misc]  # mypy cannot infer it
                    )
            for name, cells in table.items():
                report(f"{name}, {width} words, {order}", cells)


def two_words() -> None:
    """Creating and finding keys of two words, as primary keys have them: what hardly any hash treats alike."""
    patterns: dict[str, Callable[[Ints], tuple[Ints, Ints]]] = {
        "order and line": lambda i: (i // 4, i % 4 + 1),
        "grid": lambda i: (i // 1024, i % 1024),
        "diagonal": lambda i: (i, i),
        "stride and day": lambda i: (i * 4096, 19_000 + i % 365),
        "sensor and microsecond": lambda i: (i % 100, 1_700_000_000_000_000 + i // 100 * 1_000_000),
        "random": lambda i: (rng.integers(-(2**62), 2**62, len(i)), rng.integers(-(2**62), 2**62, len(i))),
    }
    for name, words in patterns.items():
        inserted, found = [], []
        for size in SIZES:
            keys, keymap = np.stack(words(np.arange(size)), axis=1), KeyMap(2)
            keymap.upsert(keys)
            for batch in BATCHES:
                inserted.append(insert_speed(2, cut(keys, batch)[: -(-size // batch)]))
                found.append(best(keymap.find, cut(rng.permutation(keys), batch)))
        report(f"insert, {name}", inserted)
        report(f"find shuffled, {name}", found)


def insert_speed(width: int, batches: list[Ints]) -> float:
    """Filling an empty map, growth included."""
    fastest = 0.0
    for _ in range(PASSES):
        keymap = KeyMap(width)
        start = time.perf_counter()
        for batch in batches:
            keymap.upsert(batch)
        fastest = max(fastest, len(keymap) / (time.perf_counter() - start) / 1e6)
    return fastest


def slices() -> None:
    """Expansion of slices of ten entries (pairs a second), and their upkeep."""
    expanded, kept = [], []
    for size in SIZES:
        keys = rng.permutation(np.stack([np.arange(size) // 10, np.arange(size)], axis=1))
        keymap = KeyMap(2)
        slots = keymap.upsert(keys)
        index = SliceIndex(keymap, (0,))
        index.build()
        for batch in BATCHES:
            probes = cut(rng.permutation(size // 10).reshape(-1, 1), batch // 10)
            expanded.append(10 * best(index.expand, probes))
            pieces = np.array_split(rng.permutation(slots), -(-size // batch))

            def renew(piece: Ints, index: SliceIndex = index) -> None:
                index.remove(piece)
                index.add(piece)

            kept.append(best(renew, pieces))
    report("slice expand, pairs", expanded)
    report("slice remove and add", kept)


def ordered() -> None:
    """Ordered index of (group, value): insertion, update, first, rank; and ordered sums of the same, with counts."""
    table: dict[str, list[float]] = {}
    for size in SIZES:
        keys = rng.permutation(np.stack([np.arange(size) // 20, np.arange(size)], axis=1))
        for batch in BATCHES:
            ones = np.ones(batch, dtype=np.int64)
            fastest = 0.0
            for _ in range(PASSES):
                index = OrderedIndex(2)
                start = time.perf_counter()
                for at in range(0, size, batch):
                    index.add(keys[at : at + batch], ones[: size - at])
                fastest = max(fastest, size / (time.perf_counter() - start) / 1e6)
            table.setdefault("ordered insert", []).append(fastest)
            visited = cut(rng.permutation(keys)[:100_000], batch)
            groups = [np.ascontiguousarray(piece[:, :1]) for piece in visited]
            table.setdefault("ordered add to present", []).append(
                best(lambda b, i=index, o=ones: i.add(b, o[: len(b)]), visited)  # type: ignore[misc]  # mypy cannot infer it
            )
            table.setdefault("ordered first of group", []).append(best(index.first, groups))
            table.setdefault("ordered rank", []).append(best(index.rank, visited))
            start, sums_of = time.perf_counter(), OrderedSums(2, (COUNTED,))
            for at in range(0, size, batch):
                sums_of.add(keys[at : at + batch], ones[: size - at].reshape(-1, 1))
            table.setdefault("sums insert", []).append(size / (time.perf_counter() - start) / 1e6)
            table.setdefault("sums add to present", []).append(
                best(lambda b, s=sums_of, o=ones: s.add(b, o[: len(b)].reshape(-1, 1)), visited)  # type: ignore[misc]  # as above
            )
            table.setdefault("sums rank", []).append(best(sums_of.rank, visited))
            table.setdefault("ordered, bytes an entry", []).append(index.nbytes / size)
            table.setdefault("sums, bytes an entry", []).append(sums_of.nbytes / size)
    for name, cells in table.items():
        report(name, cells)


def add_int(payload: Ints, values: Ints, weights: Ints, slots: Ints) -> None:
    """One batch of integer sums."""
    scatter_add_int(payload, 0, slots, values[: len(slots)], weights[: len(slots)])


def add_wide(payload: Ints, values: Ints, weights: Ints, slots: Ints) -> None:
    """One batch of wide sums."""
    scatter_add_wide(payload, slots, values[: len(slots)], weights[: len(slots)])


def add_float(payload: Floats, counters: Ints, values: Floats, weights: Ints, slots: Ints) -> None:
    """One batch of float sums."""
    scatter_add_float(payload, 0, counters, 0, slots, values[: len(slots)], weights[: len(slots)])


def sums() -> None:
    """Accumulation per slot."""
    table: dict[str, list[float]] = {}
    for size in SIZES:
        words = np.zeros((size, 3), dtype=np.int64)
        floats, counters = np.zeros((size, 2)), np.zeros((size, 4), dtype=np.int64)
        for batch in BATCHES:
            ones, values = np.ones(batch, dtype=np.int64), np.arange(batch)
            slots = cut(rng.permutation(size), batch)
            steps = {
                "scatter_add_int": partial(add_int, words, values, ones),
                "scatter_add_wide": partial(add_wide, words, values, ones),
                "scatter_add_float": partial(
                    add_float, floats, counters, np.multiply(values, 0.1, dtype=np.float64), ones
                ),
            }
            for name, step in steps.items():
                table.setdefault(name, []).append(best(step, slots))
    for name, cells in table.items():
        report(name, cells)


def calls() -> None:
    """The price of a call from Python with one row."""
    keys, ones = np.zeros((1, 1), dtype=np.int64), np.ones(1, dtype=np.int64)
    keymap, zset, index = KeyMap(1), WeightMap(1), OrderedIndex(1)
    slices_of = SliceIndex(keymap, (0,))
    slices_of.add(keymap.upsert(keys))
    steps: dict[str, Callable[[], object]] = {
        "upsert": lambda: keymap.upsert(keys),
        "find": lambda: keymap.find(keys),
        "add_weights": lambda: zset.add_weights(keys, ones),
        "consolidate": lambda: consolidate(keys, ones),
        "slice expand": lambda: slices_of.expand(keys),
        "ordered add": lambda: index.add(keys, ones),
        "ordered first": lambda: index.first(keys),
    }
    for name, call in steps.items():
        fastest = float("inf")
        for _ in range(PASSES):
            start = time.perf_counter()
            for _ in range(5_000):
                call()
            fastest = min(fastest, (time.perf_counter() - start) / 5_000 * 1e6)
        print(f"one call of {name:<32}{fastest:>12.1f} µs", flush=True)


def main() -> None:
    """Print the table."""
    head = [f"{size // 1000}k/{batch // 1000}k" for size in SIZES for batch in BATCHES]
    print(f"{'M rows/s, by keys held / batch':<44}" + "".join(f"{cell:>12}" for cell in head))
    hash_maps()
    two_words()
    slices()
    ordered()
    sums()
    calls()


if __name__ == "__main__":
    main()
