"""Whether a torch.fx graph becomes the nodes that it is, and nothing that its JSON cannot express.
Skipped where torch is not installed.

    python -m pytest graphs/examples

With CALIBRATE, the path of the program, and CALIBRATION, the path of a calibration,
`calibrate partition` has to take each of the larger models too."""

import json
import os
import subprocess

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import torch.nn as nn
import torch.nn.functional as F
from fx_models import IMAGES, MODELS, Module, parameter
from fx_to_json import fx_to_json
from torch.fx.passes.shape_prop import ShapeProp

ROWS = (16, 64)


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


@pytest.mark.parametrize(("keywords", "op", "attributes"), [
    ({}, "Attention", {}),
    ({"scale": 3.0}, "Attention", {"scale": 3.0}),
    ({"is_causal": True}, "Attention", {"is_causal": 1}),
    ({"dropout_p": 0.1}, f"fx.{ATTENTION}", {}),
])
def test_keywords_of_attention(keywords, op, attributes):
    def attend(module, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, **keywords)

    expected = (op, "q k v", *filter(None, [attributes]))
    assert nodes_of(attend, *[(2, 4, 8, 16)] * 3) == [expected]


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
