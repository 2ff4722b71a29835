"""Makes samples until its time is over, or until there are SAMPLES."""

import os

import numpy as np
from wirehead import WireheadGenerator

SAMPLES = int(os.environ.get("SAMPLES", 1_000_000_000))
VALUES = int(os.environ.get("VALUES", 256))


def samples():
    """The place of your own simulation: it yields one array for each kind of SAMPLE."""
    while True:
        yield np.random.rand(VALUES), np.random.rand(VALUES)


runtime = WireheadGenerator(generator=samples(), config_path="config.yaml", n_samples=SAMPLES)
runtime.run_generator()
print(f"generator: {SAMPLES} samples", flush=True)
