"""Writes a torch.fx graph as the JSON that docs/graph-json.md describes.

    module = torch.fx.symbolic_trace(model.eval())
    torch.fx.passes.shape_prop.ShapeProp(module).propagate(example_input)
    json.dump(fx_to_json(module), open("model.json", "w"))

What OPS lacks, and a call that the JSON cannot express, becomes an opaque node: "fx." before
PyTorch's name, which no reader takes for an op, with every tensor that the call reads.
"""

import math
import operator

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.fx.passes.shape_prop import TensorMetadata

# Calls that read no element of a tensor, and where calls are defined that compute with numbers.
OF_SHAPES = {"getattr", "size", "dim", "numel", "nelement", "ndimension"}
OF_NUMBERS = {"_operator", "builtins", "math"}


def shape(tensor):
    return tuple((tensor.meta["tensor_meta"] if isinstance(tensor, Node) else tensor).shape)


def pair(value):
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * 2 if len(values) == 1 else values


# A rule takes what a call gives each parameter, and the description of its result. It returns the
# op, its inputs by name, and its attributes; or None for what the JSON cannot express. An op
# without a name keeps PyTorch's.


def inputs(of, names="input"):
    return {name: of[name] for name in names.split()}


def plain(op, names="input"):
    return lambda of, result: (op, inputs(of, names), {})


def unscaled(op, names):
    def rule(of, result):
        is_unscaled = of.get("beta") in (None, 1) and of["alpha"] in (None, 1)
        is_plain = is_unscaled and of.get("rounding_mode") is None
        return (op, inputs(of, names), {}) if is_plain else None
    return rule


def linear(of, result):
    is_matrix = len(shape(of["weight"])) == 2
    return ("Linear", inputs(of, "input weight bias"), {}) if is_matrix else None


def conv(of, result):
    if len(shape(of["input"])) != 4 or of["padding_mode"] not in (None, "zeros"):
        return None
    dilations, padding = pair(of["dilation"] or 1), of["padding"]
    if padding == "same":
        size = shape(of["weight"])[2:]
        total = [dilation * (side - 1) for dilation, side in zip(dilations, size)]
        pads = [both // 2 for both in total] + [both - both // 2 for both in total]
    else:
        pads = pair(0 if padding in (None, "valid") else padding) * 2
    return "Conv", inputs(of, "input weight bias"), {
        "group": of["groups"] or 1, "strides": pair(of["stride"] or 1),
        "pads": pads, "dilations": dilations}


def max_pool(of, result):
    if len(shape(of["input"])) != 4 or of["return_indices"]:
        return None
    size = pair(of["kernel_size"])
    return "MaxPool", inputs(of), {
        "kernel_shape": size, "strides": pair(of["stride"] or size),
        "pads": pair(of["padding"] or 0) * 2, "dilations": pair(of["dilation"] or 1),
        "ceil_mode": int(bool(of["ceil_mode"]))}


def attention(of, result):
    query, key, value = (shape(of[name]) for name in ("query", "key", "value"))
    # The op's batch and heads are those of its queries, where PyTorch would broadcast.
    fits = len(query) == 4 and query[:2] == result.shape[:2]
    fits = fits and key[:2] == value[:2] and key[0] == query[0]
    scale = of["scale"]
    if not fits or not isinstance(scale, (int, float, type(None))) or of["dropout_p"]:
        return None
    attributes = {"is_causal": 1} if of["is_causal"] else {}
    attributes |= {} if scale is None else {"scale": scale}
    return "Attention", inputs(of, "query key value attn_mask"), attributes


def softmax(of, result):
    is_along_one = isinstance(of["dim"], int)
    return ("Softmax", inputs(of), {"axis": of["dim"]}) if is_along_one else None


def gelu(of, result):
    return "Gelu", inputs(of), {"approximate": of["approximate"] or "none"}


def leaky_relu(of, result):
    slope = 0.01 if of["negative_slope"] is None else of["negative_slope"]
    return "LeakyRelu", inputs(of), {"alpha": slope}


def norm(op, names):
    def rule(of, result):
        sizes = of["normalized_shape"]
        is_known = isinstance(sizes, (tuple, list))
        return (op, inputs(of, names), {"axis": -len(sizes)}) if is_known else None
    return rule


def batch_norm(of, result):
    # A channel of a matrix is a column; of three dimensions the reader would take another one.
    if of["training"] or of["running_mean"] is None or len(result.shape) not in (2, 4):
        return None
    return "BatchNormalization", inputs(of, "input weight bias running_mean running_var"), {}


def dropout(of, result):
    if of["training"] not in (None, True):
        return "Identity", inputs(of), {}
    ratio = 0.5 if of["p"] is None else of["p"]
    return "Dropout", {"input": of["input"], "ratio": ratio, "training": True}, {}


def order(of, result):
    axes = list(range(len(result.shape)))
    if dims := of["dims"]:
        dims = dims[0] if isinstance(dims[0], (tuple, list)) else dims
        axes = [dim % len(axes) for dim in dims]
    elif of.get("dim0") is None:
        axes.reverse()
    elif axes:
        one, other = of["dim0"], of["dim1"]
        axes[one], axes[other] = axes[other], axes[one]
    return "Transpose", inputs(of), {"perm": axes}


TWO = "input other alpha rounding_mode"
# The parameters and the rule of PyTorch's functions, methods and modules, whose attributes have the
# names of parameters. A star takes all arguments that are left.
OPS = {
    **dict.fromkeys(["add", "iadd"], (TWO, unscaled("Add", "input other"))),
    **dict.fromkeys(["mul", "imul"], (TWO, unscaled("Mul", "input other"))),
    **dict.fromkeys(["div", "truediv", "itruediv"], (TWO, unscaled("Div", "input other"))),
    "matmul": ("input other", plain("MatMul", "input other")),
    **dict.fromkeys(["mm", "bmm"], ("input mat2", plain("MatMul", "input mat2"))),
    "addmm": ("input mat1 mat2 beta alpha", unscaled("Gemm", "mat1 mat2 input")),
    "linear": ("input weight bias", linear),
    "conv2d": ("input weight bias stride padding dilation groups padding_mode", conv),
    "maxpool2d": (
        "input kernel_size stride padding dilation ceil_mode return_indices", max_pool),
    "scaleddotproductattention": (
        "query key value attn_mask dropout_p is_causal scale enable_gqa", attention),
    # A dtype shows in the result.
    "softmax": ("input dim _stacklevel dtype", softmax),
    "layernorm": (
        "input normalized_shape weight bias eps", norm("LayerNormalization", "input weight bias")),
    "rmsnorm": ("input normalized_shape weight eps", norm("RMSNormalization", "input weight")),
    # The function has other orders of its parameters, and stays opaque.
    **dict.fromkeys(["batchnorm1d", "batchnorm2d"], (
        "input weight bias running_mean running_var training", batch_norm)),
    "dropout": ("input p training inplace", dropout),
    "leakyrelu": ("input negative_slope inplace", leaky_relu),
    "gelu": ("input approximate", gelu),
    **dict.fromkeys(["relu", "relu6", "sigmoid", "silu", "tanh", "hardsigmoid", "hardswish"], (
        "input inplace", plain(None))),
    "view": ("input *size", plain("Reshape")), "reshape": ("input *shape", plain("Reshape")),
    "flatten": ("input start_dim end_dim", plain("Reshape")),
    "unflatten": ("input dim sizes", plain("Reshape")),
    **dict.fromkeys(["squeeze", "unsqueeze"], ("input *dim", plain("Reshape"))),
    **dict.fromkeys(["contiguous", "identity"], ("input", plain("Identity"))),
    **dict.fromkeys(["t", "transpose"], ("input dim0 dim1 dims", order)),
    "permute": ("input *dims", order),
    # What is random is not computed ahead of time, even of constants.
    "randlike": ("input", plain("RandomUniformLike")),
    "randnlike": ("input", plain("RandomNormalLike")),
}


def leaves(meta):
    """The descriptions of all tensors in a result of any nesting."""
    if isinstance(meta, TensorMetadata):
        yield meta
    elif isinstance(meta, (tuple, list, dict)):
        for part in meta.values() if isinstance(meta, dict) else meta:
            yield from leaves(part)


def arguments(parameters, args, kwargs, inner):
    """What a call gives each parameter; None if it gives something else too."""
    names = [name.lstrip("*") for name in parameters.split()]
    of = dict.fromkeys(names)
    if inner is not None:
        of = {name: getattr(inner, name, None) for name in names}
        names = names[:1]
    elif "*" in parameters and len(args) >= len(names):
        rest = len(names) - 1
        args = (*args[:rest], args[rest:])
    if len(args) > len(names) or not kwargs.keys() <= set(names):
        return None
    return of | dict(zip(names, args)) | kwargs


def is_of_pytorch(named, inner):
    """Whether a name means what it means in PyTorch."""
    if isinstance(named, str):
        return hasattr(Tensor, named)
    home = getattr(named, "__module__", None) or "torch"
    if inner is not None:
        # Hooks may change what it computes.
        has_hooks = inner._forward_hooks or inner._forward_pre_hooks
        return home.startswith("torch.nn.modules.") and not has_hooks
    is_native = getattr(named, "namespace", "aten") == "aten"
    return home.split(".")[0] in ("torch", "_operator") and is_native


def name_of(named):
    return getattr(named, "__name__", None) or str(named)


def overwritten(call, inner):
    """The node whose tensor a call overwrites, if it does."""
    name = name_of(call.target if inner is None else type(inner)).split(".")[0]
    is_named_so = name.endswith("_") and not name.endswith("__")
    is_operator = call.target is getattr(operator, name, None)
    is_assignment = is_operator and name[0] == "i" and hasattr(operator, f"__{name[1:]}__")
    is_asked_to = True in (call.kwargs.get("inplace"), getattr(inner, "inplace", None))
    first = call.args[0] if call.args and (is_named_so or is_assignment or is_asked_to) else None
    node = call.kwargs.get("out", first)
    is_tensor = isinstance(node, Node) and isinstance(
        node.meta.get("tensor_meta"), TensorMetadata)
    return node if is_tensor else None


class Exporter:
    def __init__(self, module):
        self.module = module
        self.file = {"kind": "graph", "schema_version": 1}
        self.file |= {key: [] for key in ("inputs", "constants", "nodes", "tensors", "outputs")}
        # What calls give that no element of a tensor decides, such as sizes.
        self.values = {}
        # By a node whose tensor was overwritten, the node that did so; and by one that fetches an
        # attribute again, the first one that did.
        self.later = {}
        self.attributes = {}
        # Attributes that calls overwrite, as a whole or in part, are not known ahead of time.
        self.written = set()
        for node in module.graph.nodes:
            base = overwritten(node, self.inner(node)) if node.op.startswith("call") else None
            while isinstance(base, Node) and base.op.startswith("call"):
                base = base.args[0] if base.args else None
            if isinstance(base, Node) and base.op == "get_attr":
                self.written.add(base.target)

    def inner(self, node):
        return self.module.get_submodule(node.target) if node.op == "call_module" else None

    def declare(self, kind, name, dtype, shape, **more):
        dtype = "f8" if "float8" in str(dtype) else str(dtype)
        self.file[kind].append({"name": name, "dtype": dtype, "shape": list(shape), **more})
        return name

    def current(self, node):
        if node in self.values:
            return self.values[node]
        while node in self.later:
            node = self.later[node]
        return node

    def reads(self, node):
        """The nodes that a node reads, each once."""
        nodes = [self.current(one) for one in node.all_input_nodes if one not in self.values]
        return list(dict.fromkeys(nodes))

    def given(self, node):
        """An input or constant of the graph."""
        if not node.meta.keys() & {"tensor_meta", "type"}:
            raise ValueError(f"{node.name} has no shape; run ShapeProp on the module first")
        is_attribute = node.op == "get_attr"
        if is_attribute and self.attributes.setdefault(node.target, node) is not node:
            self.later[node] = self.attributes[node.target]
            return
        metas = list(leaves(node.meta.get("tensor_meta")))
        kind = "constants" if is_attribute and node.target not in self.written else "inputs"
        if len(metas) == 1:
            # A tensor without elements depends on nothing, and inputs have no sizes of 0.
            kind = "constants" if 0 in metas[0].shape else kind
            self.declare(kind, node.name, metas[0].dtype, metas[0].shape)
        elif metas:
            # Only opaque nodes read several tensors as one value, so that no shape is looked at.
            elements = sum(math.prod(meta.shape) for meta in metas)
            self.declare(kind, node.name, metas[0].dtype, [max(elements, 1)])
        elif node.meta.get("type") in (int, float, bool):
            self.declare(kind, node.name, "f32", [])
        else:
            self.values[node] = None

    def is_known(self, node, target):
        """Whether a call gives no tensor, and no element decides what; keeps what it gives."""
        metas = [one.meta.get("tensor_meta") for one in node.all_input_nodes
                 if one not in self.values]
        is_of_shapes = target in OF_SHAPES and all(isinstance(m, TensorMetadata) for m in metas)
        is_method = node.op == "call_method"
        is_of_numbers = is_method or getattr(node.target, "__module__", None) in OF_NUMBERS
        gives_tensors = any(leaves(node.meta.get("tensor_meta")))
        if gives_tensors or not (is_of_shapes or (is_of_numbers and not metas)):
            return False

        def stand_in(one):
            if one in self.values:
                return self.values[one]
            meta = one.meta["tensor_meta"]
            return torch.empty(meta.shape, dtype=meta.dtype, device="meta")

        args, kwargs = map_arg(node.args, stand_in), map_arg(node.kwargs, stand_in)
        function = getattr(type(args[0]), node.target) if is_method else node.target
        self.values[node] = function(*args, **kwargs)
        return True

    def operand(self, node, name, value):
        """The name of what an op reads, which is declared where it is known ahead of time."""
        if value is None or isinstance(value, Node):
            return "" if value is None else value.name
        name = f"{node.name}.{name}"
        if isinstance(value, Tensor):
            return self.declare("constants", name, value.dtype, value.shape)
        more = {"values": [float(value)]} if math.isfinite(value) else {}
        return self.declare("constants", name, "f32", [], **more)

    def known_op(self, node, target, named, inner):
        """The op, inputs and attributes of a call that the JSON can express."""
        result = node.meta.get("tensor_meta")
        parameters, rule = OPS.get(target.split(".")[0].replace("_", "").lower(), ("", None))
        if not (rule and isinstance(result, TensorMetadata) and is_of_pytorch(named, inner)):
            return None
        args, kwargs = (map_arg(given, self.current) for given in (node.args, node.kwargs))
        of = arguments(parameters, args, kwargs, inner)
        found = rule(of, result) if of is not None else None
        return found if found and self.is_honest(node, result, found[1]) else None

    def is_honest(self, node, result, inputs):
        """Whether the inputs of an op are all that its call reads, and of the result's dtype."""
        given = [value for value in inputs.values() if value is not None]
        nodes = [value for value in given if isinstance(value, Node)]
        # A mask may be of booleans.
        metas = [one.meta.get("tensor_meta") for one in nodes if one is not inputs.get("attn_mask")]
        is_readable = all(isinstance(value, (Node, Tensor, int, float)) for value in given)
        is_one_dtype = all(meta is None or meta.dtype == result.dtype for meta in metas)
        return is_readable and is_one_dtype and set(self.reads(node)) <= set(nodes)

    def call(self, node):
        inner = self.inner(node)
        named = node.target if inner is None else type(inner)
        target = name_of(named)
        if self.is_known(node, target):
            return
        if found := self.known_op(node, target, named, inner):
            op, inputs, attributes = found[0] or target, found[1].items(), found[2]
        else:
            op, attributes = f"fx.{target}", {}
            inputs = [(one.name, one) for one in self.reads(node)]
            if inner is not None:
                inputs += [*inner.named_parameters(), *inner.named_buffers()]
        inputs = [self.operand(node, name, value) for name, value in inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        self.file["nodes"].append({"name": node.name, "op": op, "inputs": inputs,
                                   "outputs": [node.name], "attributes": attributes})
        meta = node.meta.get("tensor_meta")
        if isinstance(meta, TensorMetadata) and 0 not in meta.shape:
            self.declare("tensors", node.name, meta.dtype, meta.shape)
        elif node.meta.get("type") in (int, float, bool):
            self.declare("tensors", node.name, "f32", [])
        before = overwritten(node, inner)
        if before is not None:
            self.later[self.current(before)] = node

    def export(self):
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self.given(node)
            elif node.op == "output":
                self.file["outputs"] = [output.name for output in self.reads(node)]
            else:
                self.call(node)
        return self.file


def fx_to_json(module):
    return Exporter(module).export()
