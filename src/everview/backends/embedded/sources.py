"""Where deltas enter the DAG: scans of tables, and constants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.column_reader import ColumnReader, Rows
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import constant_vector
from everview.backends.embedded.factorized_batch import FactorBatch, FactorizedBatch, FactorProduct
from everview.backends.embedded.operators.base import Operator, Searched
from everview.backends.embedded.operators.table_arrangement import TableArrangement
from everview.backends.embedded.operators.table_part import PartColumns, TablePart
from everview.backends.embedded.rank_batch import RankBatch
from everview.backends.embedded.tables.stored_table import StoredTable
from everview.backends.embedded.tables.transaction_rows import WeightedRows, joined, rows_of
from everview.backends.embedded.text_tests import TextTest
from everview.backends.embedded.vectors import Batch, Ints, Vector, empty_batch
from everview.backends.factorized_rows import FactorizedChange, ProductRows
from everview.backends.rank_change import RankChange
from everview.backends.rejections import no_text
from everview.relational.arrow import arrow_schema
from everview.relational.arrow_text import is_unicode
from everview.relational.expressions import Literal
from everview.relational.nodes import Schema, Values
from everview.relational.types import String, holds


class TableInput:
    """One table as all scans of it see it: a column of a change is encoded once, for the first scan that reads it."""

    def __init__(self, table: StoredTable, dictionary: Dictionary) -> None:
        self.table = table
        self.fields = table.definition.fields
        self.scans: dict[tuple[int, ...], ScanOperator] = {}
        self.tests: tuple[TextTest, ...] = ()
        """Tests of the table's text, which are columns behind its own; more may come, and none goes."""
        self._dictionary = dictionary
        self._rows: Rows | None = None
        self._weights: Ints = np.zeros(0, dtype=np.int64)
        self._encoded: dict[int, Vector] = {}
        self._products: tuple[ProductRows, ...] = ()
        self._encoded_products: list[list[dict[int, Vector]]] = []
        self._rank: RankChange | None = None
        """The change at hand, if it is a product of thin matrices."""
        self._read_for: tuple[tuple[int, ...], ...] = ()
        self._reader = ColumnReader(self.fields, (), dictionary)
        self._read_tests: dict[int, TextTest] = {}
        self._unseen_texts: tuple[int, ...] = ()
        """Columns of text that are read, and that nobody has looked at before: those of a table that keeps no rows."""
        self.arrangement = TableArrangement(lambda: self.all_fields, self._rows_to_arrange)
        """Shared by the scans whose columns are among its readers."""
        self._parts: WeakSet[Operator] = WeakSet()
        """Operators that keep most rows of the table apart."""
        self._number = 0
        """That of the change at hand."""

    @property
    def changes(self) -> int:
        """How many transactions have brought rows for it since the database was opened."""
        return self._number

    @property
    def all_fields(self) -> Schema:
        """The table's columns, and its tests behind them."""
        return (*self.fields, *(t.as_field(self.fields) for t in self.tests))

    def _tests_among(self, columns: Iterable[int]) -> dict[int, TextTest]:
        width = len(self.fields)
        return {c: self.tests[c - width] for c in columns if c >= width}

    def prepare(self, changes: Sequence[Change]) -> None:
        """Applies the changes of one transaction to the table, and offers them to the scans.

        Products are offered as they are; a table that keeps its rows expands them for itself, and so does a static one.
        What fails has changed nothing.
        """
        try:
            self._prepare(changes)
        except BaseException:
            if self.table.is_prepared:
                self.table.rollback()
            self.withdraw()
            raise

    def _prepare(self, changes: Sequence[Change]) -> None:
        if len(changes) == 1:
            only = changes[0]
            if type(only) is Change:
                delta = self.table.prepare(changes)
                self.offer(delta.rows, delta.weights)
                return
            if isinstance(only, RankChange):
                self._prepare_rank(only)
                return
        plain = [c for c in changes if not isinstance(c, FactorizedChange)]
        if len(plain) == len(changes) or any(c.kind is not ChangeKind.WEIGHTED for c in changes):
            delta = self.table.prepare(changes)
            self.offer(delta.rows, delta.weights)
            return
        products = tuple(p for c in changes if isinstance(c, FactorizedChange) for p in c.products)
        definition = self.table.definition
        if definition.retain or definition.static:
            self.table.prepare(changes)
            given = joined([rows_of(c) for c in plain]) if plain else WeightedRows(self._no_rows(), None)
            self.offer(given.rows, given.each_weight(), products)
        else:
            delta = self.table.prepare(plain)
            self.table.has_received_rows |= bool(products)
            self.offer(delta.rows, delta.weights, products)

    def _prepare_rank(self, change: RankChange) -> None:
        definition = self.table.definition
        if definition.retain or definition.static:
            delta = self.table.prepare([change])
            self.offer(delta.rows, delta.weights)
        else:
            self.table.prepare([])
            self.table.has_received_rows = True
            self.offer(self._no_rows(), np.zeros(0, dtype=np.int64))
            self._rows = None  # made when a scan asks for them
        self._rank = change

    def _no_rows(self) -> Rows:
        return arrow_schema(self.fields).empty_table()

    def offer(self, rows: Rows, weights: Ints, products: tuple[ProductRows, ...] = ()) -> None:
        """The table's change in the transaction at hand."""
        self._rows, self._weights, self._products, self._rank = rows, weights, products, None
        self._number += 1
        self._encoded, self._encoded_products = {}, []

    def net_change(self) -> Change:
        """What the transaction at hand comes to, as rows with weights."""
        assert self._rows is not None, "no rows are at hand"
        return Change(self.table.name, ChangeKind.WEIGHTED, self._rows, pa.array(self._weights))

    def withdraw(self) -> None:
        """The transaction is over."""
        self._rows, self._products, self._rank = None, (), None
        self._encoded, self._encoded_products = {}, []

    def delta(self, columns: Sequence[int]) -> Batch:
        """The change, in these columns."""
        if self._products:
            return self._factorized(columns)
        if self._rank is not None:
            return self._ranked(self._rank, columns)
        return self._plain(columns)

    def _plain(self, columns: Sequence[int]) -> Batch:
        if not self._encoded:
            self._encoded = self._read()
        encoded = self._encoded
        return Batch(tuple([encoded[c] for c in columns]), self._weights)

    def _ranked(self, change: RankChange, columns: Sequence[int]) -> Batch:
        """The factors for those who read i, j and v, in this order; rows for others."""
        if tuple(columns) != change.places:
            return self._expanded(change, columns)
        count = change.size if self._rows is None else len(self._weights)
        is_keyed = bool(self.table.definition.primary_key)
        return RankBatch(change, count, is_keyed=is_keyed, expand=lambda: self._expanded(change, columns))

    def _expanded(self, change: RankChange, columns: Sequence[int]) -> Batch:
        if self._rows is None:
            self._rows, self._weights = change.given, np.ones(change.size, dtype=np.int64)
        return self._plain(columns)

    def _factorized(self, columns: Sequence[int]) -> Batch:
        if not self._encoded_products:
            self._encoded_products = [self._read_factors(product) for product in self._products]
        place = {c: i for i, c in enumerate(columns)}
        products: list[FactorProduct] = []
        for product, vectors in zip(self._products, self._encoded_products, strict=True):
            factors = []
            for rows, encoded in zip(product, vectors, strict=True):
                own = [c for c in encoded if c in place]
                weights = rows.each_weight()
                if not own:  # nothing is left of the factor but how often it makes the others count
                    weights = weights.sum(keepdims=True)
                factors.append(
                    FactorBatch(tuple(place[c] for c in own), Batch(tuple(encoded[c] for c in own), weights))
                )
            products.append(tuple(factors))
        rest = self._plain(columns) if len(self._weights) else None
        return FactorizedBatch(products, rest)

    def _read_factors(self, product: ProductRows) -> list[dict[int, Vector]]:
        wanted = self._wanted()
        tests, found = self._tests_among(wanted), []
        for factor in product:
            chosen = [i for i, c in enumerate(factor.columns) if c in wanted]
            reader = ColumnReader([self.fields[c] for c in factor.columns], chosen, self._dictionary)
            encoded = {factor.columns[i]: v for i, v in reader.read(factor.rows).items()}
            for c, test in tests.items():
                if test.column in factor.columns:
                    encoded[c] = test.read(factor.rows.column(factor.columns.index(test.column)))
            found.append(encoded)
        return found

    def _read(self) -> dict[int, Vector]:
        """All columns that some scan reads, in one go."""
        assert self._rows is not None, "a delta was asked for outside a transaction"
        scans = (*self.scans, self.arrangement.columns)
        if scans != self._read_for:
            wanted = sorted(self._wanted())
            self._read_tests = self._tests_among(wanted)
            self._reader = ColumnReader(self.fields, [c for c in wanted if c < len(self.fields)], self._dictionary)
            self._read_for = scans
            if not self.table.definition.retain:
                read = {*(c for c in wanted if c < len(self.fields)), *(t.column for t in self._read_tests.values())}
                self._unseen_texts = tuple(c for c in sorted(read) if holds(self.fields[c].type, String))
        for c in self._unseen_texts:
            if not is_unicode(self._rows.column(c)):
                raise no_text(self.table.definition, self.fields[c])
        vectors = self._reader.read(self._rows)
        for c, test in self._read_tests.items():
            vectors[c] = test.read(self._rows.column(test.column))
        return vectors

    def _wanted(self) -> set[int]:
        """The columns that some scan reads, or the arrangement has."""
        return {c for scan in (*self.scans, self.arrangement.columns) for c in scan}

    def searched(self, scan: ScanOperator) -> Searched | None:
        """The arrangement that a scan shares with others, if its rows hardly repeat."""
        definition, shared = self.table.definition, self.arrangement
        has_key = bool(definition.primary_key) and set(definition.key_positions) <= set(scan.columns)
        if has_key or scan.columns in shared.readers:
            reader = shared.reader(scan.columns)
        else:
            if not definition.retain:
                return None
            own = scan.arranged()
            if not 0 < self.table.row_count <= 2 * len(own.rows):
                return None
            scan.arrangement = None
            reader = shared.reader(scan.columns, own)
        self._join_parts()
        return reader

    def arrange_part(self, operator: Operator, part: TablePart) -> None:
        """Keeps the rows of a part for those who search it, apart or in the table's arrangement."""
        definition, own = self.table.definition, operator.arrange()
        has_key = bool(definition.primary_key) and set(definition.key_positions) <= set(part.columns)
        count = self.table.row_count
        holds_most = count <= 2 * len(own.rows) if count else has_key and part.keeps_most
        if holds_most and definition.retain:
            self._parts.add(operator)
            if self.arrangement.readers or len(self._parts) > 1:
                self._join_parts()

    def _join_parts(self) -> None:
        """Lets all parts that keep most of the table's rows be found in its arrangement."""
        for operator in tuple(self._parts):
            own, part = operator.arrangement, operator.part
            assert part is not None
            if own is not None and not own.is_held:
                found = PartColumns(self.arrangement, part, self._dictionary)
                for columns in own.slice_keys:
                    found.index(columns)
                operator.in_table, operator.arrangement = found, None
        self._parts.clear()

    def _rows_to_arrange(self, columns: Sequence[int]) -> Batch:
        if self.table.has_rows_to_read:
            return self.content(columns)
        # No view is made after the first row of a table that keeps none.
        return empty_batch(tuple(self.all_fields[c].type for c in columns))

    def shares(self, columns: tuple[int, ...]) -> TableArrangement | None:
        """The arrangement, if a scan of these columns is among those that use it."""
        return self.arrangement if columns in self.arrangement.readers else None

    def forget(self, columns: tuple[int, ...]) -> None:
        """A scan of these columns has gone."""
        del self.scans[columns]
        if self.arrangement.readers.pop(columns, None) is not None and not self.arrangement.readers:
            self.arrangement.release(())

    def release(self, searched: Collection[int]) -> None:
        """Keeps the arrangement for scans of which this is searched, by identity, and for no others."""
        readers = self.arrangement.readers
        self.arrangement.release([c for c, r in readers.items() if c in self.scans and id(r) in searched])

    def take_into_arrangement(self) -> None:
        """Adds the change at hand to the arrangement, for the first scan that says so."""
        self.arrangement.take(self._number, self.delta)

    def content(self, columns: Sequence[int]) -> Batch:
        """The whole table, in these columns."""
        tests = self._tests_among(columns)
        plain = [c for c in columns if c not in tests]
        needed = sorted({*plain, *(t.column for t in tests.values())})
        rows, weights = self.table.content(needed)
        at = {c: i for i, c in enumerate(needed)}
        read = [at[c] for c in plain]
        vectors = ColumnReader([self.fields[c] for c in needed], read, self._dictionary).read(rows)
        tested = {c: t.read(rows.column(at[t.column])) for c, t in tests.items()}
        return Batch(tuple(tested[c] if c in tested else vectors[at[c]] for c in columns), weights)


class ScanOperator(Operator):
    """Some columns of a table."""

    survives_lack_of_memory = True

    def __init__(self, source: TableInput, columns: tuple[int, ...]) -> None:
        every = source.all_fields
        super().__init__(tuple(every[c] for c in columns), ())
        self.source = source
        self.columns = columns

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        delta = self.source.delta(self.columns)
        if not len(delta):
            return None
        if self.columns in self.source.arrangement.readers:
            self.source.take_into_arrangement()
        return delta

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        # A table that keeps no rows has none before its views exist, and no view is made after some have come; unless the
        # database is being opened, when it holds what has passed.
        return self.source.content(self.columns) if self.source.table.has_rows_to_read else self.nothing()

    def load(self, contents: Sequence[Batch]) -> Batch:
        return self.recompute(contents)

    def searched(self) -> Searched:
        if self.arrangement is None:
            shared = self.source.searched(self)
            if shared is not None:
                return shared
        return self.arranged()

    def content(self) -> Batch:
        shared = self.source.shares(self.columns)
        if self.arrangement is None and shared is not None:
            return shared.reader(self.columns).content()
        return super().content()

    @property
    def keeps_output(self) -> bool:
        return super().keeps_output or self.source.shares(self.columns) is not None

    def commit(self) -> None:
        if self.columns in self.source.arrangement.readers:
            self.source.arrangement.commit()

    def rollback(self) -> None:
        if self.columns in self.source.arrangement.readers:
            self.source.arrangement.rollback()

    def nbytes(self) -> dict[str, int]:
        """The arrangement that scans of the table share, on the account of the first of them."""
        shared = self.source.shares(self.columns)
        return shared.whole.nbytes() if shared is not None and next(iter(shared.readers)) == self.columns else {}

    def describe(self) -> str:
        return f"scan {self.source.table.name} [{', '.join(f.name for f in self.fields)}]"


class ConstantOperator(Operator):
    """A bag that never changes."""

    def __init__(self, node: Values, dictionary: Dictionary) -> None:
        super().__init__(node.fields, ())
        count = len(node.rows)
        columns = tuple(_column([row[i] for row in node.rows], f.type, dictionary) for i, f in enumerate(node.fields))
        self._rows = Batch(columns, np.ones(count, dtype=np.int64))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        return None

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self._rows

    def load(self, contents: Sequence[Batch]) -> Batch:
        return self._rows

    def describe(self) -> str:
        return f"values, {len(self._rows)} rows"


def _column(values: list[object], data_type: object, dictionary: Dictionary) -> Vector:
    parts = [constant_vector(Literal(v, data_type), 1, dictionary) for v in values]  # type: ignore[arg-type]
    masks = [np.zeros(1, dtype=np.bool_) if p.nulls is None else p.nulls for p in parts]
    nulls = np.concatenate(masks) if masks else None
    if not parts:
        return constant_vector(Literal(None, data_type), 0, dictionary)  # type: ignore[arg-type]
    joined = np.concatenate([p.values for p in parts])
    return Vector(parts[0].type, joined, nulls if nulls is not None and nulls.any() else None)
