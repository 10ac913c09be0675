"""Writes a torch.fx graph as the JSON that docs/graph-json.md describes.

    module = torch.fx.symbolic_trace(model.eval())
    torch.fx.passes.shape_prop.ShapeProp(module).propagate(example_input)
    json.dump(fx_to_json(module), open("model.json", "w"))

What NAMES lacks keeps its name: the vocabulary knows PyTorch's activations, and everything else
becomes an opaque node.
"""

from torch.fx import Node
from torch.fx.passes.shape_prop import TensorMetadata

NAMES = {
    **dict.fromkeys(["add", "iadd", "add_"], "Add"),
    **dict.fromkeys(["mul", "imul", "mul_"], "Mul"),
    **dict.fromkeys(["div", "truediv"], "Div"), **dict.fromkeys(["matmul", "bmm"], "MatMul"),
    **dict.fromkeys(["view", "reshape", "flatten", "squeeze", "unsqueeze"], "Reshape"),
    **dict.fromkeys(["contiguous", "dropout", "identity"], "Identity"),
    **dict.fromkeys(["permute", "transpose"], "Transpose"), "linear": "Linear", "conv2d": "Conv",
    "batchnorm2d": "BatchNormalization", "layernorm": "LayerNormalization", "maxpool2d": "MaxPool",
    "softmax": "Softmax", "gelu": "Gelu", "scaled_dot_product_attention": "Attention",
}
TENSORS = {"Add": 2, "Mul": 2, "Div": 2, "MatMul": 2, "Linear": 3, "Conv": 3, "Attention": 4}


def attributes(op, of, args, rank):
    pair = lambda key: list(of(key)) if isinstance(of(key), (tuple, list)) else [of(key)] * 2
    if op in ("Conv", "MaxPool"):
        more = {"group": of("groups")} if op == "Conv" else {"kernel_shape": pair("kernel_size")}
        more |= {"strides": pair("stride"), "pads": pair("padding") * 2}
        return more | {"dilations": pair("dilation")}
    if op == "Transpose":
        axes = args[1] if isinstance(args[1], (tuple, list)) else args[1:]
        axes = [axis % rank for axis in axes]
        if len(axes) == rank and rank != 2:
            return {"perm": axes}
        swapped = dict(zip(axes, reversed(axes)))
        return {"perm": [swapped.get(axis, axis) for axis in range(rank)]}
    if op == "Softmax":
        return {"axis": of("dim")}
    if op == "Gelu":
        return {"approximate": of("approximate") or "none"}
    return {"axis": -len(of("normalized_shape"))} if op == "LayerNormalization" else {}


def fx_to_json(module):
    file = {"kind": "graph", "schema_version": 1}
    file |= {key: [] for key in ("inputs", "constants", "nodes", "tensors", "outputs")}

    def declare(kind, name, of, **more):
        file[kind].append({"name": name, "dtype": str(of.dtype), "shape": list(of.shape), **more})
        return name

    for node in module.graph.nodes:
        name, meta = node.name, node.meta.get("tensor_meta")
        kind = {"placeholder": "inputs", "get_attr": "constants"}.get(node.op, "tensors")
        if isinstance(meta, TensorMetadata) and node.op != "output":
            declare(kind, name, meta)
        if node.op == "output":
            file["outputs"] = [output.name for output in node.all_input_nodes]
        elif kind == "tensors" and meta is not None:
            inner = module.get_submodule(node.target) if node.op == "call_module" else None
            named = node.target if inner is None else type(inner)
            target = getattr(named, "__name__", named)
            op, inputs = NAMES.get(target.lower(), target), []
            for index, arg in enumerate(node.args[:TENSORS.get(op, 1)]):
                if isinstance(arg, Node):
                    inputs.append(arg.name)
                elif isinstance(arg, (int, float)):
                    number = {"name": f"{name}.{index}", "dtype": "f32", "shape": []}
                    number["values"] = [arg]
                    file["constants"].append(number)
                    inputs.append(number["name"])
            for key in ("weight", "bias", "running_mean", "running_var"):
                if (weight := getattr(inner, key, None)) is not None:
                    inputs.append(declare("constants", f"{name}.{key}", weight))
            given = None
            if node.op == "call_function":
                given = node.normalized_arguments(module, None, None, True)
            given = given.kwargs if given else node.kwargs
            of = given.get if inner is None else lambda key: getattr(inner, key, None)
            rank = len(meta.shape) if isinstance(meta, TensorMetadata) else 0
            written = {"name": name, "op": op, "inputs": inputs, "outputs": [name]}
            written["attributes"] = attributes(op, of, node.args, rank)
            file["nodes"].append(written)
    return file
