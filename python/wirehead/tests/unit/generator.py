import numpy as np
from wirehead import WireheadGenerator

COUNT = 100


def create_generator():
    img = np.random.rand(256)
    lab = np.random.rand(256)
    for _ in range(COUNT):
        yield (img, lab)


if __name__ == "__main__":
    runtime = WireheadGenerator(generator=create_generator(), config_path="config.yaml",
                                n_samples=COUNT)
    runtime.run(verbose=True)
