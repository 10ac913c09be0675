"""PyTorch on the CPU: eager, an op after the other, against `torch.compile` with frozen weights, where
attention is `scaled_dot_product_attention`. Images are channels-last."""

import os
import re
import unittest.mock
from functools import partial

from calibrate_runtime import Prepared, Unsupported, no_dropout, plain_attention, serve

STRUCTURED = {"linear", "conv2d", "qk", "pv", "max_pool", "softmax", "layer_norm", "rms_norm"}
POINTWISE = {
    *("bias", "batch_norm", "relu", "relu6", "leaky_relu", "gelu", "gelu_tanh", "sigmoid", "silu"),
    *("hardsigmoid", "hardswish", "tanh", "add", "mul", "scale"),
}


class PyTorch:
    name, needs, nchw = "pytorch", ["numpy", "torch"], False
    dtypes = ["f32", "bf16", "f16"]

    def version(self):
        import torch

        return torch.__version__

    def options(self, threads):
        import torch

        if "CALIBRATE_CACHE" in os.environ:
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.environ["CALIBRATE_CACHE"])
        # Headers are precompiled into a folder that goes with this process, for 6 s in each. Kernels are
        # compiled once without, and are then in the cache.
        os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
        # Compilers of other processes would stay behind a runtime that is killed.
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_flush_denormal(True)
        torch.set_grad_enabled(False)
        # Beyond a few chains it would go on with eager kernels and say nothing.
        torch._dynamo.config.recompile_limit = 1000
        # What `dynamic=False` says, which costs 3.5 us in each call of a compiled function.
        torch._dynamo.config.automatic_dynamic_shapes = False
        return {"fused": "torch.compile, inductor, freezing", "unfused": "eager"}

    def supports(self, problem):
        no_dropout(problem)
        plain_attention(problem)
        for op in problem.ops:
            if op["op"] not in STRUCTURED | POINTWISE:
                raise Unsupported(f"it has no call for {op['op']}")
            if op["op"] in ("softmax", "layer_norm", "rms_norm") and problem.is_image:
                raise Unsupported("a row op over the channels of an image")

    def prepare(self, problem, tensors, threads):
        import torch
        import torch.fx

        ops, image = problem.ops, problem.is_image
        constants = {
            number: weight(torch, problem, number, from_numpy(tensors.given[number]))
            for number, one in enumerate(problem.inputs)
            if one["constant"]
        }
        calls = [call(torch, op, image) for op in ops]
        order = [number for number in problem.moving() if number]

        def chain(whole):
            """A function of all ops; as a whole with attention in one call, and a linear layer or a
            convolution with its bias, since that is how a user of PyTorch writes them. Its code is one
            call below the other: a loop over the ops would take time in each run, and a compiled one
            would check in each run that the list of them is what it was. A module checks its hooks."""
            graph = torch.fx.Graph()
            tracer = torch.fx.proxy.GraphAppendingTracer(graph)
            nodes = {n: graph.placeholder(f"x{n}") for n in [0, *order]}
            nodes |= {n: graph.get_attr(f"c{n}") for n in constants}
            operands = {n: torch.fx.Proxy(node, tracer) for n, node in nodes.items()}
            x, at = operands[0], 0
            while at < len(ops):
                length = attention_length(ops, at) if whole else 0
                if length:
                    part = ops[at : at + length]
                    key, value = (operands[one["operands"][0]] for one in (part[0], part[-1]))
                    scale = part[0]["attributes"]["scale"]
                    if len(part) == 4:
                        scale = float(constants[part[1]["operands"][0]])
                    x = torch.nn.functional.scaled_dot_product_attention(x, key, value, scale=scale)
                    x = x.transpose(1, 2).reshape(part[-1]["shape"])
                    at += length
                elif whole and has_bias(ops, at):
                    one, bias = (operands[n] for n in ops[at]["operands"] + ops[at + 1]["operands"])
                    x = calls[at](x, one, bias.reshape(-1))
                    at += 2
                else:
                    x = calls[at](x, *(operands[n] for n in ops[at]["operands"]))
                    at += 1
            graph.output(x.node)
            graph.eliminate_dead_code()
            weights = {f"c{n}": tensor for n, tensor in constants.items()}
            return torch.fx.GraphModule(weights, graph).eval().forward

        def tensor(number):
            one = from_numpy(tensors.input(number))
            return one.permute(0, 3, 1, 2) if image and one.ndim == 4 else one

        def bind():
            arguments = [tensor(number) for number in [0, *order]]
            return {name: partial(run, *arguments) for name, (run, _) in variants.items()}

        arguments = [tensor(number) for number in [0, *order]]
        variants = self.variants(ops, chain, arguments)
        kernels = {name: words for name, (_, words) in variants.items()}
        return TorchPrepared(tensors, kernels, bind)

    def variants(self, ops, chain, arguments):
        """The function of each variant, and its kernels in words. `chain` makes a function of the ops, as
        a whole or an op after the other."""
        eager = chain(False), [op["op"] for op in ops]
        return {"unfused": eager, "fused": compiled(chain(True), arguments)}


class TorchPrepared(Prepared):
    """Its results are new tensors, images in the order of their axes that PyTorch has."""

    def write_output(self):
        if self.result is not None:
            image = self.tensors.problem.is_image
            y = self.result.permute(0, 2, 3, 1) if image else self.result
            self.tensors.output[...] = to_numpy(y)
        self.tensors.write_output()


def compiled(function, arguments, backend=None):
    """A function that was compiled with its weights frozen, and what it calls."""
    import torch
    import torch._inductor.config
    from torch._dynamo.utils import counters
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.graph import GraphLowering

    def of_its_own(graph, inputs):
        # With a backend of its own, no function gets what was compiled for another one like it.
        return compile_fx(graph, inputs)

    torch._inductor.config.freezing = True
    run = torch.compile(function, backend=backend or of_its_own)
    code = []
    counters["graph_break"].clear()
    # `run_and_get_code` would forget all that was compiled before.
    with unittest.mock.patch.object(GraphLowering, "save_output_code", code.append):
        run(*arguments)
    # `fullgraph=True` would see that, too, and cost 2 us in each call.
    if counters["graph_break"]:
        raise RuntimeError(f"it is not compiled as a whole: {next(iter(counters['graph_break']))}")
    return run, [called(code)]


def called(code):
    """The kernels that the code of Inductor calls, in order."""
    call = r"^\s+(?:\w+ = )?(cpp_fused_\w+|extern_kernels\.\w+|torch\.ops\.[\w.]+)\("
    calls = re.findall(call, "\n".join(code), re.MULTILINE)
    return ", ".join(name.removeprefix("torch.ops.").removesuffix(".default") for name in calls)


def attention_length(ops, at):
    """How many ops from here are the attention that PyTorch has one call for."""
    names = [op["op"] for op in ops[at : at + 4]]
    if names[:3] == ["qk", "softmax", "pv"]:
        return 3
    return 4 if names == ["qk", "scale", "softmax", "pv"] else 0


def has_bias(ops, at):
    """Whether the op from here is one that takes the bias behind it."""
    return [op["op"] for op in ops[at : at + 2]] in (["linear", "bias"], ["conv2d", "bias"])


def from_numpy(array):
    """A tensor of the numbers of an array, where they lie."""
    import torch

    one = torch.from_numpy(array)
    return one.view(torch.bfloat16) if one.dtype == torch.uint16 else one


def to_numpy(tensor):
    import torch

    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def weight(torch, problem, number, one):
    """A weight as PyTorch keeps it: `nn.Linear` has [n, k], filters are [k, c, r, s], channels-last."""
    op = next(op["op"] for op in problem.ops if number in op["operands"])
    if op == "linear":
        return one.t().contiguous()
    if op == "conv2d":
        return one.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    if problem.is_image and op in ("bias", "scale") and one.numel() > 1:
        return one.reshape(-1, 1, 1)
    return one


def call(torch, op, image):
    """An op as PyTorch calls it."""
    functional, name, attributes = torch.nn.functional, op["op"], op["attributes"]
    stride, pad = int(attributes.get("stride", 1)), int(attributes.get("pad", 0))
    if name == "linear":
        return lambda x, w, bias=None: functional.linear(x, w, bias)
    if name == "conv2d":
        groups = int(attributes["groups"])
        return lambda x, w, bias=None: functional.conv2d(x, w, bias, stride, pad, 1, groups)
    if name == "max_pool":
        window = int(attributes["window"])
        return lambda x: functional.max_pool2d(x, window, stride, pad)
    if name == "qk":
        scale = attributes["scale"]
        if scale == 1:
            return lambda x, key: torch.matmul(x, key.transpose(-1, -2))
        return lambda x, key: torch.matmul(x, key.transpose(-1, -2)) * scale
    if name == "pv":
        shape = op["shape"]
        return lambda x, value: torch.matmul(x, value).transpose(1, 2).reshape(shape)
    if name in ("layer_norm", "rms_norm"):
        epsilon, width = attributes["epsilon"], op["shape"][-1:]
        norm = functional.layer_norm if name == "layer_norm" else functional.rms_norm
        return lambda x, *weights: norm(x, width, *weights, eps=epsilon)
    if name == "batch_norm":
        epsilon = attributes["epsilon"]
        if image or len(op["shape"]) == 2:
            return lambda x, mean, variance, gain, shift: functional.batch_norm(
                x, mean, variance, gain, shift, False, 0.0, epsilon
            )
        return lambda x, mean, variance, gain, shift: (
            (x - mean) * (gain * torch.rsqrt(variance + epsilon)) + shift
        )
    slope = attributes.get("slope", 0.0)
    return {
        "softmax": lambda x: torch.softmax(x, -1),
        "bias": torch.add,
        "add": torch.add,
        "mul": torch.mul,
        "scale": torch.mul,
        "relu": torch.relu,
        "relu6": functional.relu6,
        "leaky_relu": lambda x: functional.leaky_relu(x, slope),
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "sigmoid": torch.sigmoid,
        "silu": functional.silu,
        "hardsigmoid": functional.hardsigmoid,
        "hardswish": functional.hardswish,
        "tanh": torch.tanh,
    }[name]


if __name__ == "__main__":
    serve(PyTorch())
