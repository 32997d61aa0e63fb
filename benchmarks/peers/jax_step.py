"""Times one training step of JAX, compiled whole; prints one line of JSON.

python jax_step.py --model=small --threads=2
"""

import functools
import math
import os

import measure

parser = measure.flags(__doc__)
parser.add_argument("--attention", choices=["manual", "sdpa"], default="manual")
args = parser.parse_args()
# XLA starts one thread for each processor that the process may use when it
# starts, beside Python's own, which waits; no flag limits them all.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])

import jax
import jax.numpy as jnp
import start

m = start.MODELS[args.model]


def linear(w, name, x):
    return jnp.einsum("...i,oi->...o", x, w[name + ".weight"]) + w[name + ".bias"]


def norm(w, name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    return x * w[name + ".weight"] + w[name + ".bias"]


def attend(w, name, x):
    b, t, c = x.shape
    qkv = linear(w, name + "qkv", x).reshape(b, t, 3, m.heads, c // m.heads)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    if args.attention == "sdpa":
        y = jax.nn.dot_product_attention(q, k, v, is_causal=m.gpt)
    else:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (1 / math.sqrt(c // m.heads))
        if m.gpt:
            s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf)
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v)
    return linear(w, name + "proj", y.reshape(b, t, c))


def loss_of(w, x, y):
    h = w["wte.weight"][x] + w["wpe.weight"]
    for i in range(m.layers):
        n = f"layers.{i}."
        if m.gpt:
            h = h + attend(w, n, norm(w, n + "norm1", h))
            g = jax.nn.gelu(linear(w, n + "fc", norm(w, n + "norm2", h)), approximate=True)
            h = h + linear(w, n + "fc2", g)
        else:
            h = norm(w, n + "norm1", h + attend(w, n, h))
            g = jax.nn.relu(linear(w, n + "fc", h))
            h = norm(w, n + "norm2", h + linear(w, n + "fc2", g))
    if m.gpt:
        logits = norm(w, "norm", h) @ w["wte.weight"].T
    else:
        logits = linear(w, "out", h)
    right = jnp.take_along_axis(logits, y[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - right).mean()


# AdamW for a GPT, Adam for the toy, as in ../models.cc.
beta1, beta2, decay = (0.9, 0.99, 0.1) if m.gpt else (0.9, 0.999, 0.0)


@functools.partial(jax.jit, donate_argnums=0)
def train(state, x, y):
    w, mean, square, t = state
    loss, g = jax.value_and_grad(loss_of)(w, x, y)
    t = t + 1
    mean = jax.tree.map(lambda a, g: beta1 * a + (1 - beta1) * g, mean, g)
    square = jax.tree.map(lambda a, g: beta2 * a + (1 - beta2) * g * g, square, g)
    step_size = 1e-3 / (1 - beta1**t)
    root = 1 / jnp.sqrt(1 - beta2**t)
    w = jax.tree.map(
        lambda w, a, b: (1 - 1e-3 * decay) * w - step_size * a / (jnp.sqrt(b) * root + 1e-8),
        w,
        mean,
        square,
    )
    return (w, mean, square, t), loss


jax.config.update("jax_cpu_enable_async_dispatch", False)  # toy: 15 % faster
x, y = [jnp.asarray(a, jnp.int32) for a in m.data()]
w = jax.tree.map(jnp.asarray, m.weights())
if args.forward:
    forward = jax.jit(loss_of)
    step = lambda: forward(w, x, y).block_until_ready()
else:
    zeros = lambda: jax.tree.map(jnp.zeros_like, w)
    state = (w, zeros(), zeros(), jnp.float32(0))

    def step():
        global state
        state, loss = train(state, x, y)
        return loss.block_until_ready()


measure.report("jax", args.attention, args, step)
