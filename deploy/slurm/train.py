"""Reads batches of the newest generation, and prints how long STEPS of them took."""

import os
import random
import time

from wirehead import MongoTupleheadDataset

STEPS = int(os.environ.get("STEPS", 100))
BATCH = int(os.environ.get("BATCH", 4))

dataset = MongoTupleheadDataset(config_path="config.yaml")
began, read = time.monotonic(), 0
for _ in range(STEPS):
    batch = dataset[random.sample(range(len(dataset)), min(BATCH, len(dataset)))]
    read += len(batch)  # the place of your own step: a list of (data, label)
print(f"training: {STEPS} steps, {read} samples, {time.monotonic() - began:.1f} s", flush=True)
