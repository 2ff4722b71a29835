#!/usr/bin/env python3
"""The sort engine against the plain reference, on random data sets and requests.

    sort_differential.py [--harness PROGRAM] [--jobs N] [--keep] [SEED | FIRST-LAST]...

For every seed (where none is given those of DFC_SORT_SEEDS, else 1-100): makes a data set and a
request, sorts with 1 target
(dfcctl sort local) to 7 (build/sort-harness) in one process with a memory that sometimes is too
small for the tables, and
with the reference.  Names, order, bytes and every member's metadata must agree; and where the
reference fails, the engine must, with the same code and nothing left behind.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from make_dataset import make_dataset  # noqa: E402
from random_spec import random_extension, random_spec  # noqa: E402
import sortref  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.environ.get("DFC_BUILD") or os.path.join(ROOT, "build")
DFCCTL = os.path.join(BUILD, "dfcctl")
HARNESS_SECONDS = 120


def harness_arguments(seed):
    rng = random.Random(f"harness {seed}")
    return {"--targets": seed % 7 + 1, "--memory": rng.choice(("64KiB", "1MiB", "128MiB")),
            "--threads": rng.randrange(1, 4), "--salt": rng.randrange(1 << 30)}


def command(harness, seed, spec_path):
    """One target is what dfcctl has in itself; more are the harness's."""
    arguments = harness_arguments(seed)
    if arguments["--targets"] == 1:
        return [DFCCTL, "sort", "local", spec_path, "--verbose", "--max-mem",
                arguments["--memory"], "--threads", str(arguments["--threads"])]
    return [harness, *(str(part) for pair in arguments.items() for part in pair),
            "--spec", spec_path]


def error_code(text):
    """Of "code: message", or of dfcctl's last line: "(code CODE, …)"."""
    if text.startswith("dfcctl:"):
        return text.rpartition("(code ")[2].strip().rstrip(")").partition(",")[0]
    return text.partition(":")[0]


def run_engine(harness, seed, directory, spec):
    """The CompletedProcess."""
    spec_path = os.path.join(directory, "spec.json")
    with open(spec_path, "w", encoding="utf-8") as f:
        json.dump({**spec, "input_bck": {"name": "in"}, "output_bck": {"name": "out"}}, f)
    return subprocess.run([*command(harness, seed, spec_path),
                           "--in", os.path.join(directory, "in"),
                           "--out", os.path.join(directory, "out")],
                          capture_output=True, text=True, errors="replace",
                          check=False, timeout=HARNESS_SECONDS)


def possible_codes(error, spec, inputs):
    """Where several shards are missing or bad, any may be found first."""
    return {error.code} | sortref.reading_codes({**spec, "missing_shards": "ignore"}, inputs)


def judge(done, spec, inputs, outputs):
    """A sentence on what is wrong, or None."""
    try:
        wanted = list(sortref.sort_dataset(spec, inputs))
    except sortref.SortError as e:
        if done.returncode == 0:
            return f"the engine sorted what must fail: {e}"
        code = error_code(done.stderr)
        if done.returncode not in (1, 2) or code not in possible_codes(e, spec, inputs):
            return f"wanted {e}; the engine (status {done.returncode}) said: {done.stderr[-800:]}"
        return sortref.compare_output([], outputs)
    if done.returncode != 0:
        return f"the engine failed (status {done.returncode}): {done.stderr[-800:]}"
    return sortref.compare_output(wanted, outputs)


def try_seed(harness, seed, keep):
    """(seed, a sentence on what is wrong or None)"""
    directory = tempfile.mkdtemp(prefix=f"dfc-sort-{seed}-")
    try:
        inputs, outputs = os.path.join(directory, "in"), os.path.join(directory, "out")
        extension = random_extension(seed)
        shards = make_dataset(seed, inputs, extension)
        os.makedirs(outputs)
        spec = random_spec(seed, inputs, shards, extension)
        try:
            done = run_engine(harness, seed, directory, spec)
        except subprocess.TimeoutExpired:
            return seed, f"the engine has not ended after {HARNESS_SECONDS} s"
        wrong = judge(done, spec, inputs, outputs)
        if wrong and keep:
            wrong += f"\n    files in {directory}"
            directory = None
        return seed, wrong
    finally:
        if directory:
            shutil.rmtree(directory)


def seed_range(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default = seed_range(os.environ.get("DFC_SORT_SEEDS", "1-100"))
    parser.add_argument("seeds", nargs="*", type=seed_range, default=[default],
                        metavar="SEED | FIRST-LAST")
    parser.add_argument("--harness", default=os.path.join(BUILD, "sort-harness"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true", help="keep the files of a seed that fails")
    args = parser.parse_args()
    seeds = [seed for part in args.seeds for seed in part]
    failed = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for seed, wrong in pool.map(try_seed, [args.harness] * len(seeds), seeds,
                                    [args.keep] * len(seeds), chunksize=4):
            if wrong:
                failed.append(seed)
                print(f"seed {seed}: {wrong}\n    repeat: {sys.argv[0]} --keep {seed}", flush=True)
    print(f"{len(seeds)} seeds, {len(failed)} differ")
    return 1 if failed or not seeds else 0


if __name__ == "__main__":
    sys.exit(main())
