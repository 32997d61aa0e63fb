"""Makes reduce_reference.txt: values and gradients of reductions, scans and
sorting, in double, for a random operand x and a random cotangent dy.

    pip install torch==2.15
    python make_reduce_reference.py > reduce_reference.txt

Left out is where PyTorch has another rule: it shares the gradient among equal
extremes, and its deviation of equal elements has a NaN as gradient.
"""
import math

import torch

torch.manual_seed(5)


def randn(*shape):
    return torch.randn(shape, dtype=torch.float64)


def with_zeros(x, places):
    x = x.clone()
    x.view(-1)[places] = 0
    return x


def norm(p, dim=None, keepdim=False):
    return lambda x: torch.linalg.vector_norm(x, p, dim, keepdim)


CUBE = randn(2, 3, 4)
ZEROS = with_zeros(randn(2, 5), [1, 3, 7])
LONG = randn(1, 300)
INF = math.inf

CASES = {
    "min_all": (CUBE, torch.min),
    "min_1": (CUBE, lambda x: x.min(1).values),
    "min_02": (CUBE, lambda x: x.amin((0, 2))),
    "max_1_kept": (CUBE, lambda x: x.max(1, keepdim=True).values),
    "prod_all": (CUBE, torch.prod),
    "prod_1": (CUBE, lambda x: x.prod(1)),
    "prod_zeros": (ZEROS, lambda x: x.prod(1)),
    "var_all": (CUBE, torch.var),
    "var_1": (CUBE, lambda x: x.var(1)),
    "var_02_kept": (CUBE, lambda x: x.var((0, 2), keepdim=True)),
    "var_population": (CUBE, lambda x: x.var(-1, correction=0)),
    "std_all": (CUBE, torch.std),
    "std_0": (CUBE, lambda x: x.std(0)),
    "std_12": (CUBE, lambda x: x.std((1, 2), correction=0)),
    "norm_2": (CUBE, norm(2)),
    "norm_2_axis": (CUBE, norm(2, -1)),
    "norm_2_axes": (CUBE, norm(2, (0, 2), True)),
    "norm_1": (CUBE, norm(1, 1)),
    "norm_3.5": (CUBE, norm(3.5, 0)),
    "norm_0.5": (CUBE, norm(0.5, -1)),
    "norm_-1": (CUBE, norm(-1, 1)),
    "norm_-2.5": (CUBE, norm(-2.5, (0, 1))),
    "norm_0": (ZEROS, norm(0, 1)),
    "norm_inf": (CUBE, norm(INF, 1)),
    "norm_-inf": (CUBE, norm(-INF, (0, 2))),
    "norm_of_zeros": (torch.zeros(2, 3, dtype=torch.float64), norm(2, -1)),
    "norm_1_zeros": (ZEROS, norm(1, -1)),
    "norm_1.5_zeros": (ZEROS, norm(1.5, -1)),
    "logsumexp_02": (CUBE, lambda x: x.logsumexp((0, 2))),
    "cumsum_1": (CUBE, lambda x: x.cumsum(1)),
    "cumsum_last": (CUBE, lambda x: x.cumsum(-1)),
    "cumprod_1": (CUBE, lambda x: x.cumprod(1)),
    "cumprod_zeros": (ZEROS, lambda x: x.cumprod(-1)),
    "sort_1": (CUBE, lambda x: x.sort(1).values),
    "sort_down": (CUBE, lambda x: x.sort(-1, descending=True).values),
    "topk_2": (CUBE, lambda x: x.topk(2).values),
    "topk_smallest": (CUBE, lambda x: x.topk(1, 0, largest=False).values),
    "topk_long": (LONG, lambda x: x.topk(3).values),
}


def show(name, x):
    print(name, *x.shape)
    print(*(repr(v) for v in x.detach().flatten().tolist()))


print(f"# By make_reduce_reference.py with PyTorch {torch.__version__}.")
for name, (x, f) in CASES.items():
    x = x.clone().requires_grad_()
    y = f(x)
    dy = randn(*y.shape)
    (dx,) = torch.autograd.grad(y, x, dy, materialize_grads=True)
    for part, value in ("x", x), ("dy", dy), ("y", y), ("dx", dx):
        show(f"{name}.{part}", value)
