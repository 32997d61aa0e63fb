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
    for make in (linear, layer_norm, multi_head_attention, encoder_layer,
                 training_curve, decoder_layer, transformer):
        torch.manual_seed(0)
        make()
