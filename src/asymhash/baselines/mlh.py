"""MLH: a linear map that minimises a hinge loss of Hamming distances, by its upper bound.

The letters, here and in the paper of Norouzi and Fleet: W the map, x and x' the two items of a pair, z = W x and
z' = W x', m the Hamming distance of sign z and sign z', rho the distance that separates similar from dissimilar, g and
g' the codes that the loss-adjusted inference finds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from asymhash.checks import check_choice, check_integer, check_number
from asymhash.codes import BinaryCodes
from asymhash.errors import invalid
from asymhash.estimator import BaseHasher, provenance_of
from asymhash.evaluate import average_precision, distance_histograms
from asymhash.model import Model
from asymhash.preparation import Preparation
from asymhash.similarity import Similarity
from asymhash.task import Task, random_generator

__all__ = ["MLH", "adjusted_codes", "hinge_tables"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_START_SIZE = 0.1  # standard deviation of the first map
_STEP, _MOMENTUM = 0.1, 0.9
# With momentum m and step s descent on a quadratic of curvature c diverges where s c > 2 (1 + m).
_MOST_DECAY = 38.0
_BATCH = 100  # pairs
_HELD_OUT = 0.1  # of the items, for validation
_DECAYS = (1e-2, 1e-3, 1e-4, 1e-5)
_SMALL_RHO = 3
_LSH_RECALL = 0.3  # at the radius around which the large recipe looks for rho


class MLH(BaseHasher):
    """Choose this to compare with a symmetric linear code that is supervised by similar and dissimilar pairs.

    Minimal loss hashing: similar items should lie within the Hamming distance rho and dissimilar ones beyond it. The
    hinge loss of a pair is bounded from above as in a structural SVM with latent codes, and the bound is descended by
    stochastic gradients.

    Needs a similarity between the items of the database, as `y`: any `Similarity`, labels, tags, or None for Euclidean
    neighbours. Cannot learn from training queries that are not the database.

    With the defaults it takes 130 ("small"), 150 ("large") or 230 ("best") epochs of 100,000 pairs, whatever the
    number of items. The time of an epoch grows with n_bits times n_features; for few features the sorting of n_bits
    numbers for each pair is what counts. Memory is the features as float64 and 8 bytes for each similar pair.

    Parameters
    ----------
    n_bits : int, default 16
        Length of the codes, 1 to 1024. What a bit learns depends on how many there are.
    recipe : {"small", "large", "best"}, default "best"
        The authors' settings. "small" draws all pairs alike, sets rho to 3 and chooses the weight decay on held-out
        items; "large" makes half of the pairs similar and chooses rho, around the distance within which random
        hyperplanes find 30% of the similar pairs. "best" is the better of both on held-out items.
    rho : int, optional
        Distance that separates similar from dissimilar; None: as the recipe has it.
    weight_decay : float, optional
        From 0 to 38, where decay alone would make the map grow; None: as the recipe has it.
    n_epochs : int, default 50
        Epochs of the last training.
    n_validation_epochs : int, default 20
        Epochs of every training that chooses a setting, on nine tenths of the items: of 4 settings ("small"), at most
        5 ("large") or 9 ("best"); fewer where `rho` or `weight_decay` is given, none where one setting is left.
    n_batches : int, default 1000
        Batches of 100 pairs in an epoch.
    pca : int, optional
        Learn on at most so many principal components.
    random_state : int, Generator, RandomState or None
        Seed.

    Attributes
    ----------
    model_ : Model
    database_codes_ : BinaryCodes
    history_ : tuple of float
        Mean upper bound of the loss over the pairs of each epoch of the last training.
    n_features_in_ : int

    References
    ----------
    Norouzi, Fleet: Minimal Loss Hashing for Compact Binary Codes. ICML 2011.

    Examples
    --------
    >>> import numpy as np, asymhash as ah
    >>> vectors = np.random.default_rng(0).standard_normal((60, 5))
    >>> hasher = ah.MLH(n_bits=8, n_epochs=1, n_validation_epochs=1, random_state=0).fit(vectors)
    >>> hasher.encode_queries(vectors)
    BinaryCodes(60 items, 8 bits)
    """

    def __init__(
        self,
        n_bits: int = 16,
        *,
        recipe: str = "best",
        rho: int | None = None,
        weight_decay: float | None = None,
        n_epochs: int = 50,
        n_validation_epochs: int = 20,
        n_batches: int = 1000,
        pca: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.recipe = recipe
        self.rho = rho
        self.weight_decay = weight_decay
        self.n_epochs = n_epochs
        self.n_validation_epochs = n_validation_epochs
        self.n_batches = n_batches
        self.pca = pca
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Choose the settings, learn the map and encode the database.

        Parameters
        ----------
        X : array of shape (n_items, n_features)
            The database.
        y : Similarity of shape (n_items, n_items), labels, tags or None
            As for `LinV.fit`.

        Returns
        -------
        self
        """
        n_bits, pca = self._check_n_bits(), self._check_pca()
        recipe = check_choice(self.recipe, where="MLH", name="recipe", choices=("small", "large", "best"))
        n_epochs = check_integer(self.n_epochs, where="MLH", name="n_epochs", low=1)
        n_trial_epochs, n_batches = (
            check_integer(getattr(self, name), where="MLH", name=name, low=1)
            for name in ("n_validation_epochs", "n_batches")
        )
        fixed: dict[str, Any] = {}
        if self.rho is not None:
            fixed["rho"] = check_integer(self.rho, where="MLH", name="rho", low=0, high=n_bits)
        if self.weight_decay is not None:
            fixed["weight_decay"] = check_number(
                self.weight_decay, where="MLH", name="weight_decay", low=0.0, high=_MOST_DECAY
            )
        rng = random_generator(self.random_state, where="MLH")
        task = Task.check(X, y, None, where="MLH.fit")
        kept = self._features_of(X)
        with threadpool_limits(1, user_api="blas"):
            preparation = Preparation.learn(task.database, pca=pca)
            features = preparation.features(task.database)
            problem = _Problem(features, task.similarity, n_bits, n_batches)
            recipes = ("small", "large") if recipe == "best" else (recipe,)
            setting = _chosen(_candidates(recipes, problem, fixed, rng), problem, n_trial_epochs, rng)
            rows, history = _train(problem, setting, n_epochs, rng)
            linear_map = preparation.fold(rows)
        provenance = {**provenance_of(self, task.similarity), "chosen": vars(setting)}
        model = Model(
            method="MLH",
            n_bits=n_bits,
            query_map=linear_map,
            database_map=linear_map,
            database_codes=linear_map.encode(task.database),
            provenance=provenance,
        )
        return self._keep([model], history, nests=False, features=kept)


@dataclass(frozen=True)
class _Setting:
    """What validation chooses: rho, the decay of the map, and the least share of similar pairs in a batch."""

    rho: int
    weight_decay: float
    share_similar: float


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is learned: a map of n_bits bits on features (n_items, d), in epochs of n_batches batches of pairs."""

    features: Floats
    similarity: Similarity
    n_bits: int
    n_batches: int

    @cached_property
    def pairs(self) -> _Pairs:
        """What draws the pairs; one for all settings, as it keeps 8 bytes for each similar pair."""
        return _Pairs(self.similarity, self.n_batches)


class HingeTables(NamedTuple):
    """The loss of a pair by its Hamming distance 0..n_bits."""

    similar: Floats
    dissimilar: Floats


def hinge_tables(n_bits: int, rho: int) -> HingeTables:
    """Loss of similar pairs, 0 up to distance rho, and of dissimilar ones, 0 beyond it; at most 1 each.

    Examples
    --------
    >>> hinge_tables(3, 1).similar.round(2).tolist(), hinge_tables(3, 1).dissimilar.tolist()
    ([0.0, 0.0, 0.33, 0.67], [1.0, 0.5, 0.0, 0.0])
    """
    distances = np.arange(n_bits + 1, dtype=np.float64)
    return HingeTables(
        np.maximum(distances - rho, 0.0) / (n_bits - rho + 1),
        np.maximum(rho + 1 - distances, 0.0) / (rho + 1),
    )


def adjusted_codes(z: Floats, other_z: Floats, losses: Floats) -> tuple[Floats, Floats, Floats]:
    """Find the codes g, g' (n_pairs, k) that maximise loss(distance) + <g, z> + <g', z'>, and that maximum.

    For every distance m the best codes differ in the m bits where differing gains most, |z - z'| - |z + z'|, so one
    sort for each pair and a running sum compare all distances: O(k log k).

    Parameters
    ----------
    z, other_z : arrays of shape (n_pairs, k)
    losses : array of shape (n_pairs, k + 1)
        Loss of each pair at every distance.

    Examples
    --------
    >>> adjusted_codes(np.array([[3.0, 0.1]]), np.array([[2.0, 0.1]]), np.array([[0.0, 1.0, 1.0]]))
    (array([[1., 1.]]), array([[ 1., -1.]]), array([6.]))
    """
    apart, together = z - other_z, z + other_z
    gain = np.abs(apart) - np.abs(together)
    ordered = -np.sort(-gain, axis=1)
    sums = losses.copy()
    sums[:, 1:] += np.cumsum(ordered, axis=1)
    best = np.argmax(sums, axis=1)
    rows = np.arange(len(z))
    least = np.where(best > 0, ordered[rows, best - 1], np.inf)
    differ = gain >= least[:, None]
    first = np.where(np.where(differ, apart, together) >= 0, 1.0, -1.0)
    second = np.where(differ, -first, first)
    return first, second, sums[rows, best] + np.abs(together).sum(axis=1)


def _candidates(
    recipes: tuple[str, ...], problem: _Problem, fixed: dict[str, Any], rng: np.random.Generator
) -> list[_Setting]:
    """List the settings among which validation chooses."""
    n_bits = problem.n_bits
    settings: list[_Setting] = []
    if "small" in recipes:
        rho = min(_SMALL_RHO, n_bits - 1)
        settings += [_Setting(rho, decay, 0.0) for decay in _DECAYS]
    if "large" in recipes:
        middle, step = (
            _lsh_rho(problem, rng),
            max(1, math.floor(n_bits / 32 + 0.5)),
        )  # halves up, as the authors
        rhos = {min(max(middle + shift * step, 0), n_bits - 1) for shift in (-2, -1, 0, 1, 2)}
        settings += [_Setting(rho, 1e-3, 0.5) for rho in sorted(rhos)]
    # A parameter that is given leaves several settings alike: in their order, once each.
    return list(dict.fromkeys(replace(setting, **fixed) for setting in settings))


def _lsh_rho(problem: _Problem, rng: np.random.Generator) -> int:
    """Count the radii within which random hyperplanes find less than 30% of the similar pairs."""
    projected = problem.features @ rng.standard_normal((problem.features.shape[1], problem.n_bits))
    codes = BinaryCodes.from_bools(projected >= 0)
    counts = distance_histograms(codes, codes, problem.similarity).positive.sum(axis=0)
    return int((np.cumsum(counts) < _LSH_RECALL * counts.sum()).sum())


def _chosen(settings: list[_Setting], problem: _Problem, n_epochs: int, rng: np.random.Generator) -> _Setting:
    """Choose by the average precision of held-out items among the others; every setting is given the same seed."""
    features, similarity = problem.features, problem.similarity
    n_items = len(features)
    order = rng.permutation(n_items)
    held = order[: round(_HELD_OUT * n_items)]
    rest = np.sort(order[len(held) :])
    inside, truth = similarity.rows(rest).columns(rest), similarity.rows(held).columns(rest)
    if len(settings) == 1 or truth.n_positives == 0 or inside.n_positives == 0:
        return settings[0]
    part = replace(problem, features=features[rest], similarity=inside)
    seed = int(rng.integers(2**63))
    scores = []
    for setting in settings:
        rows, _ = _train(part, setting, n_epochs, np.random.default_rng(seed))
        query_codes, codes = (BinaryCodes.from_bools(features[ids] @ rows.T >= 0) for ids in (held, rest))
        scores.append(average_precision(query_codes, codes, truth))
    return settings[int(np.argmax(scores))]


@np.errstate(over="ignore", invalid="ignore")  # one error tells of it, not a warning for each batch
def _train(
    problem: _Problem, setting: _Setting, n_epochs: int, rng: np.random.Generator
) -> tuple[Floats, list[float]]:
    """Learn the map W (n_bits, d); returns it and the mean bound of every epoch."""
    features, n_batches = problem.features, problem.n_batches
    rows = _START_SIZE * rng.standard_normal((problem.n_bits, features.shape[1]))
    velocity = np.zeros_like(rows)
    tables = np.stack(hinge_tables(problem.n_bits, setting.rho))
    history = []
    for epoch in range(n_epochs):
        total = 0.0
        first, second, kinds = problem.pairs.draw(setting.share_similar, rng)
        for batch in range(n_batches):
            step = _STEP * (1.0 - (epoch + batch / n_batches) / n_epochs)
            x, other_x = features[first[batch]], features[second[batch]]
            z, other_z = x @ rows.T, other_x @ rows.T
            g, other_g, bound = adjusted_codes(z, other_z, tables[kinds[batch]])
            total += float(bound.sum() - np.abs(z).sum() - np.abs(other_z).sum())
            push = (np.where(z >= 0, 1.0, -1.0) - g).T @ x
            push += (np.where(other_z >= 0, 1.0, -1.0) - other_g).T @ other_x
            velocity = _MOMENTUM * velocity + step * (push / _BATCH - setting.weight_decay * rows)
            rows = rows + velocity
        if not np.isfinite(rows).all():
            expected = "the map must stay finite"
            found = f"NaN or inf in epoch {epoch + 1} with weight_decay={setting.weight_decay:g}"
            raise invalid("MLH.fit", expected, found, "Give a smaller weight_decay.")
        history.append(total / (n_batches * _BATCH))
    return rows, history


class _Pairs:
    """Draws pairs of items, among them similar ones."""

    def __init__(self, similarity: Similarity, n_batches: int) -> None:
        self._n_items, self._n_batches = similarity.n_items, n_batches
        # Row times n_items plus column, ascending as positives are: both items of a pair in 8 bytes.
        self._keys = np.repeat(np.arange(similarity.n_queries) * self._n_items, np.diff(similarity.indptr))
        self._keys += similarity.indices

    def draw(self, share_similar: float, rng: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """Give both items and the kind (0 similar, 1 dissimilar) of every pair of an epoch, (batches, pairs) each.

        In every batch the first pairs, that share of all, are similar ones; the others are any.
        """
        first, second = rng.integers(0, self._n_items, (2, self._n_batches, _BATCH))
        n_similar = math.ceil(share_similar * _BATCH)
        if n_similar:
            chosen = self._keys[rng.integers(0, len(self._keys), (self._n_batches, n_similar))]
            first[:, :n_similar], second[:, :n_similar] = np.divmod(chosen, self._n_items)
        keys = first * self._n_items + second
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return first, second, (self._keys[places] != keys).astype(np.int64)
