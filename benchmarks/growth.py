"""Draws how a step of the small model grows with batch, layers and length.

From the project's root, with matplotlib and after
`bazel build //benchmarks:train_step`:

    python benchmarks/growth.py docs/growth.svg

Each point is the median step, or the peak memory, of one process on one thread.
The lines are straight growth between the first point and the last one.
"""

import json
import subprocess
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "wengert"  # the same file each time
import matplotlib.pyplot as plt  # noqa: E402


def measure(**sizes):
    flags = [f"--{name}={value}" for name, value in sizes.items()]
    line = subprocess.run(
        ["bazel-bin/benchmarks/train_step", "--model=small", *flags],
        capture_output=True, check=True, text=True).stdout
    return json.loads(line)


def sweep(axes, name, unit, values, key, **fixed):
    """Plots `key` over `values` of the size `name`; prints the points."""
    points = [measure(**{name: v}, **fixed)[key] for v in values]
    print(name, key, list(zip(values, points)))
    slope = (points[-1] - points[0]) / (values[-1] - values[0])
    line = [points[0] + slope * (v - values[0]) for v in values]
    axes.plot(values, line, color="0.7", linewidth=1)
    axes.plot(values, points, "o", color="tab:blue")
    axes.set(xlabel=name, ylabel=unit, ylim=(0, None), xlim=(0, None))


def main():
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8))
    sweep(axes[0], "batch", "ms a step", [2, 4, 8, 16, 32], "median_ms")
    sweep(axes[1], "layers", "ms a step", [1, 2, 4, 8, 12], "median_ms")
    sweep(axes[2], "length", "peak MB", [256, 512, 1024, 2048, 4096],
          "peak_rss_mb", batch=1)
    figure.tight_layout()
    figure.savefig(sys.argv[1], metadata={"Date": None})


main()
