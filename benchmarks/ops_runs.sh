#!/bin/bash
# Runs each benchmark of an operation once: $1 is the program.
set -euo pipefail
"$1" --benchmark_min_time=0.00001 >/dev/null
