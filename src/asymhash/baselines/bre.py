"""BRE: bits from kernel expansions over random points, so that Hamming distances come near Euclidean ones.

The letters, here and in the paper of Kulis and Darrell: K_p the kernels of all items to the points of bit p (n x s),
w_p its weights, z_p = K_p w_p, bit p of item i is [z_ip >= 0], d_ij the target of a pair, D_ij the Hamming distance of
its codes.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from asymhash.checks import check_integer, check_vectors
from asymhash.estimator import BaseHasher, provenance_of
from asymhash.model import Model
from asymhash.preparation import Preparation
from asymhash.task import random_generator

__all__ = ["BRE", "line_search"]

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

_START_SIZE = 0.001  # standard deviation of the first weights
_PARTNER_SHARE = 0.05  # of the other items, for every item
_MAX_PARTNERS = 50  # 5% of the paper's 1000 items: beyond, memory would grow with the square of the items
_BLOCK_VALUES = 1 << 20  # differences of pairs held at once: 8 MiB
# Change of the mean objective in so many sweeps that ends them. One sweep says little, as it visits one weight of fifty
# of every bit: ending after one that changes nothing costs .005 of anchored AP on Nursery.
_TOLERANCE, _PATIENCE = 1e-6, 5


class BRE(BaseHasher):
    """Choose this to compare with a symmetric linear code that learns distances themselves.

    Binary reconstructive embedding: Hamming distances, divided by their maximum, are fitted to squared Euclidean ones
    by descent in one weight at a time, each minimised exactly. With the linear kernel, as here, a bit is a hyperplane
    through the mean.

    Needs distances: vectors alone; `y` is ignored. Cannot learn labels, and sees vectors by direction only: they are
    centred and divided by their length. Every item is compared with up to 50 random others: time grows with n_bits
    times n_items for each of some hundreds of sweeps. Memory is n_items times n_bits numbers twice and about 100 bytes
    for each of the n_items x 50 pairs.

    Parameters
    ----------
    n_bits : int, default 16
        Length of the codes, 1 to 1024. What a bit learns depends on how many there are.
    n_points : int, default 50
        Random items that the hyperplane of a bit is a combination of.
    n_sweeps : int, default 3000
        Sweeps, in each of which one weight of every bit is minimised, at most.
    random_state : int, Generator, RandomState or None
        Seed.

    Attributes
    ----------
    model_ : Model
    database_codes_ : BinaryCodes
    history_ : tuple of float
        Mean squared error of the distances after each sweep.
    n_features_in_ : int

    References
    ----------
    Kulis, Darrell: Learning to Hash with Binary Reconstructive Embeddings. NIPS 2009.

    Examples
    --------
    >>> import numpy as np, asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((60, 5))
    >>> ah.BRE(n_bits=8, random_state=0).fit(vectors).encode_queries(vectors)
    BinaryCodes(60 items, 8 bits)
    """

    def __init__(
        self, n_bits: int = 16, *, n_points: int = 50, n_sweeps: int = 3000, random_state: Any = None
    ) -> None:
        self.n_bits = n_bits
        self.n_points = n_points
        self.n_sweeps = n_sweeps
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn the hyperplanes and encode the database.

        Parameters
        ----------
        X : array of shape (n_items, n_features)
            The database.
        y : ignored
            BRE knows no similarity but distances.

        Returns
        -------
        self
        """
        n_bits = self._check_n_bits()
        n_points = check_integer(self.n_points, where="BRE", name="n_points", low=1)
        n_sweeps = check_integer(self.n_sweeps, where="BRE", name="n_sweeps", low=0)
        rng = random_generator(self.random_state, where="BRE")
        vectors = check_vectors(X, where="BRE.fit", name="X", min_items=2)
        features = self._features_of(X)
        with threadpool_limits(1, user_api="blas"):
            # The authors' code takes lengths first, then components. This order is a better baseline: anchored AP at
            # 8 / 16 / 32 / 64 bits on MNIST .435/.548/.674/.774, theirs .404/.536/.675/.779 (means of 10 seeds,
            # then of 3; their release .423/.535/.671/.774). Elsewhere, with d <= 10, both are the same to .004.
            preparation = Preparation.learn(vectors, pca=n_bits)
            directions = _unit_rows(preparation.features(vectors))
            descent = _Descent(directions, n_bits, min(n_points, len(vectors)), rng)
            history = descent.run(n_sweeps)
            linear_map = preparation.fold(descent.rows())
        model = Model(
            method="BRE",
            n_bits=n_bits,
            query_map=linear_map,
            database_map=linear_map,
            database_codes=linear_map.encode(vectors),
            provenance=provenance_of(self),
        )
        return self._keep([model], history, nests=False, features=features)


class _Descent:
    """Descent in single weights; bits and Hamming distances of the pairs are kept up to date."""

    def __init__(self, vectors: Floats, n_bits: int, n_points: int, rng: np.random.Generator) -> None:
        n_items = len(vectors)
        self._rng = rng
        self._n_bits = n_bits
        n_partners = int(min(_MAX_PARTNERS, max(1, round(_PARTNER_SHARE * n_items)), n_items - 1))
        steps = np.concatenate(
            [rng.choice(n_items - 1, n_partners, replace=False) + 1 for _ in range(n_items)]
        )
        self._first = np.repeat(np.arange(n_items, dtype=np.int32), n_partners)
        self._second = ((self._first + steps) % n_items).astype(np.int32)
        squares = _squared_distances(vectors, self._first, self._second)
        # Half of it or all makes no difference: it is divided by its maximum.
        largest = float(squares.max())
        self._target = squares / largest if largest > 0 else squares
        self._points = np.stack([rng.choice(n_items, n_points, replace=False) for _ in range(n_bits)])
        self._vectors = vectors
        self._weights = _START_SIZE * rng.standard_normal((n_bits, n_points))
        self._projections = np.stack([vectors @ row for row in self.rows()])
        self._bits = self._projections >= 0
        self._distances = np.zeros(len(self._first), dtype=np.int16)  # at most 1024
        for bit in self._bits:
            self._distances += bit[self._first] != bit[self._second]

    def rows(self) -> Floats:
        """Hyperplane of each bit."""
        pairs = zip(self._weights, self._points, strict=True)
        return np.stack([weights @ self._vectors[points] for weights, points in pairs])

    def objective(self) -> float:
        """Mean squared error of the pairs."""
        return float(np.square(self._distances / self._n_bits - self._target).mean())

    def run(self, n_sweeps: int) -> list[float]:
        """Sweep until nothing changes; returns the objective after each sweep."""
        history = [self.objective()]
        for _ in range(n_sweeps):
            for position in range(self._n_bits):
                self._improve(position, int(self._rng.integers(self._weights.shape[1])))
            history.append(self.objective())
            if len(history) > _PATIENCE and history[-1 - _PATIENCE] - history[-1] <= _TOLERANCE:
                break
        return history

    def _improve(self, position: int, coordinate: int) -> None:
        """Minimise over one weight of one bit."""
        bit = self._bits[position]
        others = self._distances - (bit[self._first] != bit[self._second])
        # What a pair costs more where its items differ in this bit than where they agree.
        cost = 2.0 * (others / self._n_bits - self._target) / self._n_bits + 1.0 / self._n_bits**2
        kernel = self._vectors @ self._vectors[self._points[position, coordinate]]
        move = line_search(self._projections[position], kernel, self._first, self._second, cost)
        if move == 0.0:
            return
        self._weights[position, coordinate] += move
        self._projections[position] += move * kernel
        self._bits[position] = self._projections[position] >= 0
        bit = self._bits[position]
        self._distances = others + (bit[self._first] != bit[self._second])


def line_search(projection: Floats, kernel: Floats, first: Integers, second: Integers, cost: Floats) -> float:
    """Change of one weight after which sum of cost over the pairs that differ is lowest; 0 where none is lower.

    Item i has the bit [projection_i + move kernel_i >= 0]; it flips where the move passes -projection_i / kernel_i.
    Between two such thresholds nothing changes, and a pair differs, or agrees, from the threshold of one item to that
    of the other, so all intervals are compared by one running sum.

    Examples
    --------
    >>> pair = np.array([0]), np.array([1])
    >>> line_search(np.array([1.0, 3.0]), np.array([-1.0, -1.0]), *pair, np.array([-1.0]))
    2.0
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        thresholds = -projection / kernel
    moves = np.flatnonzero(np.isfinite(thresholds))
    order = moves[np.argsort(thresholds[moves], kind="stable")]
    if order.size == 0:
        return 0.0
    ordered = thresholds[order]
    rank = np.full(len(projection), order.size, dtype=np.int64)  # an item that never flips does so last
    rank[order] = np.arange(order.size)
    # Far below all thresholds an item's bit is that of -kernel; without a threshold it stands.
    before = np.where(np.isfinite(thresholds), kernel < 0, projection >= 0)
    differed = before[first] != before[second]
    signed = np.where(differed, -cost, cost)
    ranks = rank[first], rank[second]
    begin, end = np.minimum(*ranks), np.maximum(*ranks)
    change = np.bincount(begin, signed, order.size + 1) - np.bincount(end, signed, order.size + 1)
    totals = np.concatenate([[0.0], np.cumsum(change[:-1])])  # totals[t]: after the first t items flipped
    is_open = np.concatenate([[True], np.diff(ordered) > 0, [True]])  # equal thresholds are passed together
    # Without a move, which may lie on a threshold itself; counted like the totals from far below all thresholds.
    bit = projection >= 0
    now = float(cost[bit[first] != bit[second]].sum() - cost[differed].sum())
    best = int(np.flatnonzero(is_open)[np.argmin(totals[is_open])])
    if totals[best] >= now - 1e-12 * max(1.0, float(np.abs(totals).max())):
        return 0.0
    if best == 0:
        return float(ordered[0] - max(1.0, abs(ordered[0])))
    if best == order.size:
        return float(ordered[-1] + max(1.0, abs(ordered[-1])))
    return float(0.5 * (ordered[best - 1] + ordered[best]))


def _unit_rows(vectors: Floats) -> Floats:
    """Divide every row by its length, in place."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.where(lengths > 0, lengths, 1.0)
    return vectors


def _squared_distances(vectors: Floats, first: Integers, second: Integers) -> Floats:
    """Squared distance of every pair."""
    result = np.empty(len(first))
    step = max(1, _BLOCK_VALUES // vectors.shape[1])
    for start in range(0, len(first), step):
        block = slice(start, start + step)
        difference = vectors[first[block]] - vectors[second[block]]
        result[block] = np.square(difference, out=difference).sum(axis=1)
    return result
