"""A training that is simulated, in a process of its own:

    trainer.py DIRECTORY SEED INDEX TRAINERS LOADERS BATCH STEP_MS

All trainers shuffle the files of the directory by the seed and share them out.  Threads (loaders) read
files ahead; the trainer takes a batch of them, and sleeps for the time of a step.  Prints
{"bytes": …, "seconds": …, "waited": …}: the seconds in which it waited for a batch."""

import collections
import concurrent.futures
import json
import random
import sys
import time

from mount_worker import files_below

AHEAD = 4  # batches that are read before they are needed


def load(name):
    with open(name, "rb", buffering=0) as f:
        return len(f.read())


class Loader:
    """Files in order, some of them read ahead."""

    def __init__(self, pool, names, ahead):
        self.pool, self.names, self.running = pool, iter(names), collections.deque()
        for _ in range(ahead):
            self.begin_one()

    def begin_one(self):
        name = next(self.names, None)
        if name is not None:
            self.running.append(self.pool.submit(load, name))

    def batch(self, size):
        """→ bytes; 0 after the last file."""
        total = 0
        for _ in range(min(size, len(self.running))):
            total += self.running.popleft().result()
            self.begin_one()
        return total


def train(names, loaders, batch, step_s):
    with concurrent.futures.ThreadPoolExecutor(loaders) as pool:
        begun, waited, total = time.monotonic(), 0.0, 0
        loader = Loader(pool, names, AHEAD * batch)
        while True:
            asked = time.monotonic()
            got = loader.batch(batch)
            if got == 0:
                return {"bytes": total, "seconds": asked - begun, "waited": waited}
            waited += time.monotonic() - asked
            total += got
            time.sleep(step_s)


def main():
    directory = sys.argv[1]
    seed, index, trainers, loaders, batch, step_ms = map(int, sys.argv[2:])
    names = files_below(directory)
    random.Random(seed).shuffle(names)
    print(json.dumps(train(names[index::trainers], loaders, batch, step_ms / 1000)))


if __name__ == "__main__":
    main()
