"""What `import asymhash` costs and brings along, measured in interpreters of their own."""

import json
import subprocess
import sys

OPTIONAL = [
    "faiss",
    "psycopg",
    "pgvector",
    "pymilvus",
    "distributed",
    "pyarrow",
    "h5py",
    "click",
    "rich",
    "matplotlib",
]
MAX_SECONDS = 0.3

COST = """
import time
import numpy, scipy.sparse, sklearn.base, sklearn.linear_model, sklearn.decomposition
start = time.process_time()
import asymhash
{use}
print(time.process_time() - start)
"""

BROUGHT = """
import json, sys
import asymhash
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_import_brings_none_of_the_extras():
    brought = json.loads(run(BROUGHT))
    assert "asymhash" in brought
    assert not set(OPTIONAL) & set(brought)


def test_import_is_cheap_beside_numpy_scipy_and_sklearn():
    # The best of three: other programs can only make it slower.
    assert min(float(run(COST.format(use=""))) for _ in range(3)) < MAX_SECONDS


def test_all_names_together_are_cheap_beside_numpy_scipy_and_sklearn():
    use = "[getattr(asymhash, name) for name in asymhash.__all__]"
    assert min(float(run(COST.format(use=use))) for _ in range(3)) < MAX_SECONDS
