"""Makes optimizer_matrix_reference.txt for optimizer_matrix_test.cc with PyTorch
(2.15, in double): lines of a name, the number of updates and all weights."""
import math

import torch

# PyTorch's Muon rounds to bfloat16, which hides what it computes.
to = torch.Tensor.to
torch.Tensor.to = lambda self, *a, dtype=None, **k: (
    self.clone() if dtype == torch.bfloat16 else to(self, *a, dtype=dtype, **k)
    if dtype is not None else to(self, *a, **k))
optim = torch.optim
lines = []


def weights(shapes):
    n = 0
    for shape in shapes:
        size = math.prod(shape)
        values = [math.sin(1.7 * (n + i)) for i in range(size)]
        n += size
        yield torch.nn.Parameter(
            torch.tensor(values, dtype=torch.float64).reshape(shape))


def note(name, t, w):
    values = " ".join(repr(v) for x in w for v in x.detach().flatten().tolist())
    lines.append(f"{name} {t} {values}\n")


def show(name, shapes, make):
    w = list(weights(shapes))
    optimizer = make(w)
    for t in range(1, 21):
        n = 0
        for x in w:
            i = torch.arange(n, n + x.numel(), dtype=torch.float64)
            n += x.numel()
            g = (i % 3 + 1) * torch.cos(1.3 * t + i) + 0.2 * x.detach().flatten()
            x.grad = g.reshape(x.shape)
        optimizer.step()
        note(name, t, w)


def show_lbfgs(name, **options):
    """Rosenbrock's function of the two parameters a [2] and b []."""
    w = list(weights([(2,), ()]))
    optimizer = optim.LBFGS(w, **options)

    def closure():
        optimizer.zero_grad()
        a, b = w
        loss = (100 * (a[1] - a[0]**2)**2 + (1 - a[0])**2 +
                10 * (b - a[1]**2)**2 + (1 - a[1])**2)
        loss.backward()
        return loss

    for t in range(1, 21):
        optimizer.step(closure)
        note(name, t, w)


SHAPES = [(2, 3), (3, 2), (4,), (2, 2, 3), ()]
show("adafactor", SHAPES, lambda w: optim.Adafactor(w, lr=0.05))
show("adafactor_full", SHAPES, lambda w: optim.Adafactor(
    w, lr=0.5, beta2_decay=-0.6, eps=(1e-4, 0.3), d=1.25, weight_decay=0.1))
MATRICES = [(2, 3), (3, 2), (1, 4), (3, 3)]
show("muon", MATRICES, lambda w: optim.Muon(
    w, lr=0.05, adjust_lr_fn="match_rms_adamw"))
show("muon_original", MATRICES, lambda w: optim.Muon(
    w, lr=0.05, momentum=0.8, nesterov=False, weight_decay=0.3, ns_steps=3))
show("adamw", [(4,), (2, 2, 3)], lambda w: optim.AdamW(
    w, lr=0.05, weight_decay=0.1))
show_lbfgs("lbfgs", lr=0.01, max_iter=1)
show_lbfgs("lbfgs_wolfe", max_iter=1, max_eval=25, line_search_fn="strong_wolfe")
show_lbfgs("lbfgs_short", max_iter=3, max_eval=25, history_size=2,
           line_search_fn="strong_wolfe")
with open("optimizer_matrix_reference.txt", "w") as file:
    file.writelines(lines)
