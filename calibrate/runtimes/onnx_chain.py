"""A chain of ops as an ONNX model, in the bytes of its protobuf: the `onnx` package is not needed. Images
are NCHW."""

import struct

from calibrate_runtime import Unsupported

try:
    import numpy as np
except Exception:  # `Server.hello` says what is wrong with it.
    np = None

OPSET, IR_VERSION = 20, 9
INT64 = 7
KINDS = {"f32": 1, "bf16": 16}
UNARY = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "hardswish": "HardSwish",
}
KNOWN = {
    *UNARY,
    *("linear", "conv2d", "qk", "pv", "max_pool", "softmax", "layer_norm", "rms_norm", "bias"),
    *("batch_norm", "relu6", "leaky_relu", "gelu", "gelu_tanh", "silu", "hardsigmoid", "add", "mul"),
    "scale",
}


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A field of a message: a number, text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    return field(1, name) + b"".join(field(8, one) for one in value) + field(20, 7)


def value_info(name, shape, kind):
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


class Graph:
    """The ops of a problem from `first` to before `end`. Its input is `x`, tensors that move are `i` and
    their number, the output is `y`."""

    def __init__(self, problem, tensors, first=0, end=None, contrib=False):
        end = len(problem.ops) if end is None else end
        self.problem, self.tensors, self.contrib = problem, tensors, contrib
        self.kind = KINDS[problem.dtype]
        self.nodes, self.constants, self.moving, self.count = [], [], [], 0
        self.shape = self.own(problem.inputs[0]["shape"] if first == 0 else problem.ops[first - 1]["shape"])
        self.input_shape, value = self.shape, "x"
        for op in problem.ops[first:end]:
            value = self.op(op, value)
            self.shape = self.own(op["shape"])
        self.node("Identity", [value], "y") if value == "x" else self.rename(value)

    def own(self, shape):
        return [shape[0], shape[3], shape[1], shape[2]] if self.problem.is_image else list(shape)

    def rename(self, value):
        op, inputs, _, attributes, domain = self.nodes[-1]
        self.nodes[-1] = (op, inputs, "y", attributes, domain)

    def node(self, op, inputs, output=None, domain="", **attributes):
        self.count += 1
        output = output or f"t{self.count}"
        self.nodes.append((op, inputs, output, attributes, domain))
        return output

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append((name, np.ascontiguousarray(array)))
        return name

    def number(self, value):
        array = np.array(value, np.float32)
        if self.problem.dtype == "bf16":  # The upper half of the bits, and what is nearest.
            array = ((array.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
        return self.constant(array)

    def operand(self, number):
        """A tensor that moves, as an input; a weight as a constant, along the channels."""
        if not self.problem.inputs[number]["constant"]:
            self.moving.append(number)
            return f"i{number}"
        array = self.tensors.given[number]
        if array.ndim == 1 and array.size > 1 and self.problem.is_image:
            array = array.reshape(-1, 1, 1)
        return self.constant(array)

    def op(self, op, x):
        name, attributes, numbers = op["op"], op["attributes"], op["operands"]
        whole = {key: int(value) for key, value in attributes.items() if key in ("stride", "pad", "window")}
        if name in UNARY:
            return self.node(UNARY[name], [x])
        if name == "linear":
            return self.node("MatMul", [x, self.operand(numbers[0])])
        if name == "conv2d":
            filters = self.constant(self.tensors.given[numbers[0]].transpose(3, 2, 0, 1))
            stride, pad = whole["stride"], whole["pad"]
            groups = int(attributes["groups"])
            return self.node("Conv", [x, filters], strides=[stride] * 2, pads=[pad] * 4, group=groups)
        if name == "max_pool":
            window, stride, pad = whole["window"], whole["stride"], whole["pad"]
            return self.node(
                "MaxPool", [x], kernel_shape=[window] * 2, strides=[stride] * 2, pads=[pad] * 4
            )
        if name == "qk":
            key, scale = self.operand(numbers[0]), attributes["scale"]
            if self.contrib:
                return self.node(
                    "FusedMatMul", [x, key], domain="com.microsoft", alpha=float(scale), transB=1
                )
            product = self.node("MatMul", [x, self.node("Transpose", [key], perm=[0, 1, 3, 2])])
            return product if scale == 1 else self.node("Mul", [product, self.number(scale)])
        if name == "pv":
            heads = self.node("MatMul", [x, self.operand(numbers[0])])
            joined = self.node("Transpose", [heads], perm=[0, 2, 1, 3])
            return self.node("Reshape", [joined, self.constant(np.array(op["shape"], np.int64))])
        if name == "softmax":
            return self.node("Softmax", [x], axis=1 if self.problem.is_image else -1)
        if name == "layer_norm":
            inputs = [x, *map(self.operand, numbers)]
            return self.node("LayerNormalization", inputs, axis=-1, epsilon=float(attributes["epsilon"]))
        if name == "rms_norm":
            axes = self.constant(np.array([-1], np.int64))
            mean = self.node("ReduceMean", [self.node("Mul", [x, x]), axes], keepdims=1)
            root = self.node("Sqrt", [self.node("Add", [mean, self.number(attributes["epsilon"])])])
            return self.node("Mul", [self.node("Div", [x, root]), self.operand(numbers[0])])
        if name == "batch_norm":
            mean, variance, weight, shift = (self.constant(self.tensors.given[i]) for i in numbers)
            inputs = [x, weight, shift, mean, variance]
            return self.node("BatchNormalization", inputs, epsilon=float(attributes["epsilon"]))
        if name in ("bias", "add"):
            return self.node("Add", [x, self.operand(numbers[0])])
        if name in ("mul", "scale"):
            return self.node("Mul", [x, self.operand(numbers[0])])
        if name == "relu6":
            return self.node("Clip", [x, self.number(0), self.number(6)])
        if name == "leaky_relu":
            return self.node("LeakyRelu", [x], alpha=float(attributes["slope"]))
        if name == "hardsigmoid":
            return self.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5)
        if name == "silu":
            return self.node("Mul", [x, self.node("Sigmoid", [x])])
        return self.node("Gelu", [x], approximate="tanh" if name == "gelu_tanh" else "none")

    def names(self):
        """The inputs in order: `None` for `x`, else the number of a tensor."""
        return [None, *self.moving]

    def model(self):
        """The bytes of the model."""
        graph = b""
        for op, inputs, output, attributes, domain in self.nodes:
            node = b"".join(field(1, one) for one in inputs) + field(2, output) + field(4, op)
            node += b"".join(field(5, attribute(*one)) for one in attributes.items())
            graph += field(1, node + (field(7, domain) if domain else b""))
        graph += field(2, "chain")
        for name, array in self.constants:
            kind = INT64 if array.dtype == np.int64 else self.kind
            dims = b"".join(field(1, size) for size in array.shape)
            graph += field(5, dims + field(2, kind) + field(8, name) + field(9, array.tobytes()))
        graph += field(11, value_info("x", self.input_shape, self.kind))
        for number in self.moving:
            shape = self.own(self.problem.inputs[number]["shape"])
            graph += field(11, value_info(f"i{number}", shape, self.kind))
        graph += field(12, value_info("y", self.shape, self.kind))
        opsets = field(8, field(1, "") + field(2, OPSET))
        opsets += field(8, field(1, "com.microsoft") + field(2, 1)) if self.contrib else b""
        return field(1, IR_VERSION) + field(7, graph) + opsets


def check(problem):
    """Refuses what cannot be written."""
    for op in problem.ops:
        if op["op"] not in KNOWN:
            raise Unsupported(f"there is no {op['op']} in the models that are written")
        if op["op"] == "layer_norm" and problem.is_image or op["op"] == "rms_norm" and problem.is_image:
            raise Unsupported("a norm over the channels of an NCHW image")
        if op["op"] == "batch_norm" and not problem.is_image and len(op["shape"]) != 2:
            raise Unsupported("a batch norm of what is neither an image nor a matrix")
