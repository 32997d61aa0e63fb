"""Prints the numbers of train/optimizer_reference_test.cc.

The published formulas of Adam, AdamW and SGD, as torch.optim documents them
(PyTorch 2), in Python's doubles and one element at a time. Run it with
`python3 train/testdata/optimizer_reference.py`.
"""

import math

LR = 0.05


def gradient(t, i, w):
    return (i + 1) * math.cos(1.3 * t + i) + 0.2 * w


class Adam:
    def __init__(self, l2=0.0, decoupled=0.0):
        self.l2, self.decoupled, self.m, self.v = l2, decoupled, 0.0, 0.0

    def step(self, t, w, g):
        beta1, beta2, eps = 0.9, 0.999, 1e-8
        w = w * (1 - LR * self.decoupled)
        g = g + self.l2 * w
        self.m = beta1 * self.m + (1 - beta1) * g
        self.v = beta2 * self.v + (1 - beta2) * g * g
        m_hat = self.m / (1 - beta1**t)
        v_hat = self.v / (1 - beta2**t)
        return w - LR * m_hat / (math.sqrt(v_hat) + eps)


class Sgd:
    def __init__(self, momentum=0.0, nesterov=False, l2=0.0):
        self.momentum, self.nesterov, self.l2 = momentum, nesterov, l2
        self.buffer = None

    def step(self, t, w, g):
        g = g + self.l2 * w
        if self.momentum:
            # torch.optim.SGD starts the buffer from the first gradient.
            if self.buffer is None:
                self.buffer = g
            else:
                self.buffer = self.momentum * self.buffer + g
            g = g + self.momentum * self.buffer if self.nesterov else self.buffer
        return w - LR * g


def run(make):
    after = {}
    w = [1.5, -2.25, 0.75]
    optimizers = [make() for _ in w]
    for t in range(1, 21):
        w = [o.step(t, x, gradient(t, i, x))
             for i, (o, x) in enumerate(zip(optimizers, w))]
        after[t] = w
    return after


for name, make in [
    ("Adam", lambda: Adam()),
    ("AdamL2", lambda: Adam(l2=0.3)),
    ("AdamW", lambda: Adam(decoupled=0.3)),
    ("Sgd", lambda: Sgd()),
    ("Momentum", lambda: Sgd(momentum=0.9, l2=0.3)),
    ("Nesterov", lambda: Sgd(momentum=0.9, nesterov=True, l2=0.3)),
]:
    after = run(make)
    print(f"const Reference k{name} = {{")
    for t in (1, 2, 20):
        print(f"    {{{t}, {{{', '.join(repr(x) for x in after[t])}}}}},")
    print("};")
