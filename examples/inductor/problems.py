"""Says which problem of the cost model a kernel of Inductor would compute.

Inductor takes ops apart before it fuses: a layer norm becomes a reduction and what is done with its
results, and whatever is cheap is written into each loop that reads it. The cost model knows ops. So
the nodes of a kernel are put together again by the op that PyTorch was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from fusion_cost_model import InvalidQuestionError, Problem
from torch.fx import Graph, Node

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16"}

# What only says how a tensor is read.
VIEWS = {
    *("view", "_unsafe_view", "reshape", "_reshape_copy", "squeeze", "unsqueeze", "expand", "alias"),
    *("detach", "contiguous"),
}

# Ops that read one tensor, by what PyTorch calls them.
ONE_TENSOR = {
    **{name: name for name in ("relu", "sigmoid", "silu", "tanh", "hardsigmoid", "hardswish")},
    **{"relu_": "relu", "_softmax": "softmax", "softmax": "softmax", "leaky_relu": "leaky_relu"},
    **{"native_layer_norm": "layer_norm", "layer_norm": "layer_norm"},
    **{"_fused_rms_norm": "rms_norm", "rms_norm": "rms_norm"},
    **{"batch_norm": "batch_norm", "_native_batch_norm_legit_no_training": "batch_norm"},
}


@dataclass
class Call:
    """An op that PyTorch was asked for, and the nodes that it was taken apart into."""

    name: str
    nodes: list[Node] = field(default_factory=list)

    @property
    def result(self) -> torch.Tensor:
        return value(self.nodes[-1])

    @property
    def inputs(self) -> list[Node]:
        """The nodes outside that it reads, each once."""
        reads = (through_views(read) for node in self.nodes for read in node.all_input_nodes)
        return list(dict.fromkeys(read for read in reads if read not in self.nodes))


def value(node: Node) -> torch.Tensor | None:
    found = node.meta.get("val")
    if isinstance(found, (tuple, list)) and found:
        found = found[0]
    return found if isinstance(found, torch.Tensor) else None


def through_views(node: Node) -> Node:
    while name_of(node.target) in VIEWS:
        node = node.all_input_nodes[0]
    return node


def name_of(target: object) -> str:
    """`add` of `aten.add.Tensor`; empty for what is not a call of PyTorch's."""
    packet = getattr(target, "overloadpacket", None)
    return packet.__name__ if packet is not None else ""


def calls_of(graph: Graph) -> list[Call]:
    """The calls of a graph, in its order, without views."""
    calls: dict[tuple[str, str], Call] = {}
    for node in graph.nodes:
        name = name_of(node.meta.get("original_aten", node.target))
        if node.op != "call_function" or name in VIEWS or name_of(node.target) in VIEWS:
            continue
        # What the call is named in the source that was traced, if it was traced from one.
        source = node.meta.get("source_fn_stack")
        key = (source[-1][0] if source else node.name, name)
        calls.setdefault(key, Call(name)).nodes.append(node)
    return list(calls.values())


def rows_of(tensor: torch.Tensor, of_image: bool) -> tuple[int, int]:
    """Rows and columns. The columns of an image are its channels."""
    columns = tensor.shape[1] if of_image else tensor.shape[-1] if tensor.ndim else 1
    return math.prod(tensor.shape) // max(columns, 1), columns


def op_of(call: Call) -> str | None:
    """The op of a call in the vocabulary of the cost model."""
    result, of_image = call.result, call.result is not None and call.result.ndim == 4
    if call.name in ONE_TENSOR:
        return ONE_TENSOR[call.name]
    if call.name == "gelu":
        by_tanh = any(name_of(node.target) == "tanh" for node in call.nodes)
        by_tanh = by_tanh or call.nodes[0].kwargs.get("approximate") == "tanh"
        return "gelu_tanh" if by_tanh else "gelu"
    if call.name not in ("add", "add_", "mul", "mul_", "div") or result is None:
        return None
    tensors = [value(read) for read in call.inputs]
    numbers = {tensor.numel() for tensor in tensors if tensor is not None}
    columns = rows_of(result, of_image)[1]
    by_number = any(isinstance(argument, (int, float)) for argument in call.nodes[0].args)
    if by_number or 1 in numbers:
        return None if call.name.startswith("add") else "scale"
    if call.name == "div" or len(tensors) != 2:
        return None
    if numbers == {result.numel()}:
        return call.name.rstrip("_")
    is_bias = call.name.startswith("add") and numbers == {result.numel(), columns}
    return "bias" if is_bias else None


def problem_of(calls: list[Call]) -> Problem | None:
    """The calls as one problem; None where the vocabulary has no such chain.

    A chain is one where each call reads the result of the one before, which nothing else reads.
    """
    results = [call.result for call in calls]
    ops = [op_of(call) for call in calls]
    if not calls or None in ops or any(result is None for result in results):
        return None
    for call, following in zip(calls, calls[1:]):
        readers = {user for node in call.nodes for user in readers_of(node)} - set(call.nodes)
        if not readers or not readers <= set(following.nodes):
            return None
    of_image = "batch_norm" in ops and results[0].ndim == 4
    sizes = {rows_of(result, of_image) for result in results}
    dtype = DTYPES.get(results[0].dtype)
    if len(sizes) != 1 or dtype is None:
        return None
    rows, columns = sizes.pop()
    try:
        return Problem.rows("+".join(ops), dtype, m=rows, n=columns)
    except InvalidQuestionError:
        return None  # Such as more ops than a chain has.


def readers_of(node: Node) -> Iterable[Node]:
    """Who reads a node, looking through views."""
    for user in node.users:
        if name_of(user.target) in VIEWS:
            yield from readers_of(user)
        else:
            yield user


def calls_between(results: set[Node], written_before: set[Node]) -> list[Call]:
    """The whole calls that compute some results from what other kernels have written, in order."""
    computed, left = set(), list(results)
    while left:
        node = left.pop()
        if node.op == "call_function" and node not in computed and node not in written_before:
            computed.add(node)
            left.extend(node.all_input_nodes)
    if not computed:
        return []
    graph = next(iter(computed)).graph
    return [call for call in calls_of(graph) if not computed.isdisjoint(call.nodes)]
