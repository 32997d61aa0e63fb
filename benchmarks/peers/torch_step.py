"""Times one training step of PyTorch; prints one line of JSON.

python torch_step.py --model=small --threads=2 --mode=compile
"""

import math

import torch
from torch import nn
import torch.nn.functional as F

import measure
import start


class Layer(nn.Module):
    def __init__(self, m, attention):
        super().__init__()
        c = m.width
        self.m, self.attention = m, attention
        self.qkv = nn.Linear(c, 3 * c)
        self.proj = nn.Linear(c, c)
        self.fc = nn.Linear(c, 4 * c)
        self.fc2 = nn.Linear(4 * c, c)
        self.norm1 = nn.LayerNorm(c)
        self.norm2 = nn.LayerNorm(c)
        if m.gpt:
            later = torch.ones(m.length, m.length, dtype=torch.bool).triu(1)
            self.register_buffer("later", later, persistent=False)

    def attend(self, x):
        m = self.m
        qkv = self.qkv(x).view(m.batch, m.length, 3, m.heads, m.width // m.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        if self.attention == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=m.gpt)
        else:
            s = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(m.width // m.heads))
            if m.gpt:
                s = s.masked_fill(self.later, float("-inf"))
            y = F.softmax(s, -1) @ v
        return self.proj(y.transpose(1, 2).reshape(m.batch, m.length, m.width))

    def forward(self, x):
        if self.m.gpt:
            x = x + self.attend(self.norm1(x))
            return x + self.fc2(F.gelu(self.fc(self.norm2(x)), approximate="tanh"))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.fc2(F.relu(self.fc(x))))


class Transformer(nn.Module):
    def __init__(self, m, attention):
        super().__init__()
        self.wte = nn.Embedding(m.vocabulary, m.width)
        self.wpe = nn.Embedding(m.length, m.width)
        self.layers = nn.ModuleList(Layer(m, attention) for _ in range(m.layers))
        if m.gpt:
            self.norm = nn.LayerNorm(m.width)
        else:
            self.out = nn.Linear(m.width, m.vocabulary)
        self.gpt = m.gpt
        self.register_buffer("places", torch.arange(m.length), persistent=False)

    def forward(self, x, y):
        h = self.wte(x) + self.wpe(self.places)
        for layer in self.layers:
            h = layer(h)
        logits = F.linear(self.norm(h), self.wte.weight) if self.gpt else self.out(h)
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def main():
    parser = measure.flags(__doc__)
    parser.add_argument("--mode", choices=["eager", "compile", "autotune"], default="eager")
    parser.add_argument("--attention", choices=["manual", "sdpa"], default="sdpa")
    parser.add_argument("--optimizer", choices=["foreach", "fused"], default="fused")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    m = start.MODELS[args.model]
    model = Transformer(m, args.attention)
    model.load_state_dict({n: torch.from_numpy(w) for n, w in m.weights().items()})
    x, y = [torch.from_numpy(a) for a in m.data()]
    kind = {args.optimizer: True}
    if m.gpt:
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, **kind
        )
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **kind)
    run = model
    if args.mode != "eager":
        torch._inductor.config.freezing = args.forward  # weights as constants
        mode = "default" if args.mode == "compile" else "max-autotune-no-cudagraphs"
        run = torch.compile(model, fullgraph=True, dynamic=False, mode=mode)

    def train():
        loss = run(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss

    def forward():
        with torch.inference_mode():
            return run(x, y)

    setting = f"{args.mode} {args.attention}"
    if not args.forward:
        setting += f" {args.optimizer}"
    measure.report("pytorch", setting, args, forward if args.forward else train)


main()
