"""The bytes of a model do not depend on the threads that BLAS may use."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import asymhash as ah

from .tables import ROWS, name_of

# So many that BLAS cuts their sums in two; few similar pairs and bits, as they only cost time.
# Not `tables.vectors`: sums of such short numbers are exact in any order.
WIDE = np.random.default_rng(0).standard_normal((3000, 300))
Y = ah.similarity.labels(np.arange(3000) % 100)


@pytest.fixture(scope="module")
def blas_threads_matter():
    components = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            components.append(np.linalg.eigh(WIDE.T @ WIDE)[1])
    if np.array_equal(*components):
        pytest.skip("this BLAS gives the same components on one thread and on two: nothing to see")


CASES = [(row, pca) for row in ROWS for pca in (None, 20) if pca is None or "pca" in row.make().get_params()]


@pytest.mark.parametrize(("row", "pca"), CASES, ids=lambda value: name_of(value) or f"pca={value}")
@pytest.mark.usefixtures("blas_threads_matter")
def test_blas_threads_change_no_byte(row, pca, tmp_path):
    hasher = row.make(**({} if pca is None else {"pca": pca}))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            hasher.fit(WIDE, Y).model_.save(tmp_path / "model")
        found.append((tmp_path / "model").read_bytes())
    assert found[0] == found[1]


def test_the_table_has_methods_with_pca_and_without():
    assert len(ROWS) < len(CASES) < 2 * len(ROWS)
