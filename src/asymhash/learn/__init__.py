"""The paper's methods: what a bit may be (`sides`, `families`), the descent over bits, one estimator a file."""
