"""Makes the reference values of norms and losses with PyTorch, in float64.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python autograd/ops/testdata/make_norm_loss_reference.py

For each case: its inputs "CASE.0", "CASE.1", ..., the value "CASE.out", a
cotangent "CASE.dy", and the gradients "CASE.grad.0", ... of sum(out * dy) for
the inputs that have one. A tensor is its name and dimensions, then its values.
"""
import os

import torch
from torch.nn import functional as F

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                   "norm_loss_reference.txt")


def leaf(*shape):
    return torch.randn(shape).requires_grad_()


def rotary(x, dims, interleaved, base, offset):
    """The pairs of x [B, T, H, D] as complex numbers, times e^(i angle)."""
    angle = torch.outer(offset + torch.arange(x.shape[1]).double(),
                        base ** (-torch.arange(0, dims, 2) / dims))
    turn = torch.polar(torch.ones_like(angle), angle)[:, None, :]
    head, rest = x[..., :dims], x[..., dims:]
    pairs = (head.unflatten(-1, (dims // 2, 2)) if interleaved else
             head.unflatten(-1, (2, dims // 2)).transpose(-1, -2))
    pairs = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    if not interleaved:
        pairs = pairs.transpose(-1, -2)
    return torch.cat([pairs.flatten(-2), rest], -1)


def norms():
    yield ("layer_norm_axes", lambda x, g, b: F.layer_norm(x, (3, 4), g, b),
           leaf(2, 3, 4), leaf(3, 4), leaf(3, 4))
    yield ("rms_norm", lambda x, g: F.rms_norm(x, (7,), g), leaf(3, 7), leaf(7))
    yield ("rms_norm_plain", lambda x: F.rms_norm(x, (7,), None, 0.1),
           leaf(2, 2, 7))
    yield ("rms_norm_axes", lambda x, g: F.rms_norm(x, (3, 4), g, 1e-3),
           leaf(2, 3, 4), leaf(3, 4))
    yield ("group_norm", lambda x, g, b: F.group_norm(x, 3, g, b),
           leaf(2, 6, 5), leaf(6), leaf(6))
    yield ("group_norm_image", lambda x: F.group_norm(x, 2, eps=0.1),
           leaf(2, 4, 3, 2))
    yield ("rotary", lambda x: rotary(x, 6, False, 1e4, 0), leaf(2, 3, 2, 6))
    yield ("rotary_some", lambda x: rotary(x, 4, False, 100.0, 5),
           leaf(1, 3, 2, 6))
    yield ("rotary_interleaved", lambda x: rotary(x, 6, True, 1e4, 1000),
           leaf(1, 3, 1, 6))


def losses():
    ids = torch.tensor([2, 0, -100, 1])
    w = torch.tensor([0.5, 2.0, 1.25])
    for reduction in "mean", "sum", "none":
        def loss(f, **options):
            return lambda *x: f(*x, reduction=reduction, **options)
        yield ("cross_entropy_weighted_" + reduction,
               loss(F.cross_entropy, weight=w, label_smoothing=0.1),
               leaf(4, 3), ids)
        yield ("cross_entropy_probabilities_" + reduction,
               loss(F.cross_entropy, weight=w, label_smoothing=0.1),
               leaf(4, 3), torch.randn(4, 3).softmax(-1).requires_grad_())
        yield ("nll_" + reduction, loss(F.nll_loss, weight=w), leaf(4, 3), ids)
        yield ("mse_" + reduction, loss(F.mse_loss), leaf(3, 4), leaf(3, 4))
        yield ("l1_" + reduction, loss(F.l1_loss), leaf(3, 4), leaf(3, 4))
        yield ("huber_" + reduction, loss(F.huber_loss, delta=0.7), leaf(3, 4),
               leaf(3, 4))
        yield ("bce_" + reduction,
               loss(F.binary_cross_entropy_with_logits), leaf(2, 3),
               torch.rand(2, 3).requires_grad_())
        yield ("bce_weighted_" + reduction,
               loss(F.binary_cross_entropy_with_logits, weight=w,
                    pos_weight=torch.tensor([3.0, 1.0, 0.25])),
               leaf(2, 3), torch.rand(2, 3).requires_grad_())
        yield ("kl_" + reduction, loss(F.kl_div), leaf(2, 3),
               torch.rand(2, 3).requires_grad_())
        yield ("kl_log_" + reduction, loss(F.kl_div, log_target=True),
               leaf(2, 3), leaf(2, 3))
    yield ("cross_entropy_image",
           lambda x, t: F.cross_entropy(x, t, weight=w),
           leaf(2, 3, 2, 2), torch.randint(3, (2, 2, 2)))
    yield ("cross_entropy_image_probabilities",
           lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2),
           leaf(2, 3, 4), torch.randn(2, 3, 4).softmax(1).requires_grad_())
    yield ("nll_image", lambda x, t: F.nll_loss(x, t), leaf(2, 3, 2, 2),
           torch.randint(3, (2, 2, 2)))
    yield ("kl_batchmean", lambda x, t: F.kl_div(x, t, reduction="batchmean"),
           leaf(2, 3), torch.rand(2, 3).requires_grad_())
    yield ("cosine", lambda a, b: F.cosine_similarity(a, b, -1), leaf(2, 3, 4),
           leaf(3, 4))
    yield ("cosine_first", lambda a, b: F.cosine_similarity(a, b, 0),
           leaf(4, 3), leaf(4, 1))


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    with open(OUT, "w") as out:
        out.write("# made by make_norm_loss_reference.py with PyTorch %s\n"
                  % torch.__version__.split("+")[0])

        def put(name, x):
            out.write(name + "".join(" %d" % d for d in x.shape) + "\n")
            values = x.detach().flatten().tolist()
            out.write(" ".join("%.17g" % v for v in values) + "\n")

        for make in norms, losses:
            for name, f, *inputs in make():
                y = f(*inputs)
                dy = torch.randn(y.shape)
                for i, x in enumerate(inputs):
                    put("%s.%d" % (name, i), x)
                put(name + ".out", y)
                put(name + ".dy", dy)
                tracked = [i for i, x in enumerate(inputs) if x.requires_grad]
                grads = torch.autograd.grad(y, [inputs[i] for i in tracked], dy)
                for i, g in zip(tracked, grads):
                    put("%s.grad.%d" % (name, i), g)


if __name__ == "__main__":
    main()
