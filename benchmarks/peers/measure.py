"""Times a step and prints the line of JSON that ../train_step.cc prints."""

import argparse
import json
import resource
import time

import start


def flags(about):
    """The flags that every peer has."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--model", choices=start.MODELS, default="toy")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="0: about two seconds")
    parser.add_argument("--forward", action="store_true", help="no training")
    parser.add_argument("--first_step", action="store_true", help="only one step")
    return parser


def peak_rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(system, setting, args, step):
    """Runs `step`, which returns a loss once it is done, and prints."""
    first_loss = last_loss = step().item()
    if args.first_step:
        first = {"system": system, "peak_rss_mb": peak_rss_mb(), "loss_0": first_loss}
        print(json.dumps(first))
        return
    begin = time.perf_counter()
    for _ in range(20):
        last_loss = step().item()
    guess = (time.perf_counter() - begin) / 20
    times = []
    for _ in range(args.steps or min(max(int(2 / guess), 10), 20000)):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times.sort()
    n = len(times)
    model = start.MODELS[args.model]
    median = times[n // 2]
    flops = model.flops / (3 if args.forward else 1)
    print(
        json.dumps(
            {
                "system": system,
                "model": args.model,
                "threads": args.threads,
                "setting": setting,
                "forward": args.forward,
                "median_ms": median * 1e3,
                "q1_ms": times[n // 4] * 1e3,
                "q3_ms": times[n * 3 // 4] * 1e3,
                "best_ms": times[0] * 1e3,
                "tokens_per_s": model.tokens / median,
                "gflops": flops / median * 1e-9,
                "fma_peak_gflops": None,
                "ratio_to_peak": None,
                "peak_rss_mb": peak_rss_mb(),
                "allocations_per_step": None,
                "loss_0": first_loss,
                "loss_20": last_loss,
            }
        )
    )
