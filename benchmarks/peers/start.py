"""The benchmarks' models as ../models.cc makes them: sizes, data, first weights.

model = start.MODELS["toy"]; x, y = model.data(); w = model.weights()
"""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Model:
    layers: int
    width: int
    heads: int
    length: int
    batch: int
    vocabulary: int
    # A GPT is pre-norm and causal, with GELU (tanh), a last norm, a head tied
    # to the words and AdamW. The toy is post-norm, with ReLU, a head of its
    # own and Adam.
    gpt: bool

    @property
    def tokens(self):
        return self.batch * self.length

    @property
    def flops(self):
        """Of a training step; see Workload::flops in ../models.h."""
        products = 12 * self.width**2 * self.layers + self.width * self.vocabulary
        attention = 12 * self.width * self.tokens * self.length * self.layers
        return 6 * products * self.tokens + attention

    def data(self):
        """Words and targets, both int64 [batch, length]."""
        if not self.gpt:  # "a is b" -> "A = B"
            x = np.array([[a, 3, b] for a in range(3) for b in range(3)])
            return x, x + 4
        i = np.arange(self.tokens)
        x, y = [((formula(1000 + k, i) + 1) / 2 * self.vocabulary).astype(np.int64) for k in (0, 1)]
        return x.reshape(self.batch, -1), y.reshape(self.batch, -1)

    def weights(self):
        """Name -> float32 array, in the order of Wengert's parameters.

        qkv, proj, fc and fc2 are its self_attn.in_proj_*, self_attn.out_proj,
        linear1 and linear2. Maps are [out, in]; they, their biases and the
        embeddings follow the formula; norms start at 1 and 0.
        """
        c = self.width
        shapes = {"wte.weight": (self.vocabulary, c), "wpe.weight": (self.length, c)}
        for i in range(self.layers):
            for name, shape in {
                "qkv": (3 * c, c),
                "proj": (c, c),
                "fc": (4 * c, c),
                "fc2": (c, 4 * c),
                "norm1": (c,),
                "norm2": (c,),
            }.items():
                shapes[f"layers.{i}.{name}.weight"] = shape
                shapes[f"layers.{i}.{name}.bias"] = shape[:1]
        last = {"norm": (c,)} if self.gpt else {"out": (self.vocabulary, c)}
        for name, shape in last.items():
            shapes[f"{name}.weight"] = shape
            shapes[f"{name}.bias"] = shape[:1]

        def first(k, name, shape):
            if "norm" in name:
                w = np.full(shape, 1.0 if name.endswith("weight") else 0.0)
            else:
                w = 0.02 * math.sqrt(3.0) * formula(k, np.arange(math.prod(shape)))
            return w.reshape(shape).astype(np.float32)

        return {n: first(k, n, s) for k, (n, s) in enumerate(shapes.items())}


MODELS = {
    "toy": Model(1, 12, 3, 3, 9, 12, gpt=False),
    "small": Model(4, 128, 4, 64, 12, 65, gpt=True),
    "medium": Model(6, 384, 6, 256, 4, 65, gpt=True),
}


def formula(k, i):
    """Element i of the k-th array, in [-1, 1): Start in ../models.cc."""
    x = np.uint64(k * 1000003) + np.asarray(i, np.uint64)
    for _ in range(2):
        x = (x ^ (x >> np.uint64(16))) * np.uint64(0x45D9F3B) & np.uint64(0xFFFFFFFF)
    x = x ^ (x >> np.uint64(16))
    return x.astype(np.float64) / 2147483648.0 - 1
