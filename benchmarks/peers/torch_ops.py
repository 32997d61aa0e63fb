"""Sets single operations beside PyTorch's, one thread each, in turn; prints
microseconds of both and how many times as long PyTorch takes, best of --rounds.

python benchmarks/peers/torch_ops.py --ops=bazel-bin/benchmarks/ops --filter=BM_Sum
"""

import argparse
import json
import subprocess
import time

import torch
import torch.nn.functional as F


def uniform(*shape, lo=-1.0, hi=1.0):
    return torch.empty(shape).uniform_(lo, hi).requires_grad_()


def unary(f, lo=-2.0, hi=2.0):
    return lambda n: ([uniform(n, lo=lo, hi=hi)], f)


def binary(f):
    return lambda n: ([uniform(n, lo=1, hi=2), uniform(n, lo=1, hi=2)], f)


def no_gradient(f):
    """Of two arrays, of which f may use one."""
    return lambda n: ([uniform(n).detach(), uniform(n).detach()], f)


def move(f):
    return lambda rows, columns: ([uniform(rows, columns)], f)


def reduction(f):
    """f(x, axes) along the axis that stands last in the name."""

    def make(*shape, along):
        axes = {"All": tuple(range(len(shape))), "First": 0, "Middle": 1, "Last": -1}[along]
        return [uniform(*shape, lo=0.5, hi=1.5)], lambda x: f(x, axes)

    return make


def along_one(f):
    return lambda *shape, along: (
        [uniform(*shape, lo=0.5, hi=1.5)],
        lambda x: f(x, {"First": 0, "Middle": 1, "Last": -1}[along]),
    )


def one_axis(f, whole):
    """For what PyTorch reduces along one axis or everything only."""
    return reduction(lambda x, a: whole(x) if isinstance(a, tuple) else f(x, a))


def bools(f):
    def make(*shape, along):
        make_of = reduction(f)(*shape, along=along)
        return [torch.zeros(shape, dtype=torch.bool)], make_of[1]

    return make


def pair_loss(f):
    return lambda n: ([uniform(n), uniform(n, lo=0, hi=1).detach()], f)


def rows(f):
    return lambda n, c: ([uniform(n, c), uniform(c), uniform(c)], f)


def ids(*shape, n):
    return torch.randint(0, n, shape)


def indexed(f, rows_of):
    """f(x, ids) with ids of the shape rows_of(rows, columns) below its second."""

    def make(n, c):
        shape, limit = rows_of(n, c)
        i = ids(*shape, n=limit)
        return [uniform(n, c)], lambda x: f(x, i)

    return make


def cross_entropy(n, c):
    y = ids(n, n=c)
    return [uniform(n, c)], lambda x: F.cross_entropy(x, y)


def weighted_cross_entropy(n, c):
    y, w = ids(n, n=c), torch.rand(c) + 0.5
    return [uniform(n, c)], lambda x: F.cross_entropy(x, y, w)


def group_norm(batch, channels, places, groups):
    inputs = [uniform(batch, channels, places), uniform(channels), uniform(channels)]
    return inputs, lambda x, g, b: F.group_norm(x, groups, g, b)


def fill(f):
    return lambda n, c, along: ([], lambda: f(n, c))


OPS = {
    # Functions of one argument
    "Exp": unary(torch.exp),
    "Log": unary(torch.log, 0.5),
    "Tanh": unary(torch.tanh),
    "Sigmoid": unary(torch.sigmoid),
    "Erf": unary(torch.erf),
    "Erfc": unary(torch.erfc),
    "Square": unary(torch.square),
    "Sqrt": unary(torch.sqrt, 0.5),
    "Rsqrt": unary(torch.rsqrt, 0.5),
    "Expm1": unary(torch.expm1),
    "Log1p": unary(torch.log1p, -0.5),
    "Sin": unary(torch.sin, -9, 9),
    "Cos": unary(torch.cos, -9, 9),
    "Relu": unary(torch.relu),
    "Gelu": unary(F.gelu),
    "GeluTanh": unary(lambda x: F.gelu(x, approximate="tanh")),
    "Silu": unary(F.silu),
    "Pow": unary(lambda x: x**3, 0.5),
    "Abs": unary(torch.abs),
    "Clamp": unary(lambda x: x.clamp(-1, 1)),
    "Softplus": unary(F.softplus),
    "LogSigmoid": unary(F.logsigmoid),
    "LeakyRelu": unary(F.leaky_relu),
    "Elu": unary(F.elu),
    # Of two
    "Add": binary(torch.add),
    "Sub": binary(torch.sub),
    "Mul": binary(torch.mul),
    "Div": binary(torch.div),
    "Maximum": binary(torch.maximum),
    "Minimum": binary(torch.minimum),
    "PowTensor": binary(torch.pow),
    "Atan2": binary(torch.atan2),
    "Lerp": binary(lambda x, y: torch.lerp(x, y, 0.3)),
    "Less": no_gradient(torch.lt),
    "Equal": no_gradient(torch.eq),
    "Sign": no_gradient(lambda x, y: torch.sign(x)),
    "Floor": no_gradient(lambda x, y: torch.floor(x)),
    "IsNan": no_gradient(lambda x, y: torch.isnan(x)),
    "IsFinite": no_gradient(lambda x, y: torch.isfinite(x)),
    # Reductions and scans
    "Sum": reduction(torch.sum),
    "Mean": reduction(torch.mean),
    "Max": reduction(torch.amax),
    "Min": reduction(torch.amin),
    "Prod": one_axis(torch.prod, torch.prod),
    "Var": reduction(torch.var),
    "Std": reduction(torch.std),
    "Norm": reduction(lambda x, a: torch.linalg.vector_norm(x, 2, a)),
    "Norm1": reduction(lambda x, a: torch.linalg.vector_norm(x, 1, a)),
    "Norm3.5": reduction(lambda x, a: torch.linalg.vector_norm(x, 3.5, a)),
    "LogSumExp": reduction(torch.logsumexp),
    "ArgMax": one_axis(torch.argmax, torch.argmax),
    "ArgMin": one_axis(torch.argmin, torch.argmin),
    "Any": bools(torch.any),
    "CumSum": along_one(torch.cumsum),
    "CumProd": along_one(torch.cumprod),
    "Sort": along_one(lambda x, a: torch.sort(x, a).values),
    "TopK40": along_one(lambda x, a: torch.topk(x, 40, a).values),
    # Random fills
    "RandomUniform": fill(torch.rand),
    "RandomNormal": fill(torch.randn),
    "RandomBernoulli": fill(lambda n, c: torch.empty(n, c).bernoulli_(0.3)),
    "Dropout": lambda n: ([uniform(n)], lambda x: F.dropout(x, 0.1)),
    # Moves; contiguous results, as Wengert's are
    "Pad": move(lambda x: F.pad(x, (2, 2, 1, 1))),
    "FlipAxis0": move(lambda x: x.flip(0)),
    "FlipAxis1": move(lambda x: x.flip(1)),
    "RollAxis0": move(lambda x: x.roll(5, 0)),
    "RollAxis1": move(lambda x: x.roll(5, 1)),
    "Tril": move(torch.tril),
    "Triu": move(lambda x: torch.triu(x, 1)),
    "StackAxis0": move(lambda x: torch.stack(x.chunk(2))),
    "SplitConcat": move(lambda x: torch.cat(x.split(128, 1), 1)),
    "Transpose": move(lambda x: x.t().contiguous()),
    "PermuteHeads": move(lambda x: x.view(4, -1, 8, 64).permute(0, 2, 1, 3).contiguous()),
    "TileAxis0": move(lambda x: x.tile(2, 1)),
    "TileAxis1": move(lambda x: x.tile(1, 2)),
    "RepeatAxis0": move(lambda x: x.repeat_interleave(2, 0)),
    "RepeatAxis1": move(lambda x: x.repeat_interleave(2, 1)),
    "UnfoldOverlapping": move(lambda x: x.unfold(1, 16, 4).contiguous()),
    "MaskedFill": indexed(lambda x, i: x.masked_fill(i > 0, 0), lambda n, c: ((n, c), 2)),
    # By index
    "IndexSelectAxis0": indexed(lambda x, i: x.index_select(0, i), lambda n, c: ((n,), n)),
    "IndexSelectAxis1": indexed(lambda x, i: x.index_select(1, i), lambda n, c: ((c,), c)),
    "TakeAlongAxis0": indexed(lambda x, i: x.gather(0, i), lambda n, c: ((n, c), n)),
    "TakeAlongAxis1": indexed(lambda x, i: x.gather(1, i), lambda n, c: ((n, c), c)),
    "ScatterAddAxis0": indexed(lambda x, i: x.scatter_add(0, i, x), lambda n, c: ((n, c), n)),
    "ScatterAddAxis1": indexed(lambda x, i: x.scatter_add(1, i, x), lambda n, c: ((n, c), c)),
    "IndexPutAccumulate": indexed(
        lambda x, i: x.index_put((i,), x, accumulate=True), lambda n, c: ((n,), n)
    ),
    "Outer": lambda n, c: ([uniform(n), uniform(c)], torch.outer),
    # Fused
    "LayerNorm": rows(lambda x, g, b: F.layer_norm(x, x.shape[1:], g, b)),
    "RmsNorm": rows(lambda x, g, b: F.rms_norm(x, x.shape[1:], g)),
    "Softmax": rows(lambda x, g, b: F.softmax(x, 1)),
    "LogSoftmax": rows(lambda x, g, b: F.log_softmax(x, 1)),
    "GroupNorm": group_norm,
    "CrossEntropy": cross_entropy,
    "WeightedCrossEntropy": weighted_cross_entropy,
    "MseLoss": pair_loss(F.mse_loss),
    "L1Loss": pair_loss(F.l1_loss),
    "HuberLoss": pair_loss(F.huber_loss),
    "BinaryCrossEntropy": pair_loss(F.binary_cross_entropy_with_logits),
}


def median_us(call, seconds):
    call()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2] * 1e6


def torch_us(name, direction, seconds):
    """Of the benchmark `name`, as "BM_Sum/768/512/First"."""
    op, *parts = name.removeprefix("BM_").split("/")
    numbers = [int(p) for p in parts if p.isdigit()]
    words = [p for p in parts if not p.isdigit()]
    inputs, f = OPS[op](*numbers, **({"along": words[0]} if words else {}))
    if direction == "Forward":
        with torch.no_grad():
            return median_us(lambda: f(*inputs), seconds)
    times = []
    wanted = [x for x in inputs if x.requires_grad]
    end = time.perf_counter() + seconds
    dy = None
    while len(times) < 4 or time.perf_counter() < end:
        y = f(*inputs)
        dy = torch.full_like(y, 0.5) if dy is None else dy
        begin = time.perf_counter()
        torch.autograd.grad(y, wanted, dy, allow_unused=True)
        times.append(time.perf_counter() - begin)
    times = sorted(times[1:])
    return times[len(times) // 2] * 1e6


def wengert_us(ops, name, seconds):
    """{direction: microseconds} of the benchmark."""
    out = subprocess.run(
        [ops, f"--benchmark_filter=^{name}/", f"--benchmark_min_time={seconds}"]
        + ["--benchmark_format=json"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    times = {}
    for b in json.loads(out)["benchmarks"]:
        direction = "Backward" if "/Backward" in b["name"] else "Forward"
        times[direction] = b["median_us"]
    return times


def names(ops, chosen):
    out = subprocess.run(
        [ops, "--benchmark_list_tests", f"--benchmark_filter={chosen}"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    found = []
    for line in out.split():
        name = line.removesuffix("/real_time").removesuffix("/manual_time")
        name = name.removesuffix("/Forward").removesuffix("/Backward")
        if name.split("/")[0].removeprefix("BM_") in OPS and name not in found:
            found.append(name)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", required=True, help="the program //benchmarks:ops")
    parser.add_argument("--filter", default=".", help="a regular expression")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each measurement")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in names(args.ops, args.filter):
        best = {}
        for _ in range(args.rounds):
            for direction, us in wengert_us(args.ops, name, args.seconds).items():
                theirs = torch_us(name, direction, args.seconds)
                old = best.get(direction, (us, theirs))
                best[direction] = min(us, old[0]), min(theirs, old[1])
        for direction, (ours, theirs) in best.items():
            label = f"{name.removeprefix('BM_')}/{direction}"
            print(f"{label:42} {ours:10.1f} {theirs:10.1f} {theirs / ours:7.2f}", flush=True)


if __name__ == "__main__":
    main()
