"""What the benchmarks of sorts share: the modules of the folder above, and charts."""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from benchlib import RESULTS, log  # noqa: E402

CHART_HEAD = """
set terminal svg size 860,480 background rgb 'white' font 'sans,13' name 'chart'
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set key top left reverse Left
"""


def chart(args, script, tables):
    """Draws results/NAME.svg beside the document of --save NAME.  `tables` is {name: rows of
    numbers}, of which the gnuplot script speaks as $name."""
    if not args.save:
        return
    if shutil.which("gnuplot") is None:
        log("no chart: there is no gnuplot (Debian: apt-get install --no-install-recommends "
            "gnuplot-nox)"
            )
        return
    RESULTS.mkdir(exist_ok=True)
    parts = [CHART_HEAD, f"set output '{RESULTS / args.save}.svg'\n"]
    for name, rows in tables.items():
        lines = "\n".join(" ".join(str(cell) for cell in row) for row in rows)
        parts.append(f"${name} << EOD\n{lines}\nEOD\n")
    subprocess.run(["gnuplot"], input="".join(parts) + script, text=True, check=True)


def spec(program, shards, output="out", **more):
    """The request for a sort by name of the shards of bucket `in`; `more` are fields that
    differ."""
    return {
        "description": f"tests/bench/sort/{program}.py",
        "input_bck": {"name": "in"},
        "output_bck": {"name": output},
        "input_format": {"template": f"shard-{{0000..{shards - 1:04d}}}"},
        "input_extension": ".tar",
        "output_format": "out-%06d",
        "output_extension": ".tar",
        "algorithm": {"kind": "alphanumeric"},
        **more,
    }
