"""Whether a torch.fx graph becomes the nodes that it is, and nothing that its JSON cannot express.
Skipped where torch is not installed. With CALIBRATE, the path of the program, and CALIBRATION, the
path of a calibration, `calibrate partition` has to take each of the larger models too."""

import json
import os
import subprocess

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import torch.nn as nn
import torch.nn.functional as F
from fx_to_json import fx_to_json
from torch.fx.passes.shape_prop import ShapeProp

ROWS, IMAGES = (16, 64), (1, 8, 17, 17)


def Module(forward, **own):
    """A module that computes this with some modules and parameters."""
    module = type("Module", (nn.Module,), {"forward": forward})()
    for name, value in own.items():
        setattr(module, name, value)
    return module


def parameter(*shape):
    return nn.Parameter(torch.ones(*shape))


def traced(module, *inputs):
    inputs = [torch.ones(of) if isinstance(of, tuple) else of for of in inputs]
    module = torch.fx.symbolic_trace(module)
    with torch.no_grad():
        ShapeProp(module).propagate(*inputs)
    return module


def exported(module, *inputs):
    module = traced(module.eval(), *inputs)
    file = fx_to_json(module)
    check(file)
    check_reads(module, file)
    return file


def check(file):
    """Whether it is the JSON of a graph."""
    json.dumps(file, allow_nan=False)
    written = [name for node in file["nodes"] for name in node["outputs"]]
    given = [tensor["name"] for key in ("inputs", "constants") for tensor in file[key]]
    assert len({*written, *given}) == len(written) + len(given)
    for node in file["nodes"]:
        assert {name for name in node["inputs"] if name} <= {*written, *given}, node
        for value in node["attributes"].values():
            assert isinstance(value, (int, float, str)) or all(type(one) is int for one in value)
    assert {*file["outputs"]} <= {*written, *given}
    for tensor in file["inputs"] + file["tensors"]:
        assert all(size > 0 for size in tensor["shape"])


IN_PLACE = ("add_", "mul_", "relu_", "sub_")


def check_reads(module, file):
    """Whether each node reads every tensor that its call reads, unless that was overwritten."""
    nodes = {node["name"]: node for node in file["nodes"]}
    attributes = {}
    overwrites = {node.args[0] for node in module.graph.nodes if node.target in IN_PLACE}
    for node in module.graph.nodes:
        for read in node.all_input_nodes:
            read = attributes.setdefault(read.target, read) if read.op == "get_attr" else read
            is_tensor = "tensor_meta" in read.meta and node.name in nodes
            if is_tensor and read not in overwrites:
                assert read.name in nodes[node.name]["inputs"], (node, read)


def nodes_of(function, *inputs, **own):
    """Its nodes: op, inputs, and attributes if it has any."""
    inputs = inputs or (ROWS,)
    file = exported(Module(function, **own), *inputs)
    return [(node["op"], " ".join(node["inputs"]), *filter(None, [node["attributes"]]))
            for node in file["nodes"]]


LAYER = {"l": nn.Linear(64, 64)}
L = ("Linear", "x l.weight l.bias")


def first(module, x):
    return module.l(x)


@pytest.mark.parametrize(("name", "function"), [
    ("sub", lambda relu, y: relu - y),
    ("cat", lambda relu, y: torch.cat([relu, y], 1)),
    ("cat", lambda relu, y: torch.cat(tensors=(relu, y), dim=1)),
    ("maximum", lambda relu, y: torch.maximum(relu, y)),
    ("maximum", lambda relu, y: torch.maximum(relu, other=y)),
    ("einsum", lambda relu, y: torch.einsum("ij,ij->ij", relu, y)),
    ("max", lambda relu, y: torch.max(relu, y)),
    ("add", lambda relu, y: torch.add(relu, y, alpha=2)),
    ("div", lambda relu, y: torch.div(relu, y, rounding_mode="floor")),
    ("where", lambda relu, y: torch.where(relu, y, 0.0)),
])
def test_every_tensor_is_read(name, function):
    def forward(module, x):
        y = module.l(x)
        relu = torch.relu(y) if name != "where" else y > 0
        return function(relu, y)

    found = nodes_of(forward, **LAYER)
    earlier = "gt" if name == "where" else "relu"
    assert found[0] == L and found[2] == (f"fx.{name}", f"{earlier} l")


def test_what_depends_on_an_input_is_no_constant():
    def reversed_sub(module, x):
        return (1 - torch.sigmoid(module.l(x))) * x

    assert nodes_of(reversed_sub, **LAYER) == [
        L, ("sigmoid", "l"), ("fx.sub", "sigmoid"), ("Mul", "sub x")]

    def sum_of_elements(module, x):
        return module.l(x) * x.sum()

    assert nodes_of(sum_of_elements, **LAYER) == [L, ("fx.sum", "x"), ("Mul", "l sum_1")]

    def element(module, x):
        return module.l(x) * x.sum().item()

    assert nodes_of(element, **LAYER)[2:] == [("fx.item", "sum_1"), ("Mul", "l item")]

    def number(module, x, factor):
        return module.l(x) * factor

    file = exported(Module(number, **LAYER), ROWS, 2.0)
    assert [tensor["shape"] for tensor in file["inputs"]] == [[16, 64], []]


def test_gemms():
    weight, bias = parameter(64, 32), parameter(32)

    def addmm(module, x):
        return torch.addmm(module.b, x, module.w)

    assert nodes_of(addmm, w=weight, b=bias) == [("Gemm", "x w b")]

    def scaled(module, x):
        return torch.addmm(module.b, x, module.w, beta=2)

    assert nodes_of(scaled, w=weight, b=bias) == [("fx.addmm", "b x w")]

    def keyword(module, x):
        return F.linear(x, module.w, bias=module.b)

    assert nodes_of(keyword, w=parameter(32, 64), b=bias) == [("Linear", "x w b")]

    def vector(module, x):
        return F.linear(x, module.w)

    assert nodes_of(vector, w=parameter(64)) == [("fx.linear", "x w")]


ATTENTION = "scaled_dot_product_attention"


@pytest.mark.parametrize(("keywords", "op"), [
    ({}, "Attention"),
    ({"scale": 0.25}, "Attention"),
    ({"scale": 3.0}, f"fx.{ATTENTION}"),
    ({"is_causal": True}, f"fx.{ATTENTION}"),
    ({"dropout_p": 0.1}, f"fx.{ATTENTION}"),
])
def test_keywords_of_attention(keywords, op):
    def attend(module, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, **keywords)

    assert nodes_of(attend, *[(2, 4, 8, 16)] * 3) == [(op, "q k v")]


def test_operands_of_attention():
    def masked(module, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    heads = [(2, 4, 8, 16)] * 3
    for mask in (torch.zeros(8, 8), torch.ones(8, 8, dtype=torch.bool)):
        assert nodes_of(masked, *heads, mask) == [("Attention", "q k v mask")]

    def grouped(module, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    assert nodes_of(grouped, heads[0], *[(2, 2, 8, 16)] * 2) == [("Attention", "q k v")]
    # Queries that are broadcast are not those of the op.
    shared = nodes_of(grouped, (1, 4, 8, 16), *heads[:2])
    assert shared == [(f"fx.{ATTENTION}", "q k v")]


def conv(**more):
    return {"group": 1, "strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1]} | more


@pytest.mark.parametrize(("module", "expected"), [
    (nn.LeakyReLU(0.2), ("LeakyRelu", "x", {"alpha": 0.2})),
    (nn.ReLU6(), ("ReLU6", "x")),
    (nn.Conv2d(8, 4, 3, stride=2, padding=(1, 2)),
     ("Conv", "x m.weight m.bias", conv(strides=[2, 2], pads=[1, 2, 1, 2]))),
    (nn.Conv2d(8, 4, 4, padding="same", dilation=(1, 2)),
     ("Conv", "x m.weight m.bias", conv(pads=[1, 3, 2, 3], dilations=[1, 2]))),
    (nn.Conv2d(8, 4, 3, padding="valid"), ("Conv", "x m.weight m.bias", conv())),
    (nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular"), ("fx.Conv2d", "x m.weight m.bias")),
    (nn.ConvTranspose2d(8, 8, 3), ("fx.ConvTranspose2d", "x m.weight m.bias")),
    (nn.MaxPool2d(2, ceil_mode=True),
     ("MaxPool", "x", {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0] * 4,
                       "dilations": [1, 1], "ceil_mode": 1})),
    (nn.BatchNorm2d(8, affine=False),
     ("BatchNormalization", "x   m.running_mean m.running_var")),
    (nn.BatchNorm2d(8, track_running_stats=False), ("fx.BatchNorm2d", "x m.weight m.bias")),
    (nn.LayerNorm([17, 17]), ("LayerNormalization", "x m.weight m.bias", {"axis": -2})),
    (nn.RMSNorm(17), ("RMSNormalization", "x m.weight", {"axis": -1})),
    (nn.Softmax(1), ("Softmax", "x", {"axis": 1})),
    (nn.Flatten(), ("Reshape", "x")),
    (nn.GELU("tanh"), ("Gelu", "x", {"approximate": "tanh"})),
    (nn.PReLU(), ("fx.PReLU", "x m.weight")),
])
def test_modules(module, expected):
    assert nodes_of(lambda own, x: own.m(x), IMAGES, m=module) == [expected]


def test_a_module_with_a_hook_is_opaque():
    layer = nn.Linear(64, 64)
    layer.register_forward_hook(lambda module, inputs, output: output + inputs[0])
    assert nodes_of(first, l=layer) == [("fx.Linear", "x l.weight l.bias")]


def test_dropout_is_what_its_mode_says():
    def forward(module, x):
        return module.d(F.dropout(x, 0.1, training=False))

    module = Module(forward, d=nn.Dropout(0.2))
    assert [node["op"] for node in exported(module, ROWS)["nodes"]] == ["Identity"] * 2
    file = fx_to_json(traced(module.train(), ROWS))
    assert file["nodes"][1]["inputs"] == ["dropout", "d.ratio", "d.training"]
    assert [constant["values"] for constant in file["constants"]] == [[0.2], [1.0]]


@pytest.mark.parametrize(("function", "expected"), [
    (lambda x: torch.add(x, x), ("Add", "x x")),
    (lambda x: torch.mul(input=x, other=x), ("Mul", "x x")),
    (lambda x: torch.div(x, 2.0), ("Div", "x div.other")),
    (lambda x: 2.0 / x, ("Div", "truediv.input x")),
    (lambda x: x * float("inf"), ("Mul", "x mul.other")),
    (lambda x: x * True, ("Mul", "x mul.other")),
    (lambda x: x * 1j, ("fx.mul", "x")),
    (lambda x: torch.sub(x, x), ("fx.sub", "x")),
    (lambda x: torch.pow(x, 2), ("fx.pow", "x")),
    (lambda x: torch.exp(x), ("fx.exp", "x")),
    (lambda x: torch.sqrt(x), ("fx.sqrt", "x")),
    (lambda x: torch.clamp(x, 0, 6), ("fx.clamp", "x")),
    (lambda x: x.masked_fill(x > 0, -1.0), ("fx.masked_fill", "x gt")),
    (lambda x: x.softmax(-1), ("Softmax", "x", {"axis": -1})),
    (lambda x: torch.softmax(x, 1), ("Softmax", "x", {"axis": 1})),
    (lambda x: F.softmax(x, dim=-1, dtype=torch.float64), ("fx.softmax", "x")),
    (lambda x: F.softmax(x), ("fx.softmax", "x")),
    (lambda x: x.transpose(dim0=0, dim1=-1), ("Transpose", "x", {"perm": [1, 0]})),
    (lambda x: torch.transpose(x, 0, 1), ("Transpose", "x", {"perm": [1, 0]})),
    (lambda x: x.permute(dims=(1, 0)), ("Transpose", "x", {"perm": [1, 0]})),
    (lambda x: x.permute(-1, 0), ("Transpose", "x", {"perm": [1, 0]})),
    (lambda x: torch.permute(x, (1, 0)), ("Transpose", "x", {"perm": [1, 0]})),
    (lambda x: x.t(), ("Transpose", "x", {"perm": [1, 0]})),
    (lambda x: x.view(4, -1), ("Reshape", "x")),
    (lambda x: x.view(torch.int32), ("fx.view", "x")),
    (lambda x: x.unsqueeze(dim=0), ("Reshape", "x")),
    (lambda x: x.view(x.shape[0], x.size(1)), ("Reshape", "x")),
    (lambda x: x.half(), ("fx.half", "x")),
    (lambda x: F.leaky_relu(x, 0.2), ("LeakyRelu", "x", {"alpha": 0.2})),
    (lambda x: F.layer_norm(x, x.shape[1:]), ("LayerNormalization", "x", {"axis": -1})),
    (lambda x: torch.ops.aten.relu.default(x), ("relu.default", "x")),
    (lambda x: F.max_pool2d(x[None, None], 2, return_indices=True)[0],
     ("fx.getitem", "max_pool2d_with_indices")),
])
def test_calls(function, expected):
    assert nodes_of(lambda module, x: function(x))[-1] == expected


def test_numbers_of_shapes_are_known():
    file = exported(Module(lambda module, x: x * (x.shape[1] // 2)), ROWS)
    assert file["constants"][0]["values"] == [32.0]
    file = exported(Module(lambda module, x: (x, x.shape[0])), ROWS)
    assert file["outputs"] == ["x"]


def relu(x):
    return x


torch.fx.wrap("relu")


def test_a_function_with_a_known_name_is_another_one():
    assert nodes_of(lambda module, x: relu(x)) == [("fx.relu", "x")]


def test_what_is_overwritten_is_read_as_it_is_then():
    def overwrite(module, x):
        y = module.l(x)
        y.relu_()
        z = F.relu(y, inplace=True)
        y.add_(x)
        return y + z

    file = fx_to_json(traced(Module(overwrite, **LAYER), ROWS))
    assert [(node["op"], *node["inputs"]) for node in file["nodes"]][1:] == [
        ("relu_", "l"), ("relu", "relu_"), ("Add", "relu", "x"), ("Add", "add_", "add_")]


def test_what_is_overwritten_is_no_constant():
    # A buffer would be fetched while the graph is traced.
    cache = {"cache": nn.Parameter(torch.zeros(16, 64), requires_grad=False)}

    def whole(module, x):
        return module.cache.copy_(x) + module.cache

    def part(module, x):
        return module.cache[:, :8].add_(x[:, :8]) + module.cache[:, 8:16]

    def out(module, x):
        return torch.mul(x, x, out=module.cache) + module.cache

    for function in (whole, part, out):
        file = fx_to_json(traced(Module(function, **cache), ROWS))
        check(file)
        assert [tensor["name"] for tensor in file["inputs"]] == ["x", "cache"]
        assert not file["constants"]
    assert file["nodes"][-1]["inputs"] == ["mul", "mul"]


def test_what_is_random_is_not_computed_ahead():
    assert nodes_of(lambda module, x: x + torch.randn_like(module.w), w=parameter(16, 64)) == [
        ("RandomNormalLike", "w"), ("Add", "x randn_like")]


def test_dtypes_that_differ_make_no_op():
    def mixed(module, x):
        return x + x.half()

    assert nodes_of(mixed)[1] == ("fx.add", "x half")


def test_inputs_that_are_no_tensor():
    def pick(module, pair, mask):
        return pair[0] + pair[1] if mask is None else pair[0]

    module = torch.fx.symbolic_trace(Module(pick), concrete_args={"mask": None})
    ShapeProp(module).propagate([torch.ones(4), torch.ones(4)], None)
    file = fx_to_json(module)
    check(file)
    assert [node["op"] for node in file["nodes"]][-1] == "Add"
    nothing = exported(Module(lambda module, x, cache: torch.cat([cache, x])), ROWS, (0, 64))
    assert [tensor["name"] for tensor in nothing["constants"]] == ["cache"]


def test_a_graph_without_shapes_is_an_error():
    with pytest.raises(ValueError, match="ShapeProp"):
        fx_to_json(torch.fx.symbolic_trace(nn.ReLU()))


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


SEQUENCE, IDS = (2, 8, 64), torch.zeros(2, 8, dtype=torch.int64)
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


def is_taken(file, folder):
    """Whether `calibrate partition` takes a file, where the environment names the program."""
    program, calibration = os.environ.get("CALIBRATE"), os.environ.get("CALIBRATION")
    if not (program and calibration):
        return True
    path = folder / "graph.json"
    path.write_text(json.dumps(file))
    command = [program, "partition", path, "--profile", calibration]
    ended = subprocess.run(command, capture_output=True, text=True)
    print(ended.stdout, ended.stderr)
    return ended.returncode == 0


@pytest.mark.parametrize("forward", MODELS, ids=lambda forward: forward.__name__)
def test_models(forward, tmp_path):
    own, *inputs = MODELS[forward]
    assert is_taken(exported(Module(forward, **own), *inputs), tmp_path)


def test_dropout_while_training(tmp_path):
    module = Module(lambda m, x: m.d(m.l(x)), d=nn.Dropout(0.1), **LAYER)
    assert is_taken(fx_to_json(traced(module.train(), ROWS)), tmp_path)
