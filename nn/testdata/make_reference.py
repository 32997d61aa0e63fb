"""Makes the reference numbers of the layer tests with PyTorch, in float64.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python nn/testdata/make_reference.py

A file holds tensors of two lines each: the name and the dimensions, then the
values in row-major order. Under a case's prefix stand its inputs, "out" and
"weights", the cotangent "dy" of out, and as "grad.NAME" the gradient of
sum(out * dy) for the input or parameter NAME. Masks are 1 where a query may
attend. Parameters are named as PyTorch names them.
"""
import math
import os

import numpy as np
import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))


class File:
    def __init__(self, name):
        self.out = open(os.path.join(HERE, name), "w")
        self.out.write("# made by make_reference.py with PyTorch %s\n"
                       % torch.__version__.split("+")[0])

    def put(self, name, x):
        dims = "".join(" %d" % d for d in x.shape)
        values = " ".join("%.15g" % v for v in x.detach().flatten().tolist())
        self.out.write("%s%s\n%s\n" % (name, dims, values))

    def put_parameters(self, prefix, module):
        for name, p in module.named_parameters():
            self.put(prefix + name, p)

    def put_case(self, case, inputs, module, out):
        """out, a cotangent, and all gradients."""
        dy = torch.randn(out.shape)
        named = dict(inputs, **dict(module.named_parameters()))
        grads = torch.autograd.grad(out, list(named.values()), dy)
        for name, x in inputs.items():
            self.put(case + name, x)
        self.put(case + "out", out)
        self.put(case + "dy", dy)
        for name, g in zip(named, grads):
            self.put(case + "grad." + name, g)


def randomise(module, scale=0.5):
    """Biases and norms start at constants, which would hide faults."""
    for p in module.parameters():
        p.data += scale * torch.randn(p.shape)
    return module


def leaf(*shape):
    return torch.randn(shape).requires_grad_()


def linear():
    f = File("linear.txt")
    layer = nn.Linear(5, 3)
    f.put_parameters("parameter.", layer)
    x = leaf(2, 4, 5)
    f.put_case("", {"x": x}, layer, layer(x))


def layer_norm():
    f = File("layer_norm.txt")
    layer = randomise(nn.LayerNorm(7))
    f.put_parameters("parameter.", layer)
    x = leaf(2, 3, 7)
    f.put_case("", {"x": x}, layer, layer(x))


def norms():
    f = File("norms.txt")
    for case, layer, shape in (
            ("layer", nn.LayerNorm([3, 4]), (2, 3, 4)),
            ("rms", nn.RMSNorm(7), (2, 3, 7)),
            ("rms_axes", nn.RMSNorm([3, 4], eps=0.01), (2, 3, 4)),
            ("group", nn.GroupNorm(2, 6), (2, 6, 3, 2))):
        randomise(layer)
        f.put_parameters(case + ".parameter.", layer)
        x = leaf(*shape)
        f.put_case(case + ".", {"x": x}, layer, layer(x))


class GatedMLP(nn.Module):
    """As in Llama: down(f(gate(x)) * up(x))."""

    def __init__(self, c, hidden, f, bias):
        super().__init__()
        self.gate_proj = nn.Linear(c, hidden, bias=bias)
        self.up_proj = nn.Linear(c, hidden, bias=bias)
        self.down_proj = nn.Linear(hidden, c, bias=bias)
        self.f = f

    def forward(self, x):
        return self.down_proj(self.f(self.gate_proj(x)) * self.up_proj(x))


def gated_mlp():
    f = File("gated_mlp.txt")
    for case, activation, bias in (
            ("silu", nn.functional.silu, False),
            ("gelu", nn.functional.gelu, True)):
        layer = randomise(GatedMLP(5, 7, activation, bias))
        f.put_parameters(case + ".parameter.", layer)
        x = leaf(2, 3, 5)
        f.put_case(case + ".", {"x": x}, layer, layer(x))


def rotate(x, dims, interleaved, base, offset):
    """x [B, T, H, D]; the angle of pair i at position t is t base^(-2i/dims).

    The pairs as complex numbers, times e^(i angle).
    """
    angle = torch.outer(offset + torch.arange(x.shape[1]).double(),
                        base ** (-torch.arange(0, dims, 2) / dims))
    turn = torch.polar(torch.ones_like(angle), angle)[:, None, :]
    head, rest = x[..., :dims], x[..., dims:]
    if interleaved:
        pairs = head.unflatten(-1, (dims // 2, 2))
    else:
        pairs = head.unflatten(-1, (2, dims // 2)).transpose(-1, -2)
    pairs = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    if not interleaved:
        pairs = pairs.transpose(-1, -2)
    return torch.cat([pairs.flatten(-2), rest], -1)


def rotary_attention():
    f = File("rotary_attention.txt")
    b, t, c, h = 2, 4, 12, 2
    layer = randomise(nn.MultiheadAttention(c, h, batch_first=True))
    f.put_parameters("parameter.", layer)
    for case, dims, interleaved, base in (("halves", 6, False, 10000.0),
                                          ("interleaved", 4, True, 100.0)):
        x = leaf(b, t, c)
        q, k, v = (y.unflatten(-1, (h, c // h)) for y in
                   nn.functional.linear(x, layer.in_proj_weight,
                                        layer.in_proj_bias).chunk(3, -1))
        q = rotate(q, dims, interleaved, base, 0)
        k = rotate(k, dims, interleaved, base, 0)
        out = nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
            is_causal=True)
        out = layer.out_proj(out.transpose(1, 2).flatten(2))
        f.put_case(case + ".", {"x": x}, layer, out)


def t5_buckets(distance, bidirectional, n_buckets, max_distance):
    """Raffel et al. 2020: half the buckets for one distance each, the rest for
    spans that grow by a factor, the last for all that is farther.

    distance is key minus query. Logarithms in float32, as in T5.
    """
    bucket = np.zeros_like(distance)
    if bidirectional:
        n_buckets //= 2
        bucket = np.where(distance > 0, n_buckets, 0)
        far = np.abs(distance)
    else:
        far = np.maximum(-distance, 0)
    exact = n_buckets // 2
    with np.errstate(divide="ignore"):
        log = np.log((far / exact).astype(np.float32))
    log = log / np.float32(math.log(max_distance / exact))
    log = np.where(far == 0, 0, log)
    wide = exact + (log * np.float32(n_buckets - exact)).astype(np.int64)
    return bucket + np.where(far < exact, far,
                             np.minimum(wide, n_buckets - 1))


def alibi_slopes(n_heads):
    """Press et al. 2022: 2^(-8/n), 2^(-16/n), ... for a power of two n; for
    another one, those of the power below, then every second one of twice that.
    """
    def of_power(n):
        return [2 ** (-8 * (i + 1) / n) for i in range(n)]
    power = 2 ** int(math.log2(n_heads))
    return np.array(of_power(power) +
                    of_power(2 * power)[0::2][:n_heads - power])


def attention_biases():
    f = File("attention_biases.txt")
    distance = np.arange(-300, 301)
    for name, settings in (("encoder", (True, 32, 128)),
                           ("decoder", (False, 32, 128)),
                           ("encoder_odd", (True, 14, 50)),
                           ("decoder_odd", (False, 9, 20))):
        f.put("buckets." + name,
              torch.tensor(t5_buckets(distance, *settings)).double())
    for n_heads in (1, 2, 3, 4, 6, 8, 12, 16, 20):
        f.put("slopes.%d" % n_heads, torch.tensor(alibi_slopes(n_heads)))


def multi_head_attention():
    f = File("multi_head_attention.txt")
    b, tq, tk, c, h = 2, 4, 5, 6, 2
    layer = randomise(nn.MultiheadAttention(c, h, batch_first=True))
    f.put_parameters("parameter.", layer)
    key_mask = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1]], dtype=torch.bool)
    memory_mask = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 0, 1, 0]],
                               dtype=torch.bool)
    causal = torch.ones(tq, tq, dtype=torch.bool).tril()
    allowed = torch.tensor([[1, 0, 1, 0], [0, 1, 1, 1],
                            [1, 1, 0, 0], [0, 0, 0, 1]], dtype=torch.bool)
    bias = torch.randn(tq, tq)

    def case(name, memory=None, key_mask=None, mask=None, bias=None):
        inputs = {"x": leaf(b, tq, c)}
        if memory:
            inputs["memory"] = leaf(b, tk, c)
        kv = inputs.get("memory", inputs["x"])
        masks = {}
        if key_mask is not None:
            f.put(name + ".key_mask", key_mask)
            # One kind for both masks, as PyTorch asks.
            masks["key_padding_mask"] = ~key_mask if bias is None else \
                torch.zeros(key_mask.shape).masked_fill(~key_mask, -math.inf)
        if mask is not None:
            f.put(name + ".mask", mask)
            masks["attn_mask"] = ~mask
        if bias is not None:
            f.put(name + ".bias", bias)
            masks["attn_mask"] = bias
        out, weights = layer(inputs["x"], kv, kv, average_attn_weights=False,
                             **masks)
        f.put(name + ".weights", weights)
        f.put_case(name + ".", inputs, layer, out)

    case("self")
    case("self_key_mask", key_mask=key_mask)
    case("self_causal", mask=causal)
    case("self_mask", mask=allowed)
    case("self_bias_key_mask", bias=bias, key_mask=key_mask)
    case("cross", memory=True)
    case("cross_key_mask", memory=True, key_mask=memory_mask)


def encoder_layer():
    f = File("encoder_layer.txt")
    c, h, hidden = 6, 2, 9
    key_mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)
    f.put("key_mask", key_mask)
    values = None
    for norm in "post", "pre":
        for activation in "relu", "gelu":
            layer = randomise(nn.TransformerEncoderLayer(
                c, h, hidden, dropout=0.0, activation=activation,
                batch_first=True, norm_first=norm == "pre"), 0.3)
            if values is None:
                values = layer.state_dict()
                f.put_parameters("parameter.", layer)
            layer.load_state_dict(values)
            x = leaf(2, 4, c)
            out = layer(x, src_key_padding_mask=~key_mask)
            f.put_case("%s_%s." % (norm, activation), {"x": x}, layer, out)


# True where a token stands.
TARGET_MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]], dtype=torch.bool)
MEMORY_MASK = torch.tensor([[1, 1, 0, 1, 1], [1, 1, 1, 0, 0]],
                           dtype=torch.bool)


def decoder_layer():
    f = File("decoder_layer.txt")
    c, h, hidden = 6, 2, 9
    f.put("key_mask", TARGET_MASK)
    f.put("memory_key_mask", MEMORY_MASK)
    hidden_pairs = ~torch.ones(4, 4, dtype=torch.bool).tril()
    values = None
    for norm in "post", "pre":
        layer = randomise(nn.TransformerDecoderLayer(
            c, h, hidden, dropout=0.0, activation="gelu",
            batch_first=True, norm_first=norm == "pre"), 0.3)
        if values is None:
            values = layer.state_dict()
            f.put_parameters("parameter.", layer)
        layer.load_state_dict(values)
        inputs = {"x": leaf(2, 4, c), "memory": leaf(2, 5, c)}
        out = layer(inputs["x"], inputs["memory"], tgt_mask=hidden_pairs,
                    tgt_key_padding_mask=~TARGET_MASK,
                    memory_key_padding_mask=~MEMORY_MASK)
        f.put_case(norm + ".", inputs, layer, out)
        out = layer(inputs["x"], inputs["memory"])
        f.put_case(norm + "_open.", inputs, layer, out)


def transformer():
    f = File("transformer.txt")
    c, h, hidden = 4, 2, 6
    f.put("key_mask", TARGET_MASK)
    f.put("memory_key_mask", MEMORY_MASK)
    hidden_pairs = ~torch.ones(4, 4, dtype=torch.bool).tril()
    values = None
    for norm in "post", "pre":
        model = randomise(nn.Transformer(
            c, h, 1, 2, hidden, dropout=0.0, batch_first=True,
            norm_first=norm == "pre"), 0.3)
        if values is None:
            values = model.state_dict()
            f.put_parameters("parameter.", model)
        model.load_state_dict(values)
        inputs = {"source": leaf(2, 5, c), "target": leaf(2, 4, c)}
        out = model(inputs["source"], inputs["target"],
                    tgt_mask=hidden_pairs,
                    src_key_padding_mask=~MEMORY_MASK,
                    tgt_key_padding_mask=~TARGET_MASK,
                    memory_key_padding_mask=~MEMORY_MASK)
        f.put_case(norm + ".", inputs, model, out)


class Tagger(nn.Module):
    """A class for each word of a sentence."""

    def __init__(self, n_words, n_classes, c, h, hidden, norm_first):
        super().__init__()
        self.words = nn.Embedding(n_words, c)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(c, h, hidden, dropout=0.0,
                                       activation="gelu", batch_first=True,
                                       norm_first=norm_first),
            2, norm=nn.LayerNorm(c) if norm_first else None,
            enable_nested_tensor=False)
        self.classes = nn.Linear(c, n_classes)
        self.c = c

    def forward(self, ids, key_mask):
        t = torch.arange(ids.shape[1])[:, None]
        angle = t / 10000 ** (torch.arange(0, self.c, 2) / self.c)
        pe = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        x = self.words(ids) * math.sqrt(self.c) + pe
        return self.classes(self.encoder(x, src_key_padding_mask=~key_mask))


def training_curve():
    """The loss before each of 20 steps of AdamW."""
    f = File("training_curve.txt")
    ids = torch.randint(7, (3, 4))
    targets = torch.randint(5, (3, 4))
    key_mask = torch.ones(3, 4, dtype=torch.bool)
    key_mask[1, 3:] = False
    targets[~key_mask] = -100
    f.put("ids", ids)
    f.put("targets", targets)
    f.put("key_mask", key_mask)
    for norm in "post", "pre":
        model = randomise(Tagger(7, 5, 8, 2, 12, norm == "pre"), 0.1)
        f.put_parameters(norm + ".parameter.", model)
        adamw = torch.optim.AdamW(model.parameters(), lr=0.01,
                                  weight_decay=0.1)
        losses = []
        for _ in range(20):
            loss = nn.functional.cross_entropy(
                model(ids, key_mask).flatten(0, 1), targets.flatten())
            losses.append(loss.detach())
            adamw.zero_grad()
            loss.backward()
            adamw.step()
        f.put(norm + ".losses", torch.stack(losses))


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    for make in (linear, layer_norm, norms, gated_mlp, multi_head_attention,
                 rotary_attention, attention_biases, encoder_layer,
                 training_curve, decoder_layer, transformer):
        torch.manual_seed(0)
        make()
