"""Makes the reference numbers of elementwise operations with PyTorch, float64.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python autograd/ops/testdata/make_elementwise_reference.py

Of a case, "NAME.0", "NAME.1", .. are the inputs, "NAME.out" the result,
"NAME.grad.0", .. the gradients of its sum and "NAME.second.0", .. those of the
sum of all elements of all gradients. At edges the second ones are left out.
Results that are bool are 0 and 1 and have no gradients.
"""
import math
import os

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
INF = math.inf
NAN = math.nan

REAL = [-4.5, -2.2, -1.3, -0.7, -0.11, 1e-9, 0.04, 0.6, 1.7, 2.9, 6.3]
POSITIVE = [1e-12, 0.03, 0.4, 1.1, 2.5, 17.0, 3e5]
TAILS = [-300.0, -40.0, -18.0, -3.0, -1e-7, 1e-7, 0.5, 4.0, 15.0]

ONE = {
    "Exp": (torch.exp, REAL),
    "Log": (torch.log, POSITIVE),
    "Tanh": (torch.tanh, REAL),
    "Sigmoid": (torch.sigmoid, REAL),
    "Erf": (torch.erf, REAL),
    "Erfc": (torch.erfc, REAL),
    "Square": (torch.square, REAL),
    "Sqrt": (torch.sqrt, POSITIVE),
    "Rsqrt": (torch.rsqrt, POSITIVE),
    "Expm1": (torch.expm1, TAILS),
    "Log1p": (torch.log1p, [-0.999, -0.4, -1e-9] + POSITIVE),
    "Sin": (torch.sin, REAL + [1e3, -7e5, 1e15]),
    "Cos": (torch.cos, REAL + [1e3, -7e5, 1e15]),
    "Relu": (torch.relu, REAL),
    "Gelu": (F.gelu, REAL),
    "GeluTanh": (lambda x: F.gelu(x, approximate="tanh"), REAL),
    "Silu": (F.silu, REAL),
    "Abs": (torch.abs, REAL),
    "Clamp": (lambda x: torch.clamp(x, -1, 1.5), REAL),
    "ClampOneSide": (lambda x: torch.clamp(x, min=-1), REAL),
    "Softplus": (F.softplus, TAILS),
    "SoftplusBeta": (lambda x: F.softplus(x, beta=3.0), REAL),
    "LogSigmoid": (F.logsigmoid, TAILS),
    "LeakyRelu": (F.leaky_relu, REAL),
    "LeakyReluSlope": (lambda x: F.leaky_relu(x, 0.3), REAL),
    "Elu": (F.elu, TAILS),
    "EluAlpha": (lambda x: F.elu(x, 1.5), REAL),
    "PowCube": (lambda x: x ** 3.0, REAL),
    "PowBroken": (lambda x: x ** 2.5, POSITIVE),
    "PowMinusTwo": (lambda x: x ** -2.0, [-3.0, -0.5, 0.2, 9.0]),
}
ONE_AT_EDGES = {
    "Sign": (torch.sign, [-INF, -2.5, 0.0, 3.0, INF]),
    "Floor": (torch.floor, [-INF, -2.5, -0.5, 0.0, 0.5, 2.0, 1e17]),
    "Ceil": (torch.ceil, [-INF, -2.5, -0.5, 0.0, 0.5, 2.0, 1e17]),
    "Trunc": (torch.trunc, [-INF, -2.5, -0.5, 0.0, 0.5, 2.0, 1e17]),
    "Round": (torch.round, [-INF, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.51]),
    "Relu": (torch.relu, [-INF, 0.0, INF]),
    "Abs": (torch.abs, [-INF, 0.0, INF]),
    "LeakyRelu": (F.leaky_relu, [-INF, 0.0, INF]),
    "Elu": (F.elu, [-INF, 0.0, INF]),
    "Expm1": (torch.expm1, [-INF, 0.0, INF]),
    "Log1p": (torch.log1p, [-1.0, 0.0, INF]),
    "LogSigmoid": (F.logsigmoid, [-1e20, 0.0, 1e20]),
    "PowHalf": (lambda x: x ** 0.5, [0.0, 4.0, INF]),
    "PowZero": (lambda x: x ** 0.0, [-1.0, 0.0, INF, NAN]),
}
SOME = [0.3, -1.2, 2.0, 4.5, -0.6]
OTHERS = [1.4, -0.5, -2.1, 0.25, 3.0]
TWO = {
    "Add": (torch.add, SOME, OTHERS),
    "Sub": (torch.sub, SOME, OTHERS),
    "Mul": (torch.mul, SOME, OTHERS),
    "Div": (torch.div, SOME, OTHERS),
    "Maximum": (torch.maximum, SOME, OTHERS),
    "Minimum": (torch.minimum, SOME, OTHERS),
    "Atan2": (torch.atan2, SOME, OTHERS),
    "Pow": (torch.pow, [0.3, 1.0, 2.0, 4.5, 1e-3], OTHERS),
    "Lerp": (lambda a, b: torch.lerp(a, b, 0.3), SOME, OTHERS),
}
TWO_AT_EDGES = {
    "Pow": (torch.pow, [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 1.0, INF, NAN],
            [0.0, 0.5, 1.0, 2.0, -1.0, 0.0, INF, 2.0, 0.0]),
    "Atan2": (torch.atan2, [0.0, 0.0, -0.0, 2.0, -2.0],
              [0.0, 2.0, -2.0, 0.0, -0.0]),
    "LerpToTheEnd": (lambda a, b: torch.lerp(a, b, 1.0), [0.1, 1e9, -3.0],
                     [0.7, 0.3, 1e-9]),
}
LEFT = [-INF, -1.0, 0.0, 0.0, 2.0, INF, NAN, 1.0, NAN]
RIGHT = [-INF, 1.0, 0.0, -0.0, 1.0, INF, 1.0, NAN, NAN]
BOOLS = {
    "Equal": (torch.eq, LEFT, RIGHT),
    "NotEqual": (torch.ne, LEFT, RIGHT),
    "Less": (torch.lt, LEFT, RIGHT),
    "LessEqual": (torch.le, LEFT, RIGHT),
    "Greater": (torch.gt, LEFT, RIGHT),
    "GreaterEqual": (torch.ge, LEFT, RIGHT),
    "IsNan": (torch.isnan, LEFT),
    "IsInf": (torch.isinf, LEFT),
    "IsFinite": (torch.isfinite, LEFT),
}


def put(out, name, x):
    x = x.detach().double()
    dims = "".join(" %d" % d for d in x.shape)
    values = " ".join("%.17g" % v for v in x.flatten().tolist())
    out.write("%s%s\n%s\n" % (name, dims, values))


def put_case(out, name, f, inputs, second):
    xs = [torch.tensor(x, dtype=torch.float64, requires_grad=True)
          for x in inputs]
    for i, x in enumerate(xs):
        put(out, "%s.%d" % (name, i), x)
    y = f(*xs)
    put(out, name + ".out", y)
    if y.dtype == torch.bool:
        return
    grads = torch.autograd.grad(y.sum(), xs, create_graph=second)
    for i, g in enumerate(grads):
        put(out, "%s.grad.%d" % (name, i), g)
    if not second:
        return
    total = sum(g.sum() for g in grads)
    if total.requires_grad:
        grads = torch.autograd.grad(total, xs, allow_unused=True)
    else:
        grads = [None] * len(xs)
    for i, (g, x) in enumerate(zip(grads, xs)):
        put(out, "%s.second.%d" % (name, i),
            torch.zeros_like(x) + (0 if g is None else g))


with open(os.path.join(HERE, "elementwise_reference.txt"), "w") as out:
    out.write("# made by make_elementwise_reference.py with PyTorch %s\n"
              % torch.__version__.split("+")[0])
    for table in (ONE, TWO):
        for name, (f, *inputs) in table.items():
            put_case(out, name, f, inputs, True)
    put_case(out, "LerpWeights", torch.lerp, [SOME, OTHERS, POSITIVE[1:6]], True)
    for table in (ONE_AT_EDGES, TWO_AT_EDGES):
        for name, (f, *inputs) in table.items():
            put_case(out, name + "AtEdges", f, inputs, False)
    for name, (f, *inputs) in BOOLS.items():
        put_case(out, name, f, inputs, False)
