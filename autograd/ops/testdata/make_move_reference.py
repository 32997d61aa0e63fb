"""Makes einsum_, move_ and linalg_reference.txt, with PyTorch and NumPy in
double (pip install torch numpy):
    python autograd/ops/testdata/make_move_reference.py
"""
import os
import random

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_default_dtype(torch.float64)


class Reference:
    def __init__(self, name, title):
        self.lines = [f"# {title}: made by make_move_reference.py."]
        self.path = os.path.join(HERE, name)

    def add(self, name, array):
        array = np.asarray(array, dtype=np.float64)
        self.lines.append(" ".join([name, *map(str, array.shape)]))
        self.lines.append(" ".join(repr(float(v)).removesuffix(".0")
                                   for v in array.flatten()))

    def write(self):
        with open(self.path, "w", encoding="ascii") as out:
            out.write("\n".join(self.lines) + "\n")


def numbers(rng, shape):
    return np.round(rng.uniform(-2, 2, size=shape), 2)


def random_equation(rng):
    """An equation and the size of each letter."""
    letters = rng.sample("abcdeXYZ", rng.randint(3, 6))
    operands = []
    for _ in range(rng.choice([1, 2, 2, 2, 3, 3, 4])):
        n = rng.choice([0, 1, 2, 2, 3, 3, 3, 4])
        repeats = rng.random() < 0.25
        operands.append("".join(
            rng.choices(letters, k=n) if repeats
            else rng.sample(letters, min(n, len(letters)))))
    equation = ",".join(operands)
    used = sorted(set("".join(operands)))
    if rng.random() < 0.8:
        rng.shuffle(used)
        equation += "->" + "".join(used[:rng.randint(0, min(4, len(used)))])
    return equation, {c: rng.randint(1, 4) for c in letters}


def einsum():
    out = Reference("einsum_reference.txt", "numpy.einsum")
    rng, values = random.Random(5), np.random.default_rng(5)
    sizes = dict(b=2, h=3, q=4, k=2, d=3, i=2, j=3)
    cases = [(e, sizes) for e in (
        "ij,jk->ik", "ij,jk", "ij,kj->ki", "ji,jk->ik", "bij,bjk->bik",
        "bij,jk->bik", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "i,j->ij",
        "i,i->", "i,i->i", "bi,bi->b", "ii", "ii->i", "iji->j", "iijj->ij",
        "ij->ji", "ba", "ij->", "ij,ij->", "ij,ij->ji", ",i->i", "i,ij,j->",
        "ij,jk,kh->ih", "ij,jk,kb,bi->", "hqd,hkd,hk->qd")]
    cases = [(e, {c: s.get(c, 2) for c in e if c.isalpha()}) for e, s in cases]
    while len(cases) < 70:
        cases.append(random_equation(rng))
    for i, (equation, size) in enumerate(cases):
        operands = [numbers(values, [size[c] for c in term])
                    for term in equation.split("->")[0].split(",")]
        for k, operand in enumerate(operands):
            out.add(f"{i:02}:{equation}/{k}", operand)
        out.add(f"{i:02}:{equation}/result", np.einsum(equation, *operands))
    out.write()


def move():
    out = Reference("move_reference.txt", "NumPy and PyTorch")
    values = np.random.default_rng(6)
    x = numbers(values, (3, 4, 2))
    t = torch.from_numpy(x)
    ids = np.array([2, 0, 2, 1, 2])
    along = values.integers(0, 4, (3, 5, 2))
    src = numbers(values, (3, 5, 2))
    put = numbers(values, (2, 3, 2))
    places = (np.array([[2], [0]]), np.array([3, 1, 3]))
    out.add("x", x)
    out.add("ids", ids)
    out.add("along", along)
    out.add("src", src)
    out.add("put", put)
    out.add("places0", places[0])
    out.add("places1", places[1])
    out.add("squeeze", x[:1].squeeze(0))
    out.add("expand_dims", np.expand_dims(x, -1))
    out.add("stack", np.stack([x, -x], axis=-1))
    for i, part in enumerate(torch.split(t, 3, 1)):
        out.add(f"split{i}", part)
    for i, part in enumerate(torch.chunk(t, 3, 1)):
        out.add(f"chunk{i}", part)
    out.add("pad", np.pad(x, [(0, 0), (2, 1), (0, 3)], constant_values=7))
    out.add("pad_and_cut", torch.nn.functional.pad(t, (1, -2, -1, 2)))
    out.add("flip", np.flip(x))
    out.add("flip_middle", np.flip(x, 1))
    out.add("roll", np.roll(x, -7, 1))
    out.add("tile", np.tile(x, (2, 1, 1, 3)))
    out.add("repeat", np.repeat(x, 3, axis=1))
    out.add("unfold", t.unfold(1, 2, 1))
    out.add("unfold_first", t.unfold(0, 2, 3))
    for k in (-5, -2, -1, 0, 1, 2, 5):
        out.add(f"tril{k}", np.tril(x, k))
        out.add(f"triu{k}", np.triu(x, k))
        out.add(f"diagonal{k}", np.diagonal(x, k))
        out.add(f"diagonal_of_last{k}", np.diagonal(x, k, 2, 1))
        out.add(f"diag_embed{k}", torch.diag_embed(t, k))
    out.add("index_select", np.take(x, ids, axis=1))
    out.add("take_along_axis", np.take_along_axis(x, along, axis=1))
    out.add("scatter_add", t.scatter_add(1, torch.from_numpy(along),
                                         torch.from_numpy(src)))
    put_torch = tuple(torch.from_numpy(p) for p in places)
    out.add("index_put", t.index_put(put_torch, torch.from_numpy(put)))
    out.add("index_put_accumulate", t.index_put(
        put_torch, torch.from_numpy(put), accumulate=True))
    out.add("one_hot", torch.nn.functional.one_hot(torch.from_numpy(ids), 4))
    out.add("arange", np.arange(-1, 2, 0.1))
    out.add("arange_down", np.arange(5, -2, -1.5))
    out.add("linspace", np.linspace(-1, 2, 11))
    out.add("eye", np.eye(3, 5))
    out.write()


def linalg():
    out = Reference("linalg_reference.txt", "PyTorch")
    values = np.random.default_rng(7)

    def add(name, f, *inputs, dy):
        tensors = [torch.from_numpy(v).requires_grad_() for v in inputs]
        y = f(*tensors)
        out.add(f"{name}/result", y.detach())
        out.add(f"{name}/dy", dy)
        grads = torch.autograd.grad(y, tensors, torch.from_numpy(dy))
        for i, (v, g) in enumerate(zip(inputs, grads)):
            out.add(f"{name}/{i}", v)
            out.add(f"{name}/d{i}", g)

    m = numbers(values, (2, 4, 4))
    a = np.round(m @ m.transpose(0, 2, 1) + np.eye(4), 4)
    for upper in (False, True):
        add(f"cholesky{int(upper)}",
            lambda t, upper=upper: torch.linalg.cholesky(t, upper=upper), a,
            dy=numbers(values, a.shape))
    for upper in (False, True):
        for left in (True, False):
            for unit in (False, True):
                a = numbers(values, (2, 1, 3, 3)) + 3 * np.eye(3)
                b = numbers(values, (3, 3, 2) if left else (3, 2, 3))
                add(f"solve{int(upper)}{int(left)}{int(unit)}",
                    lambda a, b, upper=upper, left=left, unit=unit:
                    torch.linalg.solve_triangular(
                        a, b, upper=upper, left=left, unitriangular=unit),
                    a, b, dy=numbers(values, (2, *b.shape)))
    out.write()


einsum()
move()
linalg()
