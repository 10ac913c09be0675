"""Models of many kinds, as the exporter of torch.fx graphs is tested with."""

import torch
import torch.nn as nn
import torch.nn.functional as F

IMAGES, SEQUENCE, IDS = (1, 8, 17, 17), (2, 8, 64), torch.zeros(2, 8, dtype=torch.int64)


def Module(forward, **own):
    """A module that computes this with some modules and parameters."""
    module = type("Module", (nn.Module,), {"forward": forward})()
    for name, value in own.items():
        setattr(module, name, value)
    return module


def parameter(*shape):
    return nn.Parameter(torch.ones(*shape))


def linear_and_norm(**own):
    return {"q": nn.Linear(64, 64), "k": nn.Linear(64, 64), "v": nn.Linear(64, 64),
            "o": nn.Linear(64, 64), "n": nn.LayerNorm(64), "up": nn.Linear(64, 256),
            "down": nn.Linear(256, 64), **own}


def split(x, heads=4):
    return x.view(x.size(0), x.size(1), heads, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).contiguous().flatten(2)


def encoder_layer(m, x):
    q, k, v = split(m.q(x)), split(m.k(x)), split(m.v(x))
    scores = torch.softmax(q @ k.transpose(-2, -1) / 4.0, dim=-1)
    x = m.n(x + m.o(joined(scores @ v)))
    return m.n(x + m.down(F.gelu(m.up(x))))


def gpt_block(m, x):
    y = m.n(x)
    attended = F.scaled_dot_product_attention(
        split(m.q(y)), split(m.k(y)), split(m.v(y)), is_causal=True)
    x = x + m.o(joined(attended))
    return x + m.down(F.gelu(m.up(m.n(x)), approximate="tanh"))


def rms_norm(m, x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * m.weight


def rotated(x):
    one, other = x.chunk(2, dim=-1)
    return torch.cat((-other, one), dim=-1)


def llama_block(m, x, cos, sin):
    y = rms_norm(m, x)
    q, k = split(m.q(y)), split(m.k2(y), 2)
    q, k = q * cos + rotated(q) * sin, k * cos + rotated(k) * sin
    attended = F.scaled_dot_product_attention(q, k, split(m.v2(y), 2), enable_gqa=True)
    x = x + m.o(joined(attended))
    y = F.rms_norm(x, (64,), weight=m.weight, eps=1e-6)
    return x + m.down(F.silu(m.gate(y)) * m.up(y))


def res_block(m, x):
    y = m.b2(m.c2(m.b1(m.c1(x)).relu()))
    return F.relu(y + m.short(x), inplace=True)


def mobile_block(m, x):
    y = F.hardswish(m.b1(m.expand(x)))
    y = F.hardswish(m.b2(m.depthwise(y)))
    gate = F.hardsigmoid(m.squeeze(F.adaptive_avg_pool2d(y, 1)))
    return x + m.b3(m.project(y * gate))


def u_net(m, x):
    down = torch.relu(m.a(x))
    low = torch.relu(m.b(F.max_pool2d(down, 2)))
    up = F.interpolate(m.transposed(low), size=down.shape[2:])
    return m.c(torch.cat([down, up], dim=1))


def embedding(m, ids):
    x = m.e(ids) + m.p(torch.arange(ids.shape[1], device=ids.device))
    return F.linear(m.n(x), m.e.weight)


def masked(m, x, mask):
    scores = (m.q(x) @ m.k(x).transpose(-2, -1)).masked_fill(mask == 0, float("-inf"))
    return torch.where(mask > 0, scores.softmax(-1), 0.0)


def parts(m, x):
    a, b, c = m.up(x).split([64, 64, 128], dim=-1)
    return a.sigmoid() * b, torch.stack(c.unbind(0)).tanh()


def shapes(m, x):
    batch, rows, columns = x.shape
    y = m.q(x).reshape(batch * rows, columns).unsqueeze(0).squeeze(0)
    return y.view(batch, rows, -1).flatten(start_dim=1) * (columns ** -0.5)


def einsum(m, x):
    q, k = split(m.q(x)), split(m.k(x))
    return torch.einsum("bhid,bhjd->bhij", q, k).softmax(dim=-1)


def in_place(m, x):
    y = m.q(x)
    y.add_(x).mul_(0.5)
    y.relu_()
    return m.o(y).sub_(y)


def keywords(m, x):
    y = F.linear(input=x, weight=m.q.weight, bias=m.q.bias)
    y = F.layer_norm(input=y, normalized_shape=(64,), bias=m.n.bias, weight=m.n.weight)
    return F.dropout(input=torch.add(input=y, other=x), p=0.5, training=False)


def methods(m, x):
    y = m.q(x).add(x).mul(2.0).div(3.0).matmul(m.o.weight.t())
    return y.clamp(min=0.0).sum(dim=-1, keepdim=True).expand_as(x).contiguous()


def mixture(m, x):
    weights, chosen = torch.topk(m.q(x).softmax(-1), 2)
    return (m.k(x) * weights[..., :1] + m.v(x) * weights[..., 1:]) * (chosen.sum() > 0)


def gated_unit(m, x):
    return F.glu(m.up(x), dim=-1) * torch.sigmoid(torch.lerp(x, x.roll(1, 1), 0.5).repeat(1, 1, 2))


def recurrent(m, x):
    y, (hidden, cell) = m.lstm(x)
    return y + m.attend(y, y, y, need_weights=False)[0], hidden + cell


def pooled(m, x):
    y = m.c(F.pad(x, (1, 1, 1, 1)))
    y = torch.cat([F.avg_pool2d(y, 3, 1, 1), F.max_pool2d(y, 3, 1, padding=1)], 1)
    return torch.flatten(y.mean((2, 3), keepdim=True), 1).var(dim=1)


def layers(m, x):
    return F.softplus(m.drop(m.norm(m.encoder(x))))


def convolution(of, to, *more, **options):
    return nn.Conv2d(of, to, *more, bias=False, **options)


# What each computes, with its modules, and the shapes of its inputs or the inputs themselves.
MODELS = {
    encoder_layer: (linear_and_norm(), SEQUENCE),
    gpt_block: (linear_and_norm(), SEQUENCE),
    llama_block: (linear_and_norm(
        k2=nn.Linear(64, 32), v2=nn.Linear(64, 32), gate=nn.Linear(64, 256, bias=False),
        weight=parameter(64)), SEQUENCE, (8, 16), (8, 16)),
    res_block: ({"c1": convolution(8, 16, 3, 2, 1), "b1": nn.BatchNorm2d(16),
                 "c2": convolution(16, 16, 3, padding="same"), "b2": nn.BatchNorm2d(16),
                 "short": nn.Sequential(convolution(8, 16, 1, 2), nn.BatchNorm2d(16))}, IMAGES),
    mobile_block: ({"expand": convolution(8, 32, 1), "b1": nn.BatchNorm2d(32),
                    "depthwise": convolution(32, 32, 3, padding=1, groups=32),
                    "b2": nn.BatchNorm2d(32), "squeeze": nn.Conv2d(32, 32, 1),
                    "project": convolution(32, 8, 1), "b3": nn.BatchNorm2d(8)}, IMAGES),
    u_net: ({"a": nn.Conv2d(8, 8, 3, padding=1), "b": nn.Conv2d(8, 16, 3, padding=1),
             "transposed": nn.ConvTranspose2d(16, 8, 2, 2), "c": nn.Conv2d(16, 4, 1)}, IMAGES),
    embedding: ({"e": nn.Embedding(100, 64), "p": nn.Embedding(8, 64), "n": nn.LayerNorm(64)},
                IDS),
    masked: (linear_and_norm(), SEQUENCE, (8, 8)),
    parts: (linear_and_norm(), SEQUENCE),
    shapes: (linear_and_norm(), SEQUENCE),
    einsum: (linear_and_norm(), SEQUENCE),
    in_place: (linear_and_norm(), SEQUENCE),
    keywords: (linear_and_norm(), SEQUENCE),
    methods: (linear_and_norm(), SEQUENCE),
    mixture: (linear_and_norm(), SEQUENCE),
    gated_unit: (linear_and_norm(up=nn.Linear(64, 256)), SEQUENCE),
    recurrent: ({"lstm": nn.LSTM(64, 64, batch_first=True),
                 "attend": nn.MultiheadAttention(64, 4, batch_first=True)}, SEQUENCE),
    pooled: ({"c": nn.Conv2d(8, 8, 3)}, IMAGES),
    layers: ({"encoder": nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
              "norm": nn.GroupNorm(4, 8), "drop": nn.Dropout()}, SEQUENCE),
}
