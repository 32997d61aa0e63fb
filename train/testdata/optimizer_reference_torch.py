"""Prints the references of optimizer_reference_test.cc that PyTorch gives (2.15,
in double), and Lion's, of its published algorithm."""
import math

import torch


class Lion:
    def __init__(self, weights, lr, beta1, beta2, weight_decay):
        self.weights, self.lr = weights, lr
        self.beta1, self.beta2, self.weight_decay = beta1, beta2, weight_decay
        self.m = [0.0] * len(weights)

    @torch.no_grad()
    def step(self):
        for i, w in enumerate(self.weights):
            g = w.grad.item()
            c = self.beta1 * self.m[i] + (1 - self.beta1) * g
            sign = (c > 0) - (c < 0)
            w -= self.lr * (sign + self.weight_decay * w)
            self.m[i] = self.beta2 * self.m[i] + (1 - self.beta2) * g


def show(name, make):
    weights = [
        torch.nn.Parameter(torch.tensor(v, dtype=torch.float64))
        for v in (1.5, -2.25, 0.75)
    ]
    optimizer = make(weights)
    print(f"const Reference k{name} = {{")
    for t in range(1, 21):
        for i, w in enumerate(weights):
            g = (i + 1) * math.cos(1.3 * t + i) + 0.2 * w.item()
            w.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
        if t in (1, 2, 20):
            values = ", ".join(repr(w.item()) for w in weights)
            print(f"    {{{t}, {{{values}}}}},")
    print("};")


optim = torch.optim
show("RmsProp", lambda w: optim.RMSprop(w, lr=0.05, alpha=0.9))
show("RmsPropFull", lambda w: optim.RMSprop(
    w, lr=0.02, alpha=0.9, momentum=0.9, centered=True, weight_decay=0.3))
show("Adagrad", lambda w: optim.Adagrad(w, lr=0.1))
show("AdagradFull", lambda w: optim.Adagrad(
    w, lr=0.1, lr_decay=0.05, weight_decay=0.3, initial_accumulator_value=0.5,
    eps=1e-6))
show("Lion", lambda w: Lion(w, 0.02, 0.9, 0.99, 0.3))
